//! Restocking a running sale: units are added, or withdrawn if nobody has them.
//!
//! Order of writes: the restocking is recorded in MongoDB, the live store decides it, and the record says so. A crash in
//! between leaves a record that recovery brings to its end; a sale that is rebuilt has every unit that was added and none
//! that was withdrawn. The same operation id is the same restocking, however often it comes.

use super::{Durable, Sale};
use crate::domain::event::Event;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::product::UNITS_MAX;
use crate::domain::restock::{Restock, RestockState, Restocking};
use crate::error::{Code, Error, Result};
use crate::store::live::link::Link;

/// What a product has after a restocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restocked {
    /// Units that can be reserved.
    pub stock: u64,
    /// Units added since the sale was opened, less those withdrawn.
    pub restocked: i64,
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Adds `units` to a product of a running sale, or withdraws them if the number is negative.
    ///
    /// # Errors
    /// [`Code::RestockRefused`], [`Code::VouchersShort`], [`Code::ProductNotFound`], [`Code::SaleNotActive`]: nothing was changed.
    /// [`Code::IdempotencyKeyReused`] if the operation was another one. When a store does not answer: asking again with
    /// the same operation is safe.
    pub async fn restock(&self, event: &Event, product: ProductId, operation: String, units: i64) -> Result<Restocked> {
        let at = self.clock.now();
        let wanted = Restock { operation, event: event.id, product, units, state: RestockState::Pending, at };
        let recorded = self.durable.record_restock(&wanted).await?;
        if (recorded.product, recorded.units) != (product, units) {
            return Err(Error::refused(
                Code::IdempotencyKeyReused,
                "this operation id belongs to another restocking; use a new one for each",
            ));
        }
        let decided = self.decide_restock(&recorded).await?;
        match decided {
            Restocking::Done { stock, restocked } | Restocking::Before { stock, restocked } => {
                tracing::info!(event = %event.id, %product, units, stock, "product restocked");
                Ok(Restocked { stock, restocked })
            }
            Restocking::Short { stock } => Err(Error::refused(
                Code::RestockRefused,
                format!("{stock} units are unsold; no more than those can be withdrawn"),
            )),
            Restocking::Full => {
                Err(Error::refused(Code::RestockRefused, format!("a product has at most {UNITS_MAX} units")))
            }
            Restocking::UnknownProduct => Err(Error::refused(Code::ProductNotFound, "product not found")),
            Restocking::NotRunning(_) => Err(Error::refused(
                Code::SaleNotActive,
                "only a sale that is open can be restocked; before, edit the product",
            )),
        }
    }

    /// Lets the live store decide a recorded restocking, and records what it decided.
    async fn decide_restock(&self, restock: &Restock) -> Result<Restocking> {
        // Recorded first: it counts among what codes are to be kept for.
        if restock.state == RestockState::Pending && restock.units > 0 {
            let missing = self.keep_more_codes(restock.product).await?;
            if missing > 0 {
                self.durable.discard_restock(restock).await?;
                let message =
                    format!("{missing} more vouchers are needed than the seller's client has: import them first");
                return Err(Error::refused(Code::VouchersShort, message));
            }
        }
        let decided = self.live.restock(restock.event, restock.product, &restock.operation, restock.units).await?;
        match decided {
            Restocking::Done { .. } | Restocking::Before { .. } => {
                if restock.state == RestockState::Pending {
                    self.durable.restock_applied(restock).await?;
                }
            }
            // It counts: the live store has lost it, and it is given back when the sale is repaired.
            _ if restock.state == RestockState::Applied => {}
            Restocking::Short { .. } | Restocking::Full | Restocking::UnknownProduct | Restocking::NotRunning(_) => {
                self.durable.discard_restock(restock).await?;
            }
        }
        Ok(decided)
    }

    /// Brings restockings to their end that a process left in between, and with `lost` those that the live store has lost.
    pub(super) async fn finish_restocks(&self, event: EventId, lost: bool) -> Result<()> {
        let mut open = self.durable.restocks(event, RestockState::Pending).await?;
        if lost {
            open.extend(self.durable.restocks(event, RestockState::Applied).await?);
        }
        for restock in open {
            let decided = match self.decide_restock(&restock).await {
                Err(error) if error.code() == Code::VouchersShort => continue,
                decided => decided?,
            };
            if !matches!(decided, Restocking::Before { .. }) {
                let operation = &restock.operation;
                tracing::warn!(%event, operation, units = restock.units, ?decided, "a restocking was brought to its end");
            }
        }
        Ok(())
    }
}
