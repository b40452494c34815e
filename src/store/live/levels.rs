//! How much of each product there is now, for those who watch a sale.

use super::Live;
use super::link::Link;
use super::transition::parse_status;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::product::StockLevel;
use crate::domain::sale::SaleStatus;
use crate::error::{Error, Result};

/// What one look at a sale found.
#[derive(Debug, Clone)]
pub struct Levels {
    /// The sale's status, read after the products: while it is live or paused, they were all there.
    pub status: SaleStatus,
    /// The live store's time in milliseconds since 1970.
    pub now_ms: i64,
    /// One for each product that was asked for; `None` if the live store does not have it.
    pub products: Vec<Option<StockLevel>>,
}

impl<L: Link> Live<L> {
    /// The sale's status, the time, and the stock of these products, in one round trip.
    ///
    /// # Errors
    /// When the live store does not answer, or holds something that is no status or no number.
    pub async fn levels(&self, event: EventId, ids: &[ProductId]) -> Result<Levels> {
        const DOING: &str = "watching a sale";
        let mut pipeline = redis::pipe();
        for id in ids {
            pipeline.cmd("HMGET").arg(self.keys.product(*id, event)).arg(&["stock", "held"]);
        }
        pipeline.cmd("GET").arg(self.keys.status(event)).cmd("TIME");
        let mut values: Vec<redis::Value> = self.query_all(DOING, &pipeline).await?;
        let broken = |_| Error::Damaged { doing: DOING, detail: format!("event {event}") };
        let time = values.pop().unwrap_or(redis::Value::Nil);
        let status = values.pop().unwrap_or(redis::Value::Nil);
        let (seconds, micros): (i64, i64) = redis::from_redis_value(time).map_err(broken)?;
        let status = parse_status(DOING, redis::from_redis_value(status).map_err(broken)?)?;
        let mut products = Vec::with_capacity(values.len());
        for value in values {
            let (stock, held): (Option<u64>, Option<u64>) = redis::from_redis_value(value).map_err(broken)?;
            products.push(stock.map(|available| StockLevel { available, held: held.unwrap_or_default() }));
        }
        Ok(Levels { status, now_ms: seconds * 1_000 + micros / 1_000, products })
    }
}
