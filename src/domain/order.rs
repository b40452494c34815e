//! An order: a reservation, made durable.

use chrono::{DateTime, Utc};

use super::ids::{EventId, OrderId, ProductId, UserId};
use super::money::Money;
use super::reservation::Reservation;

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderStatus {
    /// The units are the buyer's.
    Confirmed,
    /// Held until it is paid.
    PendingPayment,
    /// Given back by the buyer, the seller or an administrator.
    Cancelled,
    /// Given back because it was not paid in time.
    Expired,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Confirmed, Self::PendingPayment, Self::Cancelled, Self::Expired];

    /// The text in both stores and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "CONFIRMED",
            Self::PendingPayment => "PENDING_PAYMENT",
            Self::Cancelled => "CANCELLED",
            Self::Expired => "EXPIRED",
        }
    }

    /// Whether nothing is left of it: no unit, and nothing to pay.
    #[must_use]
    pub const fn over(self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
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
    /// When an unpaid hold runs out. `None` once it is confirmed.
    pub expires_at: Option<DateTime<Utc>>,
    /// Units of it that went back to stock.
    pub returned: u32,
    /// Whether the buyer may not reserve this product again although no unit is left.
    pub slot_kept: bool,
    /// Counts the changes of its reservation, from 1.
    pub revision: u32,
    /// The `Idempotency-Key` that it was made with, or empty.
    pub idempotency_key: String,
    /// The newest operation that changed it, if it had a name.
    pub operation: String,
}

impl Order {
    /// Units that are the buyer's, or held for them.
    #[must_use]
    pub const fn units_held(&self) -> u32 {
        self.quantity.saturating_sub(self.returned)
    }

    /// The reservation in the state that the order has it in.
    #[must_use]
    pub fn reservation(&self) -> Reservation {
        Reservation {
            id: self.reservation_id.clone(),
            user: self.user,
            product: self.product,
            event: self.event,
            quantity: self.quantity,
            price: self.price,
            status: self.status,
            booked_at_ms: self.created_at.timestamp_millis(),
            expires_at_ms: self.expires_at.map(|at| at.timestamp_millis()),
            returned: self.returned,
            slot_kept: self.slot_kept,
            revision: self.revision,
            idempotency_key: self.idempotency_key.clone(),
            operation: self.operation.clone(),
        }
    }
}
