//! Pause and resume: one compare-and-set each.

use super::Sale;
use crate::domain::event::Event;
use crate::domain::sale::SaleAction;
use crate::error::{Error, Result};
use crate::store::live::Transitioned;

impl Sale {
    /// Stops accepting reservations for a while.
    ///
    /// # Errors
    /// [`Error::Transition`] unless the sale is live.
    pub async fn pause(&self, event: &Event) -> Result<()> {
        self.step(event, SaleAction::Pause).await
    }

    /// Accepts reservations again.
    ///
    /// # Errors
    /// [`Error::Transition`] unless the sale is paused.
    pub async fn resume(&self, event: &Event) -> Result<()> {
        self.step(event, SaleAction::Resume).await
    }

    async fn step(&self, event: &Event, action: SaleAction) -> Result<()> {
        match self.live.transition(event.id, action, None).await? {
            Transitioned::Changed(from) => {
                tracing::info!(event = %event.id, %from, to = %action.target(), "sale status changed");
                Ok(())
            }
            Transitioned::Refused(found) | Transitioned::TokenLost(found) => {
                let current = self.effective_status(event, found).await?;
                Err(Error::Transition { current, attempted: action.target() })
            }
        }
    }
}
