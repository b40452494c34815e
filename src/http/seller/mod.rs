//! `/api/seller`: preparing events and products, running the sale, reading the orders.

mod bookings;
mod cancel;
mod deliveries;
mod events;
mod plan;
mod products;
mod restock;
mod sale;
mod verification;
mod webhooks;

pub(super) use bookings::*;
pub(super) use cancel::*;
pub(super) use deliveries::*;
pub(super) use events::*;
pub(super) use products::*;
pub(super) use restock::*;
pub(super) use sale::*;
pub(super) use verification::*;
pub(super) use webhooks::*;
