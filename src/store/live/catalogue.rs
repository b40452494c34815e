//! The running sale as buyers see it. What a buyer is shown here is what a reservation takes.

use super::Live;
use super::link::Link;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::product::LiveProduct;
use crate::error::{Error, Result};

type ProductFields = (Option<u64>, Option<i64>, Option<String>, Option<u32>, Option<u64>, Option<i64>, Option<u64>);
type MetaFields = (Option<String>, Option<String>, Option<String>);

impl<L: Link> Live<L> {
    /// How many products were projected.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn product_count(&self, event: EventId) -> Result<u64> {
        let mut call = redis::cmd("ZCARD");
        call.arg(self.keys.catalogue(event));
        self.query("counting products", &call).await
    }

    /// How many buyers have each of these products.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn winner_counts(&self, event: EventId, ids: &[ProductId]) -> Result<Vec<u64>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for id in ids {
            pipeline.cmd("SCARD").arg(self.keys.winners(event, *id));
        }
        self.query_all("counting buyers", &pipeline).await
    }

    /// The seller whose products these are; `None` if nothing is projected.
    ///
    /// # Errors
    /// When the live store does not answer, or holds no seller for a product that it lists.
    pub async fn seller(&self, event: EventId) -> Result<Option<UserId>> {
        let Some(first) = self.product_ids(event, None, 1).await?.pop() else { return Ok(None) };
        let mut call = redis::cmd("HGET");
        call.arg(self.keys.product_meta(first, event)).arg("sellerId");
        let text: Option<String> = self.query("reading a sale's seller", &call).await?;
        let damaged = || Error::Damaged { doing: "reading a sale's seller", detail: format!("product {first}") };
        text.and_then(|text| text.parse().ok()).ok_or_else(damaged).map(Some)
    }

    /// A page of product ids in order, after the given one.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn product_ids(&self, event: EventId, after: Option<ProductId>, limit: usize) -> Result<Vec<ProductId>> {
        let from = after.map_or_else(|| "-".to_owned(), |id| format!("({id}"));
        let mut call = redis::cmd("ZRANGEBYLEX");
        call.arg(self.keys.catalogue(event)).arg(from).arg("+").arg("LIMIT").arg(0).arg(limit);
        let ids: Vec<String> = self.query("listing products", &call).await?;
        ids.iter()
            .map(|id| id.parse().map_err(|_| Error::Damaged { doing: "listing products", detail: id.clone() }))
            .collect()
    }

    /// The products of a running sale, in one round trip for each five hundred.
    ///
    /// # Errors
    /// When the live store does not answer, or a product that the sale lists is gone or damaged: never a stock of zero
    /// that nobody counted.
    pub async fn products(&self, event: EventId, ids: &[ProductId]) -> Result<Vec<LiveProduct>> {
        let mut products = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(500) {
            let mut pipeline = redis::pipe();
            for id in chunk {
                let fields = ["stock", "price", "currency", "limit", "initial", "restocked", "held"];
                pipeline.cmd("HMGET").arg(self.keys.product(*id, event)).arg(&fields);
                pipeline.cmd("HMGET").arg(self.keys.product_meta(*id, event)).arg(&["title", "description", "image"]);
            }
            let values: Vec<redis::Value> = self.query_all("reading products", &pipeline).await?;
            for (id, pair) in chunk.iter().zip(values.chunks_exact(2)) {
                products.push(live_product(*id, pair)?);
            }
        }
        Ok(products)
    }
}

fn live_product(id: ProductId, pair: &[redis::Value]) -> Result<LiveProduct> {
    let damaged = |what: &str| Error::Damaged { doing: "reading products", detail: format!("product {id}: {what}") };
    let fields: ProductFields =
        redis::from_redis_value_ref(&pair[0]).map_err(|_| damaged("its hash cannot be read"))?;
    let meta: MetaFields = redis::from_redis_value_ref(&pair[1]).map_err(|_| damaged("its text cannot be read"))?;
    let (Some(stock), Some(minor), Some(code), Some(limit), Some(initial), Some(restocked), held) = fields else {
        return Err(damaged("its hash is gone or has a missing field"));
    };
    let currency = money::currency(&code).ok_or_else(|| damaged("its currency is unknown"))?;
    Ok(LiveProduct {
        id,
        title: meta.0.unwrap_or_default(),
        description: meta.1.unwrap_or_default(),
        image_url: meta.2.unwrap_or_default(),
        price: Money { minor, currency },
        available_units: stock,
        held_units: held.unwrap_or_default(),
        initial_units: initial.saturating_add_signed(restocked),
        per_buyer_limit: limit,
    })
}
