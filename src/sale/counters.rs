//! Live counters: how much of each product is sold, and what that is worth.

use std::collections::BTreeMap;

use super::{Durable, Sale};
use crate::domain::ids::{EventId, ProductId};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::product::UnitCount;
use crate::domain::sale::SaleStatus;
use crate::error::Result;
use crate::store::live::link::Link;

/// Sales of more products are summed only for a seller who asks: it takes a look at each of them.
const SUMMED_UNASKED_MAX: u64 = 2_000;
/// Products that are listed at once while a sale is summed.
const IDS_PER_PAGE: usize = 1_000;

/// A running sale in numbers.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// A page of its products, in the order of their ids.
    pub products: Listed<UnitCount>,
    /// Over all products. `None` if the sale does not run, or there are very many and nobody asked.
    pub totals: Option<Totals>,
}

/// Sums over all products of a sale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Units at the start, with those added since.
    pub units: u64,
    /// Units that can be reserved.
    pub stock: u64,
    /// Units that wait for payment.
    pub held: u64,
    /// Units that are sold.
    pub confirmed: u64,
    /// What the sold units cost, in minor units, by currency.
    pub revenue: BTreeMap<&'static str, i64>,
}

impl Totals {
    fn add(&mut self, product: &UnitCount) {
        self.units += product.units;
        self.stock += product.stock;
        self.held += product.held;
        self.confirmed += product.confirmed;
        let revenue = product.revenue();
        let sum = self.revenue.entry(revenue.currency.code()).or_default();
        *sum = sum.saturating_add(revenue.minor);
    }
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// The counters of a running sale: a page of its products, and the sums over all if there are not very many or `sum` is
    /// set. Each product is counted at one moment; the sums are not of one moment while the sale runs. Nothing of a sale
    /// that does not run.
    ///
    /// # Errors
    /// When the live store does not answer, or has a damaged product.
    pub async fn counters(&self, event: EventId, page: Page, sum: bool) -> Result<Counters> {
        let counted = self.count(event, page, sum).await;
        // Asked afterwards: while it runs, all products are there; once it has stopped they go, one after the other.
        match self.live.status(event).await? {
            SaleStatus::Live | SaleStatus::Paused => counted,
            SaleStatus::NotStarted | SaleStatus::Stopped => Ok(Counters::default()),
        }
    }

    async fn count(&self, event: EventId, page: Page, sum: bool) -> Result<Counters> {
        let after = page.after.map(|cursor| ProductId::from_bytes(cursor.id));
        let ids = self.live.product_ids(event, after, page.limit as usize + 1).await?;
        let listed = Listed::from_rows(ids, page, |id| Cursor { created_at_ms: 0, id: id.bytes() });
        let products = Listed { items: self.live.unit_counts(event, &listed.items).await?, next: listed.next };
        let totals = match self.live.product_count(event).await? {
            // The page is the whole sale.
            _ if after.is_none() && products.next.is_none() => Some(summed(&products.items)),
            count if sum || count <= SUMMED_UNASKED_MAX => Some(self.totals(event).await?),
            _ => None,
        };
        Ok(Counters { products, totals })
    }

    async fn totals(&self, event: EventId) -> Result<Totals> {
        let (mut totals, mut after) = (Totals::default(), None);
        loop {
            let ids = self.live.product_ids(event, after, IDS_PER_PAGE).await?;
            let Some(last) = ids.last() else { return Ok(totals) };
            after = Some(*last);
            self.live.unit_counts(event, &ids).await?.iter().for_each(|product| totals.add(product));
        }
    }
}

fn summed(products: &[UnitCount]) -> Totals {
    let mut totals = Totals::default();
    products.iter().for_each(|product| totals.add(product));
    totals
}
