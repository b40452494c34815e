//! What a seller and a buyer read back: orders and analytics.

mod export;
mod sums;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use export::ExportedPage;
pub use sums::{Booked, SellThrough, SpanSum};

use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::page::{Listed, Page};
use crate::error::{Error, Result};
use crate::store::mongo::Mongo;
pub use crate::store::mongo::orders::StatusTotal;

/// Reads of what was settled.
#[derive(Debug)]
pub struct Reports {
    mongo: Arc<Mongo>,
}

/// An event's orders, summed.
#[derive(Debug, Clone)]
pub struct Analytics {
    /// Orders of every status.
    pub orders: u64,
    /// Units in confirmed orders.
    pub units_sold: u64,
    /// Revenue of confirmed orders only, per currency.
    pub revenue: Vec<Money>,
    /// Orders per status.
    pub by_status: BTreeMap<String, u64>,
    /// Units ordered per product.
    pub units_by_product: BTreeMap<ProductId, u64>,
    /// Orders, units and their worth, per status and currency. Only what is confirmed is revenue.
    pub totals: Vec<StatusTotal>,
}

impl Reports {
    /// Reports over this store.
    #[must_use]
    pub const fn new(mongo: Arc<Mongo>) -> Self {
        Self { mongo }
    }

    /// An event's orders, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn orders_of_event(&self, event: EventId, page: Page) -> Result<Listed<Order>> {
        self.mongo.orders.of_event(event, page).await
    }

    /// The order of this reservation.
    ///
    /// # Errors
    /// [`crate::error::Code::NotFound`], or when the database does not answer.
    pub async fn order(&self, reservation: &str) -> Result<Order> {
        let order = self.mongo.orders.by_reservation(reservation).await?;
        order.ok_or_else(|| Error::not_found("order not found"))
    }

    /// A buyer's orders, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn orders_of_user(&self, user: UserId, page: Page) -> Result<Listed<Order>> {
        self.mongo.orders.of_user(user, page).await
    }

    /// An event's analytics. Money that was never confirmed is no revenue.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn analytics(&self, event: EventId) -> Result<Analytics> {
        let totals = self.mongo.orders.totals(event).await?;
        let mut analytics = Analytics {
            orders: 0,
            units_sold: 0,
            revenue: Vec::new(),
            by_status: BTreeMap::new(),
            units_by_product: self.mongo.orders.units_per_product(event).await?,
            totals: Vec::new(),
        };
        for total in &totals {
            analytics.orders += total.orders;
            *analytics.by_status.entry(total.status.clone()).or_default() += total.orders;
            if total.status == OrderStatus::Confirmed.as_str() {
                analytics.units_sold += total.units;
                if let Some(currency) = money::currency(&total.currency) {
                    analytics.revenue.push(Money { minor: total.minor, currency });
                }
            }
        }
        analytics.totals = totals;
        analytics.totals.sort_by(|one, other| (&one.status, &one.currency).cmp(&(&other.status, &other.currency)));
        analytics.revenue.sort_by_key(|money| std::cmp::Reverse(money.minor));
        Ok(analytics)
    }
}
