//! The status of a sale, as both stores together know it.

use chrono::{DateTime, Utc};

use super::open::state_lost;
use super::{Durable, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, UserId};
use crate::domain::sale::SaleStatus;
use crate::domain::schedule::ScheduleProblem;
use crate::error::{Dependency, Error, Result};
use crate::store::live::Held;
use crate::store::live::link::Link;

/// A sale to be controlled. A running sale can be paused and stopped while MongoDB is away; then its phase is unknown.
#[derive(Debug, Clone, Copy)]
pub struct KnownSale {
    /// Its event.
    pub id: EventId,
    /// What MongoDB knows of it, if MongoDB answers.
    pub phase: Option<SalePhase>,
}

impl From<&Event> for KnownSale {
    fn from(event: &Event) -> Self {
        Self { id: event.id, phase: Some(event.phase) }
    }
}

/// A sale as its seller watches it.
#[derive(Debug, Clone)]
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
    /// Why the sale is held, if it is.
    pub held: Option<Held>,
    /// Why it has not opened by itself, if it should have.
    pub problem: Option<ScheduleProblem>,
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// The sale's status and counters.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn view(&self, event: &Event) -> Result<SaleView> {
        let status = self.status(event).await?;
        let preparing = event.auto_open && event.phase == SalePhase::Draft;
        let problem = if preparing { self.durable.unopened(event.id).await? } else { None };
        Ok(SaleView {
            status,
            phase: event.phase,
            reservations: self.live.booking_count(event.id).await?,
            products: self.live.product_count(event.id).await?,
            orders: self.orders_of(event).await?,
            held: self.live.held(event.id).await?,
            problem,
        })
    }

    /// The sale's status.
    ///
    /// # Errors
    /// When the live store does not answer, or has lost the sale.
    pub async fn status(&self, event: &Event) -> Result<SaleStatus> {
        let found = self.live.status(event.id).await?;
        self.effective_status(event.into(), found).await
    }

    /// The sale's status as buyers are told it, and the moment of the live store's clock at which it is that.
    ///
    /// # Errors
    /// When the live store does not answer, or has lost the sale.
    pub async fn told(&self, event: &Event) -> Result<(SaleStatus, DateTime<Utc>)> {
        let (found, now_ms) = self.live.status_and_time(event.id).await?;
        let now = DateTime::from_timestamp_millis(now_ms).unwrap_or_default();
        let status = self.effective_status(event.into(), found).await?;
        Ok((event.status_at(status, now), now))
    }

    /// An absent status means "not started" only if MongoDB does not know better: the stopped status expires after a
    /// month, and a sale that was open cannot turn back into one that was not.
    pub(super) async fn effective_status(&self, sale: KnownSale, found: SaleStatus) -> Result<SaleStatus> {
        match (found, sale.phase) {
            (SaleStatus::NotStarted, Some(SalePhase::Stopped | SalePhase::Settled)) => Ok(SaleStatus::Stopped),
            (SaleStatus::NotStarted, Some(SalePhase::Live)) if self.was_lost(sale.id).await? => Err(state_lost()),
            (SaleStatus::NotStarted, None) => {
                Err(Error::timed_out(Dependency::Database, "asking whether a sale was open"))
            }
            (found, _) => Ok(found),
        }
    }

    /// The seller of a sale, as the live store knows it: for control while MongoDB is away.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn seller_of(&self, event: EventId) -> Result<Option<UserId>> {
        self.live.seller(event).await
    }
}
