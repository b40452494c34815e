//! `lua/restock.lua`: units added to a product of a running sale, or withdrawn.

use super::Live;
use super::link::Link;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::product::UNITS_MAX;
use crate::domain::restock::Restocking;
use crate::error::Result;

impl<L: Link> Live<L> {
    /// Adds `units` to a product, or withdraws them if the number is negative; once for each operation id.
    ///
    /// # Errors
    /// When the live store does not answer: asking again with the same id is safe.
    /// [`crate::error::Error::Damaged`]: nothing was changed.
    pub async fn restock(&self, event: EventId, product: ProductId, operation: &str, units: i64) -> Result<Restocking> {
        let mut call = self.scripts.restock.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.product(product, event))
            .key(self.keys.operations(event))
            .key(self.keys.product_keys(event))
            .arg(format!("restock {product} {operation}"))
            .arg(units)
            .arg(UNITS_MAX);
        let reply = self.invoke("restock", &call).await?;
        match reply.tag() {
            "RESTOCKED" => Ok(Restocking::Done { stock: reply.parse(1)?, restocked: reply.parse(2)? }),
            "BEFORE" => Ok(Restocking::Before { stock: reply.parse(1)?, restocked: reply.parse(2)? }),
            "SHORT" => Ok(Restocking::Short { stock: reply.parse(1)? }),
            "FULL" => Ok(Restocking::Full),
            "UNKNOWN_PRODUCT" => Ok(Restocking::UnknownProduct),
            "NOT_RUNNING" => Ok(Restocking::NotRunning(reply.status(1)?)),
            "DAMAGED" => Err(reply.damaged("the script refused")),
            _ => Err(reply.damaged("unknown tag")),
        }
    }
}
