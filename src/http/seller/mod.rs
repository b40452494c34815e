//! `/api/seller`: preparing events and products, running the sale, reading the orders.

mod analytics;
mod bookings;
mod cancel;
mod counters;
mod deliveries;
mod events;
mod exports;
mod plan;
mod products;
mod restock;
mod sale;
mod verification;
mod voucher_offer;
mod webhooks;

pub(super) use analytics::*;
pub(super) use bookings::*;
pub(super) use cancel::*;
pub(super) use deliveries::*;
pub(super) use events::*;
pub(super) use exports::*;
pub(super) use products::*;
pub(super) use restock::*;
pub(super) use sale::*;
pub(super) use verification::*;
pub(super) use webhooks::*;
