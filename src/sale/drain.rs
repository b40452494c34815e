//! Draining: orders become durable while the sale runs.
//!
//! Every process reads the journals of running sales in one consumer group, so each entry is in one process's hands.
//! Order of writes: how far we read is remembered first, then the orders are written, then the entries are confirmed and
//! trimmed; their seller is told in between ([`super::announce`]). A crash leaves entries pending; another process takes them over and writes the same orders again,
//! which changes nothing. What cannot be read or written becomes a dead letter, so that it does not hold up the rest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Durable, Sale};
use crate::domain::event::SalePhase;
use crate::domain::ids::EventId;
use crate::domain::page::Page;
use crate::domain::reservation::Reservation;
use crate::error::{Dependency, Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{EntryRead, JournalBatch};
use crate::task::Tracker;
use crate::telemetry::metrics::{DEAD_LETTERS, ORDERS_SETTLED, SETTLE_LAG_SECONDS};

/// Sales whose journals are read.
const DRAINED: [SalePhase; 2] = [SalePhase::Live, SalePhase::Stopped];
const EVENTS_PER_PAGE: u32 = 100;
/// After a failure; a store that is away is not asked five times a second.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The key under which an unreadable entry is recorded: it names no booking.
pub(super) const JOURNAL_LETTER: &str = "journal entry ";

impl<L: Link, D: Durable> Sale<L, D> {
    /// Drains every running sale again and again until the application stops.
    pub async fn keep_draining(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.drain_interval_ms);
        let mut pause = interval;
        while tasks.pause(pause).await {
            let sale = Arc::clone(&self);
            // Batches in hand are finished even when the application stops; there is at most one for each sale.
            pause = match tasks.complete("draining", async move { sale.drain_round().await }).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => interval,
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error, "orders cannot be written now; they are kept in the journal");
                    PAUSE_AFTER_FAILURE.max(interval)
                }
            };
        }
    }

    /// Drains a batch of every running sale; true if one of them may have more.
    ///
    /// # Errors
    /// When a store does not answer. One sale that cannot be drained does not hold up the others.
    pub async fn drain_round(&self) -> Result<bool> {
        let (mut after, mut failed, mut more) = (None, None, false);
        loop {
            let events = self.durable.events_in_phases(&DRAINED, Page { limit: EVENTS_PER_PAGE, after }).await?;
            for event in &events.items {
                match self.drain_batches(event.id, self.config.drain_takeover_ms).await {
                    Ok(drained) => more |= drained > 0,
                    Err(error) => failed = Some(error),
                }
                if let Err(error) = self.announce_opening(event).await {
                    failed = Some(error);
                }
            }
            after = events.next;
            if after.is_none() {
                return failed.map_or(Ok(more), Err);
            }
        }
    }

    /// Reads a journal until nothing is new, and then what others have had in hand for longer than `idle_ms`.
    ///
    /// # Errors
    /// When a store does not answer: what was read stays pending.
    pub async fn drain(&self, event: EventId, idle_ms: u64) -> Result<()> {
        while self.drain_batches(event, idle_ms).await? > 0 {}
        Ok(())
    }

    /// One batch of each, and how many entries were in them.
    async fn drain_batches(&self, event: EventId, idle_ms: u64) -> Result<usize> {
        let count = self.config.settle_page_size_max;
        let new = self.live.read_journal(event, &self.process, count).await?;
        let mut drained = new.entries.len();
        self.settle_batch(event, new).await?;
        // Only when nothing is new: what others have in hand is rarely left.
        if drained == 0 {
            let left = self.live.take_over_journal(event, &self.process, idle_ms, count).await?;
            drained = left.entries.len();
            self.settle_batch(event, left).await?;
        }
        Ok(drained)
    }

    async fn settle_batch(&self, event: EventId, batch: JournalBatch) -> Result<()> {
        let read = Instant::now();
        let Some(newest) = batch.entries.iter().map(|entry| entry.id).max() else { return Ok(()) };
        let ids: Vec<_> = batch.entries.iter().map(|entry| entry.id).collect();
        let mut whole = Vec::with_capacity(ids.len());
        let mut dead = Vec::new();
        for entry in batch.entries {
            match entry.read {
                EntryRead::Whole(reservation) => whole.push(reservation),
                EntryRead::Unreadable { raw, reason } => {
                    dead.push(DeadLetter { key: format!("{JOURNAL_LETTER}{}", entry.id), reason, raw });
                }
            }
        }
        // First: orders that are durable behind a position that nobody remembers could not be told from lost ones.
        self.durable.record_drained(event, newest).await?;
        // A server that took over meanwhile may have been recognised before that was remembered. It does not know these
        // changes, and may have sold their units again.
        if let Some(run) = batch.run
            && !self.live.reaches(run).await?
        {
            return Err(Error::timed_out(Dependency::LiveStore, "settling what another server had accepted"));
        }
        // Units that went back are durable before they are durable as somebody else's.
        let (freed, taken): (Vec<_>, Vec<_>) = whole.iter().cloned().partition(|reservation| reservation.returned > 0);
        for reservations in [freed, taken] {
            dead.extend(self.write_orders(event, &reservations).await?);
        }
        for letter in &dead {
            self.record_dead(event, letter).await?;
        }
        self.live.acknowledge(event, &ids).await?;
        let now_ms = batch.read_at_ms + i64::try_from(read.elapsed().as_millis()).unwrap_or(0);
        for reservation in &whole {
            let lag = Duration::from_millis(u64::try_from(now_ms - reservation.booked_at_ms).unwrap_or(0));
            metrics::histogram!(SETTLE_LAG_SECONDS).record(lag.as_secs_f64());
        }
        Ok(())
    }

    /// Writes reservations as orders. Returns those that the database refuses, each under its booking key.
    pub(super) async fn write_orders(&self, event: EventId, reservations: &[Reservation]) -> Result<Vec<DeadLetter>> {
        let written = self.durable.upsert_orders(reservations).await?;
        if written.confirmed + written.refused.len() != reservations.len() {
            let what = format!("{} of {} orders were confirmed", written.confirmed, reservations.len());
            return Err(Error::internal("settling", what));
        }
        metrics::counter!(ORDERS_SETTLED).increment(written.confirmed as u64);
        let refused: HashSet<usize> = written.refused.iter().map(|(index, _)| *index).collect();
        let accepted = reservations.iter().enumerate().filter(|(index, _)| !refused.contains(index));
        // Before anybody forgets that they were written: what is told twice is one message.
        self.announce_changes(event, accepted.map(|(_, reservation)| reservation)).await?;
        self.codes_follow(event, reservations).await?;
        let letter = |(index, reason): (usize, String)| {
            let reservation = reservations.get(index)?;
            let key = self.live.keys().booking(reservation.user, reservation.product, event);
            Some(DeadLetter { key, reason, raw: HashMap::from([("reservationId".to_owned(), reservation.id.clone())]) })
        };
        Ok(written.refused.into_iter().filter_map(letter).collect())
    }

    pub(super) async fn record_dead(&self, event: EventId, letter: &DeadLetter) -> Result<()> {
        metrics::counter!(DEAD_LETTERS).increment(1);
        tracing::error!(event = %event, key = %letter.key, reason = %letter.reason, "a reservation could not be settled; it is kept");
        self.durable.record_dead(event, &letter.key, &letter.reason, &letter.raw, self.clock.now()).await
    }
}

/// What could not be read or written.
pub(super) struct DeadLetter {
    pub key: String,
    pub reason: String,
    pub raw: HashMap<String, String>,
}
