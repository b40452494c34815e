//! `/api/seller`: preparing events and products, running the sale, reading the orders.

mod bookings;
mod counters;
mod events;
mod plan;
mod products;
mod sale;
mod verification;

pub(super) use bookings::*;
pub(super) use events::*;
pub(super) use products::*;
pub(super) use sale::*;
pub(super) use verification::*;
