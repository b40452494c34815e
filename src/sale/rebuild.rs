//! Rebuilding: a sale that the live store has lost, or lost a part of, is brought back from catalogue and orders.
//!
//! Lost as a whole (the keys are gone): the catalogue is projected again under an opening token, every durable order takes
//! its units again, and the status becomes PAUSED last. Lost in part (an older state came back): the sale is held first,
//! what its journal knows becomes orders, and the orders that it does not know take their units. In both cases nobody can
//! buy meanwhile, no durable unit is sold twice, and the seller resumes when they have seen what happened. A crash leaves
//! a sale that nobody can buy in, and recovery does it again.

use super::projector::{lost, project};
use super::{Durable, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::EventId;
use crate::domain::page::Page;
use crate::domain::sale::{SaleAction, SaleStatus};
use crate::error::{Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{OpeningToken, Restored, Restoring, Transitioned};

impl<L: Link, D: Durable> Sale<L, D> {
    /// Whether the live store has lost changes that are durable: its journal ends before what was read of it, or counts
    /// fewer changes than the orders have been through.
    pub(super) async fn has_lost_changes(&self, event: &Event) -> Result<bool> {
        // The orders first: what is counted of them was in the journal before.
        let changes = self.durable.tally(event.id).await?.changes;
        let journal = self.live.journal_state(event.id).await?.unwrap_or_default();
        Ok(journal.appended < changes || self.is_behind(event.id).await?)
    }

    /// The part of [`Self::has_lost_changes`] that costs nothing, whatever the size of the sale.
    pub(super) async fn is_behind(&self, event: EventId) -> Result<bool> {
        let drained = self.durable.event(event).await?.and_then(|event| event.drained);
        let journal = self.live.journal_state(event).await?.unwrap_or_default();
        Ok(drained.is_some_and(|drained| journal.last < drained))
    }

    /// Brings back a sale that was live and of which the live store knows no status. False if another process does it.
    pub(super) async fn rebuild(&self, event: EventId) -> Result<bool> {
        let token = OpeningToken::random();
        if !self.live.take_opening(event, &token, self.config.opening_ttl_ms).await? {
            return Ok(false);
        }
        let rebuilt = self.rebuild_under(event, &token).await;
        if rebuilt.is_err() {
            self.live.release_opening(event, &token).await?;
        }
        rebuilt
    }

    async fn rebuild_under(&self, event: EventId, token: &OpeningToken) -> Result<bool> {
        let (run, live) = (token.as_str(), SalePhase::Live);
        if self.live.status(event).await? != SaleStatus::NotStarted
            || !self.durable.move_phase(event, &[live], live, Some(run)).await?
        {
            self.live.release_opening(event, token).await?;
            return Ok(false);
        }
        self.discard(event, token).await?;
        let frozen = self.durable.freeze(event, run).await?;
        let products = self.durable.frozen(event, run).await?;
        let Some(fresh) = self.durable.event(event).await? else { return Err(lost()) };
        let with = self.promised(&fresh).await?;
        let projected = project(&self.live, &self.config, event, with, token, products).await?;
        if projected != frozen {
            return Err(Error::internal("rebuilding a sale", format!("{projected} of {frozen} products projected")));
        }
        let restored = self.restore_orders(event, Some(token)).await?;
        let summary = summary(restored);
        let notice = format!("the live store had lost this sale; it was rebuilt: {summary}. Resume to go on selling");
        self.continue_journal(event).await?;
        self.live.release_hold(event, &notice).await?;
        match self.live.transition(event, SaleAction::Rebuild, Some(token)).await? {
            Transitioned::Changed(_) => {}
            Transitioned::Refused(_)
            | Transitioned::Held(_)
            | Transitioned::TokenLost(_)
            | Transitioned::TooEarly(_) => return Err(lost()),
        }
        self.repaired(event, "rebuilt", &summary).await;
        Ok(true)
    }

    /// Holds a running sale of which the live store has lost changes, and gives them back. False if it does not run.
    pub(super) async fn mend(&self, event: EventId) -> Result<bool> {
        let reason = "the live store has lost a part of this sale; it is being repaired";
        let before = self.live.hold(event, reason).await?;
        if !matches!(before, SaleStatus::Live | SaleStatus::Paused) {
            return Ok(false);
        }
        self.drain(event, 0).await?;
        // First: orders may have taken units that were added.
        self.finish_restocks(event, true).await?;
        let restored = self.restore_orders(event, None).await?;
        let summary = summary(restored);
        self.continue_journal(event).await?;
        let notice =
            format!("the live store had lost a part of this sale; it was repaired: {summary}. Resume to go on");
        self.live.release_hold(event, &notice).await?;
        self.repaired(event, "mended", &summary).await;
        Ok(true)
    }

    /// Gives every order back. A drainer may still write a batch that it had in hand when the sale was lost, behind where we
    /// have read: then it is done again, until as many orders were dealt with as there are. And it is done once more if units
    /// were missing: the newest orders come first, and what they need may be what older ones have given back since.
    async fn restore_orders(&self, event: EventId, token: Option<&OpeningToken>) -> Result<Restored> {
        let (mut written, mut once_more) = (0, true);
        loop {
            let mut restored = self.restore_pages(event, token).await?;
            written += restored.written;
            let Restored { known, short, strange, .. } = restored;
            let again = short > 0 && std::mem::take(&mut once_more);
            if !again && restored.written + known + short + strange >= self.durable.count_orders(event).await? {
                restored.known = restored.known.saturating_sub(written - restored.written);
                restored.written = written;
                return Ok(restored);
            }
        }
    }

    async fn restore_pages(&self, event: EventId, token: Option<&OpeningToken>) -> Result<Restored> {
        let (ttl_ms, limit) =
            (self.config.opening_ttl_ms, u32::try_from(self.config.batch_size_max).unwrap_or(u32::MAX));
        let (mut all, mut after) = (Restored::default(), None);
        loop {
            let orders = self.durable.orders(event, Page { limit, after }).await?;
            match self.live.restore(event, &orders.items, token, ttl_ms).await? {
                Restoring::Done(batch) => {
                    all.written += batch.written;
                    all.known += batch.known;
                    all.short += batch.short;
                    all.strange += batch.strange;
                }
                Restoring::Refused(current) => {
                    return Err(Error::Transition { current, attempted: SaleStatus::Paused });
                }
                Restoring::TokenLost => return Err(lost()),
            }
            after = orders.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// The journal goes on behind what is durable, so that the same loss is not found again.
    async fn continue_journal(&self, event: EventId) -> Result<()> {
        let drained = self.durable.event(event).await?.and_then(|event| event.drained).unwrap_or_default();
        let changes = self.durable.tally(event).await?.changes;
        self.live.advance_journal(event, drained, changes).await
    }
}

fn summary(restored: Restored) -> String {
    let Restored { written, known, short, strange } = restored;
    let mut text = format!("{written} orders given back, {known} were known");
    if short > 0 {
        text.push_str(&format!(", {short} have no unit left (sold twice: refund or restock them)"));
    }
    if strange > 0 {
        text.push_str(&format!(", {strange} are of products that the sale does not have"));
    }
    text
}
