//! A reservation: one buyer's claim on units of one product, decided by the live store.

use super::ids::{EventId, ProductId, UserId};
use super::money::Money;
use super::order::OrderStatus;
use super::sale::SaleStatus;

/// The revision of a new reservation.
pub const FIRST_REVISION: u32 = 1;

/// A booking in the live store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Unique for all time; the order's identity.
    pub id: String,
    /// Who.
    pub user: UserId,
    /// What.
    pub product: ProductId,
    /// Where.
    pub event: EventId,
    /// Units.
    pub quantity: u32,
    /// Of one unit, as the live store had it in the same instant.
    pub price: Money,
    /// Confirmed at once, or waiting for payment.
    pub status: OrderStatus,
    /// The live store's clock, in milliseconds since 1970.
    pub booked_at_ms: i64,
    /// Counts the changes of this reservation, from 1: of two states the one with more is the newer.
    pub revision: u32,
    /// The `Idempotency-Key` that it was made with, or empty.
    pub idempotency_key: String,
}

/// What a buyer asks for.
#[derive(Debug, Clone)]
pub struct ReserveRequest {
    /// Who.
    pub user: UserId,
    /// What.
    pub product: ProductId,
    /// Where.
    pub event: EventId,
    /// Units, at least one.
    pub quantity: u32,
    /// The id that the reservation gets if it is made.
    pub reservation_id: String,
    /// The caller's `Idempotency-Key`, or empty.
    pub idempotency_key: String,
}

/// What the live store decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// The units are the buyer's.
    Reserved(Reservation),
    /// The same request (same `Idempotency-Key`) was accepted before: this is its reservation.
    Replayed(Reservation),
    /// The buyer has this reservation already.
    AlreadyReserved(Reservation),
    /// Too few units are left.
    SoldOut,
    /// The sale is not live.
    NotLive(SaleStatus),
    /// The sale has no such product.
    UnknownProduct,
    /// More than one buyer may have.
    LimitReached {
        /// Units per buyer.
        limit: u32,
    },
}
