//! Ending: stop, remember, settle, compare, forget; in this order.
//!
//! 1. status STOPPED in Redis: no reservation after this
//! 2. phase STOPPED in MongoDB: the event is not live any more
//! 3. every booking becomes an order, and the counts are compared
//! 4. the keys are removed from Redis; the stopped status stays a month
//! 5. phase SETTLED in MongoDB: nothing is left to do
//!
//! Every step can be repeated: Ending again, in this process or another, goes through all of it and changes nothing that
//! is done. A failure leaves the status STOPPED and everything unsettled in place.

use super::open::state_lost;
use super::{KnownSale, Sale};
use crate::domain::event::SalePhase;
use crate::domain::ids::EventId;
use crate::domain::sale::{SaleAction, SaleStatus};
use crate::error::{Error, Result};
use crate::store::live::Transitioned;

/// An ended sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Orders in MongoDB.
    pub orders: u64,
    /// Reservations that could not be settled. They are kept in Redis and recorded in `deadLetters`.
    pub dead_letters: u64,
}

impl Sale {
    /// Ends a sale, or finishes one that was ended. Run it to its end even if the caller hangs up.
    ///
    /// # Errors
    /// [`Error::Transition`] if the sale never ran; a fault after which ending again goes on.
    pub async fn end(&self, sale: impl Into<KnownSale>) -> Result<Ended> {
        let sale = sale.into();
        match self.live.transition(sale.id, SaleAction::End, None).await? {
            Transitioned::Changed(from) => {
                tracing::info!(event = %sale.id, %from, "sale stopped");
                self.finish_end(sale.id).await
            }
            Transitioned::Refused(SaleStatus::Stopped) => self.finish_end(sale.id).await,
            // The stopped status has expired: what was to be done is done.
            Transitioned::Refused(SaleStatus::NotStarted) if sale.phase == Some(SalePhase::Settled) => {
                Ok(Ended { orders: self.mongo.orders.count_of_event(sale.id).await?, dead_letters: 0 })
            }
            Transitioned::Refused(SaleStatus::NotStarted) if sale.phase == Some(SalePhase::Stopped) => {
                Err(state_lost())
            }
            Transitioned::Refused(found) | Transitioned::TokenLost(found) => {
                let current = self.effective_status(sale, found).await?;
                Err(Error::Transition { current, attempted: SaleStatus::Stopped })
            }
        }
    }

    /// Steps 2 to 5, for a sale whose status is STOPPED.
    pub(super) async fn finish_end(&self, event: EventId) -> Result<Ended> {
        let running = [SalePhase::Opening, SalePhase::Live, SalePhase::Stopped];
        self.mongo.events.move_phase(event, &running, SalePhase::Stopped, None).await?;
        let settlement = self.settle(event).await?;
        let kept = self.clean_up(event, &settlement.dead).await?;
        if kept == 0 {
            // Another settlement may have found a booking unreadable before it was repaired, and say so only now.
            self.mongo.dead_letters.resolve_all(event).await?;
            self.mongo.events.move_phase(event, &[SalePhase::Stopped], SalePhase::Settled, None).await?;
        }
        let ended = Ended { orders: settlement.orders, dead_letters: kept };
        tracing::info!(event = %event, orders = ended.orders, dead_letters = ended.dead_letters, "sale settled");
        Ok(ended)
    }
}
