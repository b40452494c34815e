//! Ending: stop, remember, settle, compare, forget; in this order.
//!
//! 1. status STOPPED in Redis: no reservation after this
//! 2. phase STOPPED in MongoDB: the event is not live any more
//! 3. the journal's tail is drained, and orders are compared with bookings and changes
//! 4. the keys are removed from Redis; the stopped status stays a month
//! 5. phase SETTLED in MongoDB: nothing is left to do
//!
//! Every step can be repeated: ending again, in this process or another, goes through all of it and changes nothing that
//! is done. One process at a time does it, under a lease; another that is asked waits for it. A failure leaves the status
//! STOPPED and everything unsettled in place, and recovery goes on.

use std::time::Duration;

use super::lease::Lease;
use super::open::state_lost;
use super::{Durable, KnownSale, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::EventId;
use crate::domain::sale::{SaleAction, SaleStatus};
use crate::error::{Code, Error, Result};
use crate::store::live::Transitioned;
use crate::store::live::link::Link;

/// How often a process that waits for another's settlement looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Looks that may fail, one after the other, each with the database's deadline.
const FAILURES_MAX: u32 = 10;

/// An ended sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Orders in MongoDB.
    pub orders: u64,
    /// Reservations that could not be settled. They are kept in Redis and recorded in `deadLetters`.
    pub dead_letters: u64,
}

/// A sale that is being settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// Changes of reservations that are durable: as many as orders, where each was changed once. Orders are not counted for
    /// this: whoever asks how far a large sale is would hold it up.
    pub orders: u64,
    /// Reservations that are in Redis still.
    pub remaining: u64,
}

impl<L: Link, D: Durable> Sale<L, D> {
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
            Transitioned::Refused(SaleStatus::Stopped) if self.is_cleaned_up(sale).await? => {
                // A slow settlement may have said only afterwards what it had found.
                self.durable.resolve_all_dead(sale.id).await?;
                self.ended(sale.id).await
            }
            Transitioned::Refused(SaleStatus::Stopped) => self.finish_end(sale.id).await,
            // The stopped status has expired: what was to be done is done.
            Transitioned::Refused(SaleStatus::NotStarted) if sale.phase == Some(SalePhase::Settled) => {
                self.ended(sale.id).await
            }
            Transitioned::Refused(SaleStatus::NotStarted) if sale.phase == Some(SalePhase::Stopped) => {
                Err(state_lost())
            }
            Transitioned::Refused(found)
            | Transitioned::TokenLost(found)
            | Transitioned::Held(found)
            | Transitioned::TooEarly(found) => {
                let current = self.effective_status(sale, found).await?;
                Err(Error::Transition { current, attempted: SaleStatus::Stopped })
            }
        }
    }

    /// Nothing is left of a settled sale but its stopped status.
    async fn is_cleaned_up(&self, sale: KnownSale) -> Result<bool> {
        Ok(sale.phase == Some(SalePhase::Settled) && !self.live.projected(sale.id).await?)
    }

    /// How far the settlement of an ended sale has come.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn settling(&self, event: EventId) -> Result<Settling> {
        let remaining = self.live.booking_count(event).await?;
        let orders = match self.live.journal_state(event).await? {
            Some(journal) => journal.appended.saturating_sub(journal.length),
            None => self.ended(event).await?.orders,
        };
        Ok(Settling { orders, remaining })
    }

    /// Steps 2 to 5, for a sale whose status is STOPPED.
    pub(super) async fn finish_end(&self, event: EventId) -> Result<Ended> {
        let running = [SalePhase::Opening, SalePhase::Live, SalePhase::Stopped];
        self.durable.move_phase(event, &running, SalePhase::Stopped, None).await?;
        if let Some(ended) = self.settle_unless_taken(event).await? {
            return Ok(ended);
        }
        let mut failures = 0;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            match self.settled_meanwhile(event).await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => failures = 0,
                // Whoever settles a large sale keeps the database busy; that is no reason to give up waiting.
                Err(error) if error.code() == Code::DatabaseUnavailable && failures < FAILURES_MAX => failures += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// What the sale has come to, if another process has settled it, or if nobody does and this one has now.
    async fn settled_meanwhile(&self, event: EventId) -> Result<Option<Ended>> {
        if self.durable.event(event).await?.is_some_and(|event| event.phase == SalePhase::Settled) {
            return self.ended(event).await.map(Some);
        }
        self.settle_unless_taken(event).await
    }

    /// `None` if another process settles this sale.
    pub(super) async fn settle_unless_taken(&self, event: EventId) -> Result<Option<Ended>> {
        // A name of its own: two settlements of one process are two as well.
        let holder = format!("{} {}", self.process, uuid::Uuid::new_v4().simple());
        let lease = Lease { name: format!("settle {event}"), holder };
        self.under_lease(&lease, self.settle_and_clean_up(event)).await
    }

    async fn settle_and_clean_up(&self, event: EventId) -> Result<Ended> {
        let mut orders = self.settle(event).await?;
        self.codes_follow_all(event).await?;
        let had_letters = !self.durable.dead_keys(event).await?.is_empty();
        let dead_letters = self.clean_up(event, orders).await?;
        if had_letters {
            // Some of what could not be settled may have been, at last.
            orders = self.durable.count_orders(event).await?;
        }
        self.announce_ending(event, dead_letters).await?;
        if dead_letters == 0 {
            // Another settlement may have found a booking unreadable before it was repaired, and say so only now.
            self.durable.resolve_all_dead(event).await?;
            self.durable.record_settled(event, orders).await?;
        }
        let ended = Ended { orders, dead_letters };
        tracing::info!(event = %event, orders = ended.orders, dead_letters, "sale settled");
        Ok(ended)
    }

    /// What an ended sale has come to.
    pub(super) async fn ended(&self, event: EventId) -> Result<Ended> {
        let orders = match self.durable.event(event).await? {
            Some(event) => self.orders_of(&event).await?,
            None => self.durable.count_orders(event).await?,
        };
        Ok(Ended { orders, dead_letters: 0 })
    }

    /// How many orders a sale has now, or came to.
    pub(super) async fn orders_of(&self, event: &Event) -> Result<u64> {
        match event.settled_orders {
            Some(orders) => Ok(orders),
            None => self.durable.count_orders(event.id).await,
        }
    }
}
