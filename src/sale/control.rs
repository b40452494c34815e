//! Pause and resume: one compare-and-set each.

use super::{KnownSale, Sale};
use crate::domain::sale::SaleAction;
use crate::error::{Error, Result};
use crate::store::live::Transitioned;

impl Sale {
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
            Transitioned::Refused(found) | Transitioned::TokenLost(found) => {
                let current = self.effective_status(sale, found).await?;
                Err(Error::Transition { current, attempted: action.target() })
            }
        }
    }
}
