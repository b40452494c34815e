//! Recovery: finds sales whose two stores disagree, and repairs what has one right answer. Takes no input and is
//! idempotent; one process at a time leads, by a lease that expires.
//!
//! | MongoDB | Redis | what happened | repair |
//! |---|---|---|---|
//! | OPENING, or LIVE with a projection and no order | `NOT_STARTED`, no token | the opener died before its flip | undo the opening |
//! | LIVE | `NOT_STARTED`, no token | Redis lost the sale | rebuild it from catalogue and orders, PAUSED |
//! | LIVE | LIVE or PAUSED, journal behind the orders | Redis came back without its last changes | hold, give them back, PAUSED |
//! | LIVE | STOPPED | an End died after its first step | finish the End |
//! | STOPPED | STOPPED | an End died before its last step | finish the End |
//! | STOPPED, or SETTLED lately | LIVE or PAUSED | Redis came back from before the stop | End again |
//! | STOPPED | `NOT_STARTED` | Redis lost a stopped sale | settle with the orders that are durable |
//! | SETTLED lately | STOPPED or `NOT_STARTED`, with keys | Redis came back from before the clean-up | clean up again |

use std::sync::Arc;
use std::time::Duration;

use super::lease::Lease;
use super::open::Abandoned;
use super::{Durable, KnownSale, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::EventId;
use crate::domain::page::Page;
use crate::domain::sale::{SaleAction, SaleStatus};
use crate::error::Result;
use crate::store::live::OpeningToken;
use crate::store::live::link::{Link, ServerRun};
use crate::store::mongo::audit::AuditEntry;
use crate::task::Tracker;
use crate::telemetry::metrics::{REPAIRS, SALES_HELD};

const WATCHED: [SalePhase; 3] = [SalePhase::Opening, SalePhase::Live, SalePhase::Stopped];
const EVENTS_PER_PAGE: u32 = 100;
/// A live store that comes back has lost seconds, not hours.
const SETTLED_LATELY: Duration = Duration::from_secs(3_600);

impl<L: Link, D: Durable> Sale<L, D> {
    /// Looks for sales to repair again and again until the application stops.
    pub async fn keep_recovering(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.recovery_interval_ms);
        while tasks.pause(interval).await {
            let sale = Arc::clone(&self);
            // A repair that has begun is finished even when the application stops.
            if let Err(error) = tasks.complete("recovering", async move { sale.recover_as_leader().await }).await {
                tracing::warn!(code = error.code().as_str(), error = %error, "recovery could not look at every sale");
            }
        }
    }

    async fn recover_as_leader(&self) -> Result<()> {
        // Renewed by the next round; never given up, so that one process leads until it dies.
        let lease = Lease { name: "recovery".to_owned(), holder: self.process.clone() };
        self.under_lasting_lease(&lease, self.recover()).await?.unwrap_or(Ok(()))
    }

    /// Lets a run of the live store's server decide purchases, after holding every sale of which it has lost changes.
    ///
    /// # Errors
    /// When a store does not answer; then nobody can buy until this succeeds.
    pub async fn recognise(&self, run: ServerRun) -> Result<()> {
        if self.live.trusts(run) {
            return Ok(());
        }
        let mut after = None;
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after };
            let events = self.durable.events_in_phases(&[SalePhase::Live, SalePhase::Stopped], page).await?;
            for event in &events.items {
                self.stop_or_hold(event).await?;
            }
            after = events.next;
            if after.is_none() {
                break;
            }
        }
        let since = self.clock.now() - SETTLED_LATELY;
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after };
            let events = self.durable.events_settled_since(since, page).await?;
            for event in &events.items {
                self.stop_or_hold(event).await?;
            }
            after = events.next;
            if after.is_none() {
                self.live.trust(run);
                tracing::info!(run = run.number(), "the live store's server is recognised");
                return Ok(());
            }
        }
    }

    /// Before anybody can buy: a sale that is over stays over, whatever the live store remembers, and one that has lost
    /// changes is held.
    async fn stop_or_hold(&self, event: &Event) -> Result<()> {
        if event.phase.over() {
            // Refused when it is stopped, or not known at all.
            self.live.transition(event.id, SaleAction::End, None).await?;
        } else if self.has_lost_changes(event).await? {
            tracing::error!(event = %event.id, "the live store came back without changes that are durable; the sale is held");
            self.live.hold(event.id, "the live store has lost a part of this sale; it is to be repaired").await?;
        }
        Ok(())
    }

    /// Looks at every event that is not at rest, once.
    ///
    /// # Errors
    /// When a store does not answer. One event that cannot be repaired does not hold up the others.
    pub async fn recover(&self) -> Result<()> {
        let mut held = 0_u32;
        let mut after = None;
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after };
            let events = self.durable.events_in_phases(&WATCHED, page).await?;
            for event in &events.items {
                held += u32::from(self.recover_one(event).await);
            }
            after = events.next;
            if after.is_none() {
                break;
            }
        }
        let since = self.clock.now() - SETTLED_LATELY;
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after };
            let events = self.durable.events_settled_since(since, page).await?;
            for event in &events.items {
                self.recover_one(event).await;
            }
            after = events.next;
            if after.is_none() {
                metrics::gauge!(SALES_HELD).set(f64::from(held));
                return Ok(());
            }
        }
    }

    /// Makes the repairs of one sale that have one right answer, now and not when the leading process comes to it.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn repair(&self, event: &Event) -> Result<()> {
        if event.phase == SalePhase::Live {
            self.drain(event.id, self.config.drain_takeover_ms).await?;
            if self.has_lost_changes(event).await? {
                self.mend(event.id).await?;
            }
        }
        match event.phase {
            SalePhase::Settled => self.recover_settled(event).await,
            SalePhase::Stopped => self.recover_stopped(event).await,
            SalePhase::Draft => Ok(()),
            SalePhase::Opening | SalePhase::Live => self.recover_running(event).await.map(|_| ()),
        }
    }

    /// Repairs one sale if it needs to be; true if it is held, or could not be repaired.
    async fn recover_one(&self, event: &Event) -> bool {
        let outcome = match event.phase {
            SalePhase::Settled => self.recover_settled(event).await.map(|()| false),
            SalePhase::Stopped => self.recover_stopped(event).await.map(|()| false),
            SalePhase::Draft | SalePhase::Opening | SalePhase::Live => self.recover_running(event).await,
        };
        outcome.unwrap_or_else(|error| {
            tracing::warn!(event = %event.id, error = %error, "a sale could not be repaired yet");
            true
        })
    }

    async fn recover_running(&self, event: &Event) -> Result<bool> {
        match self.live.status(event.id).await? {
            SaleStatus::NotStarted => self.recover_absent(event).await?,
            SaleStatus::Stopped => {
                if self.settle_unless_taken_after_stop(event.id).await? {
                    self.repaired(event.id, "unfinished_end", "an End had stopped after its first step").await;
                }
            }
            SaleStatus::Live | SaleStatus::Paused => {
                let held = self.live.held(event.id).await?;
                let blocked = held.as_ref().is_some_and(|held| held.blocking);
                if blocked || self.is_behind(event.id).await? {
                    self.mend(event.id).await?;
                } else {
                    self.finish_restocks(event.id, false).await?;
                }
            }
        }
        Ok(self.live.held(event.id).await?.is_some())
    }

    async fn settle_unless_taken_after_stop(&self, event: EventId) -> Result<bool> {
        let running = [SalePhase::Opening, SalePhase::Live, SalePhase::Stopped];
        self.durable.move_phase(event, &running, SalePhase::Stopped, None).await?;
        Ok(self.settle_unless_taken(event).await?.is_some())
    }

    async fn recover_absent(&self, event: &Event) -> Result<()> {
        if self.live.opening_taken(event.id).await? {
            return Ok(());
        }
        let sold = event.phase == SalePhase::Live && self.was_lost(event.id).await?;
        if sold {
            tracing::error!(event = %event.id, "the live store has lost this sale; it is rebuilt");
            self.rebuild(event.id).await.map(|_| ())
        } else {
            self.take_over_and_abandon(event).await
        }
    }

    /// An event that is LIVE in MongoDB and unknown to Redis: lost, unless it is an opening that died between its last two
    /// steps, which has a projection and cannot have an order.
    pub(super) async fn was_lost(&self, event: EventId) -> Result<bool> {
        Ok(!self.live.projected(event).await? || self.durable.count_orders(event).await? > 0)
    }

    async fn recover_stopped(&self, event: &Event) -> Result<()> {
        match self.live.status(event.id).await? {
            // An End that began a moment ago is most likely about to take its lease.
            SaleStatus::Stopped if self.touched_lately(event) || self.kept_for_an_operator(event.id).await? => {}
            SaleStatus::Stopped => {
                if self.settle_unless_taken(event.id).await?.is_some() {
                    self.repaired(event.id, "unfinished_end", "an End had stopped before its last step").await;
                }
            }
            SaleStatus::Live | SaleStatus::Paused => self.end_again(event).await?,
            SaleStatus::NotStarted => {
                let orders = self.durable.count_orders(event.id).await?;
                self.durable.record_settled(event.id, orders).await?;
                let detail = format!("the live store had lost this stopped sale; {orders} orders were durable");
                self.repaired(event.id, "stopped_and_lost", &detail).await;
            }
        }
        Ok(())
    }

    async fn recover_settled(&self, event: &Event) -> Result<()> {
        match self.live.status(event.id).await? {
            SaleStatus::Live | SaleStatus::Paused => self.end_again(event).await,
            SaleStatus::Stopped if self.live.projected(event.id).await? => {
                if self.settle_unless_taken(event.id).await?.is_some() {
                    self.repaired(event.id, "not_cleaned", "keys of a settled sale were in the live store").await;
                }
                Ok(())
            }
            // Back from before its flip: there is no status that a clean-up could go by, so it is undone like an opening.
            SaleStatus::NotStarted if self.live.projected(event.id).await? => self.discard_projection(event.id).await,
            SaleStatus::Stopped | SaleStatus::NotStarted => Ok(()),
        }
    }

    async fn discard_projection(&self, event: EventId) -> Result<()> {
        let token = OpeningToken::random();
        if self.live.take_opening(event, &token, self.config.opening_ttl_ms).await? {
            self.discard(event, &token).await?;
            self.live.release_opening(event, &token).await?;
            self.repaired(event, "not_cleaned", "keys of a settled sale were in the live store").await;
        }
        Ok(())
    }

    async fn end_again(&self, event: &Event) -> Result<()> {
        self.end(KnownSale::from(event)).await?;
        self.repaired(event.id, "status_rolled_back", "the live store had forgotten that this sale was stopped").await;
        Ok(())
    }

    fn touched_lately(&self, event: &Event) -> bool {
        let grace = Duration::from_millis(self.config.recovery_interval_ms) * 2;
        self.clock.now().signed_duration_since(event.updated_at).to_std().is_ok_and(|age| age < grace)
    }

    /// A sale with nothing left but its dead letters waits for a person, not for another attempt.
    async fn kept_for_an_operator(&self, event: EventId) -> Result<bool> {
        let dead = self.durable.dead_keys(event).await?;
        Ok(!dead.is_empty()
            && self.live.booking_count(event).await? <= dead.len() as u64
            && self.live.product_count(event).await? == 0)
    }

    /// Becomes the opener, marks everything as its own, and then abandons it like any failed opening.
    async fn take_over_and_abandon(&self, event: &Event) -> Result<()> {
        let (token, id) = (OpeningToken::random(), event.id);
        if !self.live.take_opening(id, &token, self.config.opening_ttl_ms).await? {
            return Ok(());
        }
        // Only from the phase that was read: should this write arrive late, after another opening, it changes nothing.
        if self.live.status(id).await? != SaleStatus::NotStarted
            || !self.durable.move_phase(id, &[event.phase], SalePhase::Opening, Some(token.as_str())).await?
        {
            return self.live.release_opening(id, &token).await;
        }
        self.durable.freeze(id, token.as_str()).await?;
        if self.abandon(id, &token).await? == Abandoned::Undone {
            self.repaired(id, "half_open", "an opening had stopped before its flip").await;
        }
        Ok(())
    }

    /// Counts, logs and records a repair.
    pub(super) async fn repaired(&self, event: EventId, kind: &'static str, detail: &str) {
        metrics::counter!(REPAIRS, "kind" => kind).increment(1);
        tracing::warn!(%event, kind, detail, "a sale was repaired");
        self.audit(event, kind, detail).await;
    }

    /// Records what was done to a sale. It is done: a record that cannot be written does not undo it.
    pub(super) async fn audit(&self, event: EventId, kind: &'static str, detail: &str) {
        let entry = AuditEntry {
            at: self.clock.now(),
            event,
            kind: kind.to_owned(),
            detail: detail.to_owned(),
            process: self.process.clone(),
        };
        if let Err(error) = self.durable.record_repair(&entry).await {
            tracing::warn!(%event, kind, error = %error, "what was done could not be recorded");
        }
    }
}
