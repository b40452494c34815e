//! The schedule: sales that open and end by themselves, at the moments that their sellers have set.
//!
//! Every process keeps it, and takes no input: it asks the database for what is due and begins that. The moments are
//! moments of the live store's clock. It is asked what is due, and the flip of the status carries its moment along, so a
//! process whose own clock is wrong does nothing early. Many processes begin the same; the opening token and the flip let
//! one of them do it.
//!
//! An opening that only its seller can make possible (no approval, no product) is tried again after a pause, and the
//! seller is told why. It is given up when the end of the sale has come, and after a week.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;

use super::{Durable, Sale};
use crate::domain::event::Event;
use crate::domain::ids::EventId;
use crate::domain::sale::SaleAction;
use crate::domain::schedule::ScheduleProblem;
use crate::error::{Code, Error, Result};
use crate::store::live::Transitioned;
use crate::store::live::link::Link;
use crate::task::Tracker;
use crate::telemetry::metrics::SCHEDULED;

/// Due events that one round begins at most, of each kind.
const EVENTS_PER_ROUND: u32 = 100;
/// Sales that one process opens at once, and settles at once, because of the schedule.
const AT_ONCE_MAX: usize = 8;
/// Before an opening that was refused is tried again.
const RETRY_PAUSE: chrono::Duration = chrono::Duration::seconds(5);
/// After a store did not answer.
const PAUSE_AFTER_FAULT: Duration = Duration::from_secs(1);

/// What this process has begun because of the schedule.
pub(super) struct Schedule {
    opening: Mutex<HashSet<EventId>>,
    openings: Semaphore,
    endings: Semaphore,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { opening: Mutex::default(), openings: Semaphore::new(AT_ONCE_MAX), endings: Semaphore::new(AT_ONCE_MAX) }
    }
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Opens and ends sales on time until the application stops.
    pub async fn keep_schedule(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.schedule_interval_ms);
        let mut pause = interval;
        while tasks.pause(pause).await {
            pause = match self.schedule_round(&tasks).await {
                Ok(()) => interval,
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error, "the schedule cannot be kept now");
                    PAUSE_AFTER_FAULT.max(interval)
                }
            };
        }
    }

    /// Begins everything that is due. Openings and settlements go on in tasks of their own, so that a large sale does not
    /// hold up another.
    ///
    /// # Errors
    /// When a store does not answer. One sale that cannot be ended does not hold up the others.
    pub async fn schedule_round(self: &Arc<Self>, tasks: &Tracker) -> Result<()> {
        let now = self.live_now().await?;
        let mut failed = None;
        for event in self.durable.due_to_end(now, EVENTS_PER_ROUND).await? {
            if let Err(error) = self.end_on_time(&event, tasks).await {
                failed = Some(error);
            }
        }
        for event in self.durable.due_to_open(now, EVENTS_PER_ROUND).await? {
            self.begin_opening(event, tasks);
        }
        failed.map_or(Ok(()), Err)
    }

    /// The live store's clock.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn live_now(&self) -> Result<DateTime<Utc>> {
        let now_ms = self.live.now_ms().await?;
        DateTime::from_timestamp_millis(now_ms)
            .ok_or_else(|| Error::Damaged { doing: "asking for the time", detail: now_ms.to_string() })
    }

    /// Stops a sale whose end has come, paused or not. Whoever stops it settles it; should that process die, recovery goes
    /// on. In any other state there is nothing to stop, or recovery has to look at the sale first.
    async fn end_on_time(self: &Arc<Self>, event: &Event, tasks: &Tracker) -> Result<()> {
        let (id, ends_at_ms) = (event.id, event.ends_at.map(|at| at.timestamp_millis()));
        let stopped = self.live.transition_not_before(id, SaleAction::End, None, ends_at_ms).await?;
        let Transitioned::Changed(from) = stopped else { return Ok(()) };
        tracing::info!(event = %id, %from, "sale stopped on time");
        metrics::counter!(SCHEDULED, "action" => "ended").increment(1);
        let (sale, work) = (Arc::clone(self), tasks.clone());
        tasks.spawn(async move {
            let _turn = sale.schedule.endings.acquire().await;
            let settling = Arc::clone(&sale);
            let settled = work.complete("ending a sale on time", async move { settling.finish_end(id).await }).await;
            if let Err(error) = settled {
                tracing::warn!(event = %id, error = %error, "a sale that was stopped on time is not settled yet; recovery goes on");
            }
        });
        Ok(())
    }

    fn begin_opening(self: &Arc<Self>, event: Event, tasks: &Tracker) {
        if !self.openings_begun().insert(event.id) {
            return;
        }
        let (sale, work) = (Arc::clone(self), tasks.clone());
        tasks.spawn(async move {
            let id = event.id;
            let _turn = sale.schedule.openings.acquire().await;
            if !work.shutdown().is_cancelled() {
                let opening = Arc::clone(&sale);
                let opened = work.complete("opening a sale on time", async move { opening.open_due(&event).await });
                if let Err(error) = opened.await {
                    tracing::warn!(event = %id, code = error.code().as_str(), error = %error, "a sale could not be opened on time yet");
                    work.pause(PAUSE_AFTER_FAULT).await;
                }
            }
            sale.openings_begun().remove(&id);
        });
    }

    fn openings_begun(&self) -> std::sync::MutexGuard<'_, HashSet<EventId>> {
        self.schedule.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a sale, or remembers for its seller why not.
    async fn open_due(&self, event: &Event) -> Result<()> {
        match self.open_on_time(event).await {
            Ok(_) => {
                metrics::counter!(SCHEDULED, "action" => "opened").increment(1);
                Ok(())
            }
            // Another process is at it or was faster, or the seller has opened, moved or deleted it.
            Err(Error::Transition { .. }) => Ok(()),
            Err(Error::Refused { code: Code::OpeningInProgress | Code::NotFound, .. }) => Ok(()),
            Err(Error::Refused { code, message }) => {
                metrics::counter!(SCHEDULED, "action" => "refused").increment(1);
                let since = self.live_now().await?;
                let problem = ScheduleProblem { code: code.as_str().to_owned(), message: message.into_owned(), since };
                if self.durable.record_unopened(event.id, &problem, since + RETRY_PAUSE).await? {
                    tracing::warn!(event = %event.id, code = problem.code, reason = problem.message, "a sale is not opened on time");
                }
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }
}
