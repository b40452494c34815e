//! An order: a reservation, made durable.

use chrono::{DateTime, Utc};

use super::ids::{EventId, OrderId, ProductId, UserId};
use super::money::Money;

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderStatus {
    /// The units are the buyer's.
    Confirmed,
    /// Held until it is paid.
    PendingPayment,
    /// Given back.
    Cancelled,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Confirmed, Self::PendingPayment, Self::Cancelled];

    /// The text in both stores and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "CONFIRMED",
            Self::PendingPayment => "PENDING_PAYMENT",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether its units are out of stock.
    #[must_use]
    pub const fn holds_units(self) -> bool {
        matches!(self, Self::Confirmed | Self::PendingPayment)
    }

    /// The status of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// An order.
#[derive(Debug, Clone)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// The reservation that it settles; unique.
    pub reservation_id: String,
    /// Who bought.
    pub user: UserId,
    /// What.
    pub product: ProductId,
    /// Where.
    pub event: EventId,
    /// Units.
    pub quantity: u32,
    /// Of one unit.
    pub price: Money,
    /// Where it stands.
    pub status: OrderStatus,
    /// When it was booked, by the live store's clock.
    pub created_at: DateTime<Utc>,
    /// When it was last written.
    pub updated_at: DateTime<Utc>,
    /// Counts the changes of its reservation, from 1.
    pub revision: u32,
    /// The `Idempotency-Key` that it was made with, or empty.
    pub idempotency_key: String,
}
