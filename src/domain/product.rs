//! A product: what an event sells.

use chrono::{DateTime, Utc};

use super::ids::{ClientId, EventId, ProductId, UserId, VendorId, VoucherProductId};
use super::money::Money;

/// The most units of one product in one event.
pub const UNITS_MAX: u32 = 100_000_000;
/// The most units of one product that one buyer can be allowed.
pub const PER_BUYER_LIMIT_MAX: u32 = 1_000;

/// What a product's units are, if each of them is a voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherOffer {
    /// Vouchers of what.
    pub product: VoucherProductId,
    /// Worth what.
    pub denomination: Money,
    /// From what is kept for this client, for which the seller may order.
    pub client: ClientId,
    /// Issued by one of these; none: by any that issues them.
    pub vendors: Vec<VendorId>,
}

/// A product.
#[derive(Debug, Clone)]
pub struct Product {
    /// Its id.
    pub id: ProductId,
    /// Who sells it.
    pub seller: UserId,
    /// Where it is sold.
    pub event: EventId,
    /// 2 to 100 characters.
    pub title: String,
    /// 10 to 500 characters.
    pub description: String,
    /// Of one unit.
    pub price: Money,
    /// Units for sale; "frequency" on the wire.
    pub units: u32,
    /// Units that one buyer may reserve.
    pub per_buyer_limit: u32,
    /// If its units are vouchers: which.
    pub voucher: Option<VoucherOffer>,
    /// Public address of the picture.
    pub image_url: String,
    /// The picture's key in the media store.
    pub image_key: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// How much of a product there is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StockLevel {
    /// Units that can be reserved.
    pub available: u64,
    /// Units that wait for payment.
    pub held: u64,
}

/// What has become of a product's units, at one moment of a live sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitCount {
    /// The product.
    pub id: ProductId,
    /// Units at the start, with those added since.
    pub units: u64,
    /// Units that can be reserved.
    pub stock: u64,
    /// Units that wait for payment.
    pub held: u64,
    /// Units that are sold: all others.
    pub confirmed: u64,
    /// Of one unit.
    pub price: Money,
}

impl UnitCount {
    /// What the sold units cost. What waits for payment is no revenue.
    #[must_use]
    pub fn revenue(&self) -> Money {
        let confirmed = i64::try_from(self.confirmed).unwrap_or(i64::MAX);
        Money { minor: self.price.minor.saturating_mul(confirmed), currency: self.price.currency }
    }
}

/// A product as buyers of a live sale see it: from the live store, so that what they see is what they pay.
#[derive(Debug, Clone)]
pub struct LiveProduct {
    /// Its id.
    pub id: ProductId,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The price that a reservation takes.
    pub price: Money,
    /// Public address of the picture.
    pub image_url: String,
    /// Units that can be reserved now.
    pub available_units: u64,
    /// Units that wait for payment.
    pub held_units: u64,
    /// Units at the start, restocks included.
    pub initial_units: u64,
    /// Units that one buyer may reserve.
    pub per_buyer_limit: u32,
}
