//! The status of a sale, as both stores together know it.

use super::Sale;
use super::open::state_lost;
use crate::domain::event::{Event, SalePhase};
use crate::domain::sale::SaleStatus;
use crate::error::Result;

/// A sale as its seller watches it.
#[derive(Debug, Clone, Copy)]
pub struct SaleView {
    /// What it is doing.
    pub status: SaleStatus,
    /// What MongoDB knows of it.
    pub phase: SalePhase,
    /// Reservations in the live store now.
    pub reservations: u64,
    /// Products for sale in the live store now.
    pub products: u64,
    /// Orders in MongoDB now.
    pub orders: u64,
}

impl Sale {
    /// The sale's status and counters.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn view(&self, event: &Event) -> Result<SaleView> {
        let status = self.status(event).await?;
        Ok(SaleView {
            status,
            phase: event.phase,
            reservations: self.live.booking_count(event.id).await?,
            products: self.live.product_count(event.id).await?,
            orders: self.mongo.orders.count_of_event(event.id).await?,
        })
    }

    /// The sale's status.
    ///
    /// # Errors
    /// When the live store does not answer, or has lost the sale.
    pub async fn status(&self, event: &Event) -> Result<SaleStatus> {
        let found = self.live.status(event.id).await?;
        self.effective_status(event, found).await
    }

    /// An absent status means "not started" only if MongoDB does not know better: the stopped status expires after a
    /// month, and a sale that was open cannot turn back into one that was not.
    pub(super) async fn effective_status(&self, event: &Event, found: SaleStatus) -> Result<SaleStatus> {
        match (found, event.phase) {
            (SaleStatus::NotStarted, SalePhase::Stopped | SalePhase::Settled) => Ok(SaleStatus::Stopped),
            (SaleStatus::NotStarted, SalePhase::Live) if !self.live.projected(event.id).await? => Err(state_lost()),
            (found, _) => Ok(found),
        }
    }
}
