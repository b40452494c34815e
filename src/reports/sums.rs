//! What was sold of each product, and when.

use std::time::Duration;

use super::Reports;
use crate::domain::ids::EventId;
use crate::domain::page::{Listed, Page};
use crate::domain::product::Product;
use crate::error::{Error, Result};
use crate::store::mongo::order_sums::ProductSum;
pub use crate::store::mongo::order_sums::{Booked, SpanSum};

/// Spans of a series. A week of minutes is fewer.
pub const SPANS_MAX: u32 = 11_000;

/// How a product sells.
#[derive(Debug, Clone)]
pub struct SellThrough {
    /// The product.
    pub product: Product,
    /// Units that were ever for sale: those of the catalogue, and those restocked, less those withdrawn.
    pub offered: u64,
    /// What was sold of it.
    pub sum: ProductSum,
}

impl SellThrough {
    /// Confirmed units in ten-thousandths of those offered; 0 if none were.
    #[must_use]
    pub fn ten_thousandths(&self) -> u64 {
        (self.sum.confirmed * 10_000).checked_div(self.offered).unwrap_or(0)
    }
}

impl Reports {
    /// How each product of an event sells, in the order of the catalogue.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn sell_through(&self, event: EventId, page: Page) -> Result<Listed<SellThrough>> {
        let listed = self.mongo.products.of_event(event, page).await?;
        let ids: Vec<_> = listed.items.iter().map(|product| product.id).collect();
        let (mut sums, restocked) =
            tokio::try_join!(self.mongo.orders.product_sums(event, &ids), self.mongo.restocks.sums(event))?;
        let sold = |product: Product| {
            let added = restocked.get(&product.id).copied().unwrap_or(0);
            let offered = u64::from(product.units).saturating_add_signed(added);
            let sum = sums.remove(&product.id).unwrap_or_default();
            SellThrough { product, offered, sum }
        };
        Ok(Listed { items: listed.items.into_iter().map(sold).collect(), next: listed.next })
    }

    /// What was sold in each span of this length in which something was, oldest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are more than 11,000 of them; when the database does not answer.
    pub async fn series(&self, event: EventId, booked: Booked, span: Duration) -> Result<Vec<SpanSum>> {
        let sums = self.mongo.orders.series(event, booked, span, SPANS_MAX + 1).await?;
        if sums.len() > SPANS_MAX as usize {
            return Err(Error::invalid(
                "span",
                format!("there are more than {SPANS_MAX}; ask for hours, or for less time"),
            ));
        }
        Ok(sums)
    }
}
