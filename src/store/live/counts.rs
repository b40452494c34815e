//! What has become of each product's units, for the seller who watches the sale.

use super::Live;
use super::link::Link;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::money::{self, Money};
use crate::domain::product::UnitCount;
use crate::error::{Error, Result};

type Fields = (Option<u64>, Option<u64>, Option<u64>, Option<i64>, Option<i64>, Option<String>);

/// Products that one round trip reads.
const CHUNK: usize = 500;

impl<L: Link> Live<L> {
    /// The units of these products of a running sale, in one round trip for each five hundred.
    ///
    /// # Errors
    /// When the live store does not answer, or a product that the sale lists is gone or damaged.
    pub async fn unit_counts(&self, event: EventId, ids: &[ProductId]) -> Result<Vec<UnitCount>> {
        let mut counts = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(CHUNK) {
            let mut pipeline = redis::pipe();
            for id in chunk {
                let fields = ["stock", "held", "initial", "restocked", "price", "currency"];
                pipeline.cmd("HMGET").arg(self.keys.product(*id, event)).arg(&fields);
            }
            let rows: Vec<Fields> = self.query_all("counting units", &pipeline).await?;
            for (id, fields) in chunk.iter().zip(rows) {
                let damaged = || Error::Damaged { doing: "counting units", detail: format!("product {id}") };
                counts.push(count(*id, fields).ok_or_else(damaged)?);
            }
        }
        Ok(counts)
    }
}

/// `None` if a field is missing, or there are more units than there can be.
fn count(id: ProductId, fields: Fields) -> Option<UnitCount> {
    let (Some(stock), held, Some(initial), Some(restocked), Some(minor), Some(code)) = fields else { return None };
    let (held, units) = (held.unwrap_or_default(), initial.checked_add_signed(restocked)?);
    let confirmed = units.checked_sub(stock)?.checked_sub(held)?;
    Some(UnitCount { id, units, stock, held, confirmed, price: Money { minor, currency: money::currency(&code)? } })
}
