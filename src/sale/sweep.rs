//! Sweeping: unpaid reservations whose time has passed go back to stock, within a second even when nobody buys.
//!
//! Every process sweeps. The live store decides each hold by its own clock, so two that sweep the same one change nothing
//! more than one does, and a process whose clock is wrong sweeps nothing early.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;

use super::reservation::ReservationRef;
use super::{Durable, Sale};
use crate::domain::event::SalePhase;
use crate::domain::ids::EventId;
use crate::domain::page::Page;
use crate::domain::reservation::{Release, Released};
use crate::error::{Code, Result};
use crate::store::live::Releasing;
use crate::store::live::link::Link;
use crate::task::Tracker;
use crate::telemetry::metrics::RELEASES;

const EVENTS_PER_PAGE: u32 = 100;
/// Holds that one step releases at most: the live store is busy for less than a millisecond with each step.
const HOLDS_PER_STEP: usize = 100;
/// Unpaid orders of settled sales that one round looks at.
const ORDERS_PER_ROUND: u32 = 500;
/// After a failure; a store that is away is not asked four times a second.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

impl<L: Link, D: Durable> Sale<L, D> {
    /// Sweeps every running sale again and again until the application stops.
    pub async fn keep_sweeping(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.sweep_interval_ms);
        let mut pause = interval;
        while tasks.pause(pause).await {
            let sale = Arc::clone(&self);
            pause = match tasks.complete("sweeping holds", async move { sale.sweep_round().await }).await {
                Ok(()) => interval,
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error, "holds cannot be swept now; a purchase that needs their units releases them");
                    PAUSE_AFTER_FAILURE.max(interval)
                }
            };
        }
    }

    /// Releases what has run out in every running sale, and in those that are settled.
    ///
    /// # Errors
    /// When a store does not answer. One sale that cannot be swept does not hold up the others.
    pub async fn sweep_round(&self) -> Result<()> {
        let (mut after, mut failed) = (None, None);
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after };
            let events = self.durable.events_in_phases(&[SalePhase::Live], page).await?;
            for event in events.items.iter().filter(|event| event.terms.payment_window_s > 0) {
                if let Err(error) = self.sweep(event.id).await {
                    failed = Some(error);
                }
            }
            after = events.next;
            if after.is_none() {
                break;
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.expire_settled_orders().await
    }

    /// Releases every hold of a running sale whose time has passed.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn sweep(&self, event: EventId) -> Result<()> {
        loop {
            let due = self.live.due_holds(event, HOLDS_PER_STEP).await?;
            let releases: Vec<Release> = due.iter().map(|hold| Release::of_due(hold.user, hold.product)).collect();
            let Releasing::Done(outcomes) = self.live.release(event, &releases).await? else { return Ok(()) };
            let released = outcomes.iter().filter(|outcome| matches!(outcome, Released::Now(_))).count();
            metrics::counter!(RELEASES, "how" => "expired").increment(released as u64);
            let damaged = outcomes.iter().filter(|outcome| **outcome == Released::Damaged).count();
            if damaged > 0 {
                tracing::error!(%event, damaged, "holds cannot be released: their record is damaged; `orbit check` names it");
            }
            if released == 0 || due.len() < HOLDS_PER_STEP {
                return Ok(());
            }
        }
    }

    /// What was unpaid when its sale ended runs out as an order.
    async fn expire_settled_orders(&self) -> Result<()> {
        let Some(now) = DateTime::from_timestamp_millis(self.live.now_ms().await?) else { return Ok(()) };
        // In a sale that runs, orders that lag look overdue; one of them tells of all.
        let mut not_settled = HashSet::new();
        for order in self.durable.overdue_orders(now, ORDERS_PER_ROUND).await? {
            if not_settled.contains(&order.event) {
                continue;
            }
            let of = ReservationRef::from(&order);
            let release = Release { reservation: Some(of.id.clone()), ..Release::of_due(of.user, of.product) };
            match self.release_order(&of, &release, false).await {
                Ok(Released::Now(_)) => metrics::counter!(RELEASES, "how" => "expired").increment(1),
                Ok(_) => {}
                // Its sale runs or is being settled: the live store has it.
                Err(error) if error.code() == Code::LiveStoreUnavailable => {
                    not_settled.insert(order.event);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
