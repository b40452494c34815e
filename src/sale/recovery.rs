//! Recovery: finishes what a process that died left half-way. Takes no input, reads both stores, and is idempotent, so
//! every process runs it.
//!
//! | MongoDB | Redis | what happened | repair |
//! |---|---|---|---|
//! | OPENING, or LIVE with a projection | `NOT_STARTED`, no token | the opener died before its flip | undo the opening |
//! | LIVE | STOPPED | an End died after its first step | finish the End |
//! | STOPPED | STOPPED | an End died before its last step | finish the End |
//! | STOPPED | LIVE or PAUSED | Redis came back without its last second | End again |
//! | LIVE with nothing projected, or STOPPED | `NOT_STARTED` | Redis lost the sale | none: an operator must look; alarm |

use std::sync::Arc;
use std::time::Duration;

use super::Sale;
use super::open::Abandoned;
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::EventId;
use crate::domain::page::Page;
use crate::domain::sale::SaleStatus;
use crate::error::Result;
use crate::store::live::OpeningToken;
use crate::task::Tracker;
use crate::telemetry::metrics::{REPAIRS, SALES_LOST};

const WATCHED: [SalePhase; 3] = [SalePhase::Opening, SalePhase::Live, SalePhase::Stopped];
const EVENTS_PER_PAGE: u32 = 100;

impl Sale {
    /// Looks for unfinished work again and again until the application stops.
    pub async fn keep_recovering(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.recovery_interval_ms);
        while tasks.pause(interval).await {
            let sale = Arc::clone(&self);
            // A repair that has begun is finished even when the application stops.
            if let Err(error) = tasks.complete("recovering", async move { sale.recover().await }).await {
                tracing::warn!(code = error.code().as_str(), error = %error, "recovery could not look at every sale");
            }
        }
    }

    /// Looks at every event that is not at rest, once.
    ///
    /// # Errors
    /// When a store does not answer. One event that cannot be repaired does not hold up the others.
    pub async fn recover(&self) -> Result<()> {
        let mut after = None;
        let mut lost = 0_u32;
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after };
            let events = self.mongo.events.in_phases(&WATCHED, page).await?;
            for event in &events.items {
                match self.recover_one(event).await {
                    Ok(found) => lost += u32::from(found == Found::Lost),
                    Err(error) => tracing::warn!(event = %event.id, error = %error, "a sale could not be repaired yet"),
                }
            }
            after = events.next;
            if after.is_none() {
                metrics::gauge!(SALES_LOST).set(f64::from(lost));
                return Ok(());
            }
        }
    }

    async fn recover_one(&self, event: &Event) -> Result<Found> {
        let status = self.live.status(event.id).await?;
        match (event.phase, status) {
            (SalePhase::Opening | SalePhase::Live, SaleStatus::NotStarted) => self.recover_opening(event).await,
            (SalePhase::Stopped, SaleStatus::Stopped) if self.touched_lately(event) => Ok(Found::AtRest),
            (_, SaleStatus::Stopped) if !self.kept_for_an_operator(event).await? => {
                metrics::counter!(REPAIRS, "kind" => "unfinished_end").increment(1);
                tracing::warn!(event = %event.id, "finishing an End that was left half-way");
                self.finish_end(event.id).await?;
                Ok(Found::Repaired)
            }
            (SalePhase::Stopped, SaleStatus::Live | SaleStatus::Paused) => {
                metrics::counter!(REPAIRS, "kind" => "status_rolled_back").increment(1);
                tracing::warn!(event = %event.id, %status, "the live store forgot that this sale was stopped; ending it again");
                self.end(event).await?;
                Ok(Found::Repaired)
            }
            (SalePhase::Stopped, SaleStatus::NotStarted) => Ok(lost(event.id)),
            _ => Ok(Found::AtRest),
        }
    }

    /// An End that began a moment ago is most likely still at work, here or in another process.
    fn touched_lately(&self, event: &Event) -> bool {
        let grace = Duration::from_millis(self.config.recovery_interval_ms) * 2;
        self.clock.now().signed_duration_since(event.updated_at).to_std().is_ok_and(|age| age < grace)
    }

    /// A sale with nothing left but its dead letters waits for a person, not for another attempt.
    async fn kept_for_an_operator(&self, event: &Event) -> Result<bool> {
        let dead = self.mongo.dead_letters.keys_of_event(event.id).await?;
        Ok(!dead.is_empty() && self.live.booking_count(event.id).await? == dead.len() as u64)
    }

    async fn recover_opening(&self, event: &Event) -> Result<Found> {
        if self.live.opening_taken(event.id).await? {
            return Ok(Found::AtRest);
        }
        if event.phase == SalePhase::Live && !self.live.projected(event.id).await? {
            return Ok(lost(event.id));
        }
        self.take_over_and_abandon(event.id).await
    }

    /// Becomes the opener, marks everything as its own, and then abandons it like any failed opening.
    async fn take_over_and_abandon(&self, event: EventId) -> Result<Found> {
        let token = OpeningToken::random();
        if !self.live.take_opening(event, &token, self.config.opening_ttl_ms).await? {
            return Ok(Found::AtRest);
        }
        let half_open = [SalePhase::Opening, SalePhase::Live];
        if self.live.status(event).await? != SaleStatus::NotStarted
            || !self.mongo.events.move_phase(event, &half_open, SalePhase::Opening, Some(token.as_str())).await?
        {
            self.live.release_opening(event, &token).await?;
            return Ok(Found::AtRest);
        }
        self.mongo.products.freeze(event, token.as_str()).await?;
        let abandoned = self.abandon(event, &token).await?;
        if abandoned == Abandoned::Undone {
            metrics::counter!(REPAIRS, "kind" => "half_open").increment(1);
            tracing::warn!(event = %event, "undid an opening that was left half-way");
        }
        Ok(Found::Repaired)
    }
}

fn lost(event: EventId) -> Found {
    tracing::error!(%event, "the live store has lost this sale; an operator must recover it");
    Found::Lost
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    AtRest,
    Repaired,
    Lost,
}
