//! `lua/project.lua`: one batch of products into the live store.

use super::link::Link;
use super::{Live, OpeningToken, journal};
use crate::domain::ids::EventId;
use crate::domain::product::Product;
use crate::domain::sale::SaleStatus;
use crate::error::Result;

/// What came of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projected {
    /// This many products were written.
    Written(u64),
    /// Another process opens this sale now; nothing was written.
    TokenLost,
    /// The sale has started; nothing was written.
    Started(SaleStatus),
}

impl<L: Link> Live<L> {
    /// Writes a batch, all of it or nothing, and renews the opening token.
    ///
    /// # Errors
    /// When the live store does not answer; writing the batch again is safe.
    pub async fn project(
        &self,
        event: EventId,
        products: &[Product],
        token: &OpeningToken,
        ttl_ms: u64,
    ) -> Result<Projected> {
        let mut call = self.scripts.project.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.opening(event))
            .key(self.keys.product_keys(event))
            .key(self.keys.catalogue(event))
            .key(self.keys.bookings(event))
            .key(self.keys.journal(event))
            .arg(token.as_str())
            .arg(ttl_ms)
            .arg(journal::GROUP);
        for product in products {
            call.key(self.keys.product(product.id, event))
                .key(self.keys.product_meta(product.id, event))
                .key(self.keys.winners(event, product.id))
                .arg(product.id.to_string())
                .arg(product.units)
                .arg(product.price.minor)
                .arg(product.price.currency.code())
                .arg(product.per_buyer_limit)
                .arg(&product.title)
                .arg(&product.description)
                .arg(&product.image_url)
                .arg(product.seller.to_string())
                .arg(event.to_string());
        }
        let reply = self.invoke("project", &call).await?;
        match reply.tag() {
            "PROJECTED" => Ok(Projected::Written(reply.parse(1)?)),
            "TOKEN_LOST" => Ok(Projected::TokenLost),
            "STARTED" => Ok(Projected::Started(reply.status(1)?)),
            _ => Err(reply.damaged("unknown tag")),
        }
    }
}
