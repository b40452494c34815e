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
    /// When an unpaid hold runs out, by the live store's clock, in milliseconds since 1970. `None` once it is confirmed.
    pub expires_at_ms: Option<i64>,
    /// Units of it that went back to stock.
    pub returned: u32,
    /// Whether the buyer may not reserve this product again although no unit is left.
    pub slot_kept: bool,
    /// Counts the changes of this reservation, from 1: of two states the one with more is the newer.
    pub revision: u32,
    /// The `Idempotency-Key` that it was made with, or empty.
    pub idempotency_key: String,
    /// The newest operation that changed it, if it had a name.
    pub operation: String,
}

impl Reservation {
    /// Units that are out of stock for it.
    #[must_use]
    pub const fn units_held(&self) -> u32 {
        self.quantity.saturating_sub(self.returned)
    }

    /// Whether it takes the buyer's one place.
    #[must_use]
    pub const fn takes_slot(&self) -> bool {
        self.units_held() > 0 || self.slot_kept
    }
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
    /// The `Idempotency-Key` belongs to the buyer's reservation of another quantity.
    KeyReused,
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

/// What a payment did to its reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmed {
    /// It is confirmed.
    OnTime(Reservation),
    /// Its hold had expired, and there were units: it is confirmed.
    Late(Reservation),
    /// It was confirmed already.
    Before(Reservation),
    /// Its hold had expired, and its units are gone.
    NoStock(Reservation),
    /// It was cancelled.
    Cancelled(Reservation),
    /// The buyer has no such reservation in the live store, or another one since.
    Unknown,
    /// The sale does not run: reservations are orders, or are becoming orders.
    NotRunning(SaleStatus),
}

/// Units to be returned to stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Which reservation; `None` is the one that the buyer has.
    pub reservation: Option<String>,
    /// Whose.
    pub user: UserId,
    /// Of what.
    pub product: ProductId,
    /// How many of its units; `None` is all.
    pub units: Option<u32>,
    /// Only if it is an unpaid hold whose time has passed; it expires then. Otherwise it is cancelled.
    pub only_due: bool,
    /// Whether the buyer may not reserve the product again.
    pub keep_slot: bool,
    /// A name for this release: what was done under it is not done again. Returning a part needs one.
    pub operation: Option<String>,
}

impl Release {
    /// The buyer's unpaid hold, if its time has passed.
    #[must_use]
    pub const fn of_due(user: UserId, product: ProductId) -> Self {
        Self { reservation: None, user, product, units: None, only_due: true, keep_slot: false, operation: None }
    }
}

/// What became of a reservation that was to be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// Units went back to stock.
    Now(Reservation),
    /// They had gone back before.
    Before(Reservation),
    /// It is no hold whose time has passed.
    NotDue,
    /// It has fewer units than are to be returned.
    TooMany(Reservation),
    /// The buyer has no such reservation in the live store, or another one since.
    Unknown,
    /// Its record is damaged; nothing was changed.
    Damaged,
}
