//! `lua/project.lua`: one batch of products into the live store.

use std::collections::HashMap;

use super::link::Link;
use super::{Live, OpeningToken, journal};
use crate::domain::ids::{EventId, ProductId};
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

/// What is projected with every product of a sale.
#[derive(Debug, Clone, Default)]
pub struct Projecting {
    /// Milliseconds in which a reservation is to be paid; 0 confirms at once.
    pub window_ms: u64,
    /// When the sale ends by itself, in milliseconds since 1970.
    pub ends_at_ms: Option<i64>,
    /// Units added since the sale was first opened, less those withdrawn, by product.
    pub restocked: HashMap<ProductId, i64>,
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
        with: &Projecting,
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
            .key(self.keys.holds(event))
            .key(self.keys.operations(event))
            .arg(token.as_str())
            .arg(ttl_ms)
            .arg(journal::GROUP)
            .arg(with.window_ms)
            .arg(with.ends_at_ms.map(|at| at.to_string()).unwrap_or_default());
        for product in products {
            call.key(self.keys.product(product.id, event))
                .key(self.keys.product_meta(product.id, event))
                .key(self.keys.winners(event, product.id))
                .arg(product.id.to_string())
                .arg(product.units)
                .arg(with.restocked.get(&product.id).copied().unwrap_or_default().max(-i64::from(product.units)))
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
