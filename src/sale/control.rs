//! Pause and resume: one compare-and-set each.

use super::{Durable, KnownSale, Sale};
use crate::domain::sale::SaleAction;
use crate::error::{Code, Error, Result};
use crate::store::live::Transitioned;
use crate::store::live::link::Link;

impl<L: Link, D: Durable> Sale<L, D> {
    /// Stops accepting reservations for a while.
    ///
    /// # Errors
    /// [`Error::Transition`] unless the sale is live.
    pub async fn pause(&self, sale: impl Into<KnownSale>) -> Result<()> {
        self.step(sale.into(), SaleAction::Pause).await
    }

    /// Accepts reservations again.
    ///
    /// # Errors
    /// [`Error::Transition`] unless the sale is paused.
    pub async fn resume(&self, sale: impl Into<KnownSale>) -> Result<()> {
        self.step(sale.into(), SaleAction::Resume).await
    }

    async fn step(&self, sale: KnownSale, action: SaleAction) -> Result<()> {
        match self.live.transition(sale.id, action, None).await? {
            Transitioned::Changed(from) => {
                tracing::info!(event = %sale.id, %from, to = %action.target(), "sale status changed");
                Ok(())
            }
            Transitioned::Held(_) => Err(Error::refused(
                Code::SaleHeld,
                "the sale is being repaired; its status says when it can be resumed",
            )),
            Transitioned::Refused(found) | Transitioned::TokenLost(found) | Transitioned::TooEarly(found) => {
                let current = self.effective_status(sale, found).await?;
                Err(Error::Transition { current, attempted: action.target() })
            }
        }
    }
}
