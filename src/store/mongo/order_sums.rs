//! Sums over an event's orders, for its seller. Money counts when its order is confirmed, and for the units that are still
//! the buyer's.

use std::collections::HashMap;
use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::within;
use super::orders::{Orders, of_event, units_held};
use crate::domain::ids::{EventId, ProductId};
use crate::domain::money::{self, Money};
use crate::domain::order::OrderStatus;
use crate::error::Result;

/// What was sold of a product, and what waits for payment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProductSum {
    /// Units in confirmed orders.
    pub confirmed: u64,
    /// Units in orders that wait for payment.
    pub pending: u64,
    /// Revenue of confirmed orders, per currency.
    pub revenue: Vec<Money>,
}

/// What was sold in a span of time, in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanSum {
    /// When it begins.
    pub at: chrono::DateTime<chrono::Utc>,
    /// Confirmed orders that were booked in it.
    pub orders: u64,
    /// Units in them.
    pub units: u64,
    /// Their revenue.
    pub revenue: Money,
}

/// A time from which and a time before which orders were booked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Booked {
    /// From here on.
    pub from: Option<chrono::DateTime<chrono::Utc>>,
    /// Before this.
    pub before: Option<chrono::DateTime<chrono::Utc>>,
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn revenue() -> Document {
    doc! { "$multiply": ["$priceMinor", units_held()] }
}

impl Orders {
    async fn sums<T: DeserializeOwned>(&self, doing: &'static str, pipeline: Vec<Document>) -> Result<Vec<T>> {
        let rows = self.collection.clone_with_type::<Document>();
        let call = async { rows.aggregate(pipeline).await?.try_collect::<Vec<Document>>().await };
        let rows = within(self.long, doing, call).await?;
        let read =
            |row| bson::deserialize_from_document(row).map_err(|error| crate::error::Error::internal(doing, error));
        rows.into_iter().map(read).collect()
    }

    /// What was sold of each of these products of an event.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn product_sums(&self, event: EventId, products: &[ProductId]) -> Result<HashMap<ProductId, ProductSum>> {
        #[derive(Deserialize)]
        struct Key {
            product: ObjectId,
            status: String,
            currency: String,
        }
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            key: Key,
            units: i64,
            minor: i64,
        }
        let mut which = of_event(event);
        let ids: Vec<ObjectId> = products.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect();
        which.insert("productId", doc! { "$in": ids });
        let key = doc! { "product": "$productId", "status": "$status", "currency": "$currency" };
        let group = doc! { "_id": key, "units": { "$sum": units_held() }, "minor": { "$sum": revenue() } };
        let pipeline = vec![doc! { "$match": which }, doc! { "$group": group }];
        let mut sums: HashMap<ProductId, ProductSum> = HashMap::new();
        for row in self.sums::<Row>("summing products", pipeline).await? {
            let sum = sums.entry(ProductId::from_bytes(row.key.product.bytes())).or_default();
            match OrderStatus::parse(&row.key.status) {
                Some(OrderStatus::Confirmed) => {
                    sum.confirmed += unsigned(row.units);
                    let currency = money::currency(&row.key.currency);
                    sum.revenue.extend(currency.map(|currency| Money { minor: row.minor, currency }));
                }
                Some(OrderStatus::PendingPayment) => sum.pending += unsigned(row.units),
                Some(OrderStatus::Cancelled | OrderStatus::Expired) | None => {}
            }
        }
        Ok(sums)
    }

    /// What was sold in each span of this length in which something was, oldest first, at most `limit` of them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn series(&self, event: EventId, booked: Booked, span: Duration, limit: u32) -> Result<Vec<SpanSum>> {
        #[derive(Deserialize)]
        struct Key {
            at: i64,
            currency: String,
        }
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            key: Key,
            orders: i64,
            units: i64,
            minor: i64,
        }
        let mut which = of_event(event);
        which.insert("status", OrderStatus::Confirmed.as_str());
        let mut range = Document::new();
        if let Some(from) = booked.from {
            range.insert("$gte", DateTime::from_chrono(from));
        }
        if let Some(before) = booked.before {
            range.insert("$lt", DateTime::from_chrono(before));
        }
        if !range.is_empty() {
            which.insert("createdAt", range);
        }
        let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let at = doc! { "$toLong": "$createdAt" };
        let begins = doc! { "$subtract": [at.clone(), { "$mod": [at, span_ms] }] };
        let pipeline = vec![
            doc! { "$match": which },
            doc! { "$group": {
                "_id": { "at": begins, "currency": "$currency" },
                "orders": { "$sum": 1_i64 },
                "units": { "$sum": units_held() },
                "minor": { "$sum": revenue() },
            } },
            doc! { "$sort": { "_id.at": 1, "_id.currency": 1 } },
            doc! { "$limit": i64::from(limit) },
        ];
        let rows = self.sums::<Row>("summing over time", pipeline).await?;
        let read = |row: Row| {
            let currency = money::currency(&row.key.currency)?;
            Some(SpanSum {
                at: chrono::DateTime::from_timestamp_millis(row.key.at)?,
                orders: unsigned(row.orders),
                units: unsigned(row.units),
                revenue: Money { minor: row.minor, currency },
            })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }
}
