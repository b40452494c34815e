//! Settlement: every reservation of a stopped sale is an order, and then its booking may go.
//!
//! The journal has made most orders while the sale ran. Its tail is drained, and then each booking is confirmed, page by
//! page, so that memory is bounded whatever the size of the sale: an order in the booking's revision or a newer one, or it
//! is written now. Nothing is removed before the counts agree. A booking that can be neither read nor found as an order is
//! recorded whole as a dead letter and keeps its key.

use std::collections::{HashMap, HashSet};

use super::drain::{DeadLetter, JOURNAL_LETTER};
use super::{Durable, Sale};
use crate::domain::ids::EventId;
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{BookingRead, StoredBooking};
use crate::store::mongo::orders::Tally;

/// Booking keys of a page: those that are orders, and those that cannot be.
#[derive(Default)]
pub(super) struct Settled {
    pub keys: HashSet<String>,
    pub dead: HashSet<String>,
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Makes every reservation of a stopped sale an order, or finds that they are, and compares the counts.
    /// Returns the number of orders.
    pub(super) async fn settle(&self, event: EventId) -> Result<u64> {
        self.drain(event, 0).await?;
        let counts = self.counts(event).await?;
        if counts.agree(0) {
            return Ok(counts.orders);
        }
        // The journal does not account for everything: it was cut, or holds what cannot be read. The bookings decide.
        let mut dead = 0;
        let mut cursor = 0;
        loop {
            let (next, keys) = self.live.booking_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            dead += self.settle_page(event, keys).await?.dead.len() as u64;
            if next == 0 {
                break;
            }
            cursor = next;
        }
        let counts = self.counts(event).await?;
        let letters = self.durable.dead_keys(event).await?.len() as u64;
        if counts.agree(dead.max(letters)) {
            return Ok(counts.orders);
        }
        Err(Error::Damaged { doing: "comparing a settlement's counts", detail: format!("{counts:?}, {letters} dead") })
    }

    /// Confirms a page of bookings, and writes what is missing.
    pub(super) async fn settle_page(&self, event: EventId, keys: Vec<String>) -> Result<Settled> {
        let mut settled = Settled::default();
        let (mut whole, mut dead): (Vec<(String, Reservation)>, Vec<DeadLetter>) = (Vec::new(), Vec::new());
        for StoredBooking { key, read } in self.live.read_bookings(event, keys).await? {
            let (raw, reason) = match read {
                BookingRead::Whole(reservation) => {
                    whole.push((key, reservation));
                    continue;
                }
                BookingRead::Unreadable { raw, reason } => (raw, reason),
                BookingRead::Absent => (HashMap::new(), "the booking is listed but gone".to_owned()),
            };
            if !self.live.booking_listed(event, &key).await? {
                // A settlement in another process has confirmed and removed it.
            } else if self.is_order_after_all(event, &key).await? {
                settled.keys.insert(key);
            } else {
                dead.push(DeadLetter { key, reason, raw });
            }
        }
        let ids: Vec<String> = whole.iter().map(|(_, reservation)| reservation.id.clone()).collect();
        let orders = self.durable.order_revisions(&ids).await?;
        let missing =
            |reservation: &Reservation| orders.get(&reservation.id).is_none_or(|at| *at < reservation.revision);
        let unwritten: Vec<Reservation> =
            whole.iter().map(|(_, reservation)| reservation).filter(|one| missing(one)).cloned().collect();
        dead.extend(self.write_orders(event, &unwritten).await?);
        for letter in dead {
            self.record_dead(event, &letter).await?;
            settled.dead.insert(letter.key);
        }
        settled.keys.extend(whole.into_iter().map(|(key, _)| key).filter(|key| !settled.dead.contains(key)));
        Ok(settled)
    }

    /// A booking that cannot be read may have been written as an order from the journal: its key says whose it is.
    async fn is_order_after_all(&self, event: EventId, key: &str) -> Result<bool> {
        let Some((user, product)) = self.live.keys().booking_owner(key, event) else { return Ok(false) };
        Ok(self.durable.order_of_buyer(event, product, user).await?.is_some())
    }

    /// What both stores count.
    pub(super) async fn counts(&self, event: EventId) -> Result<Counts> {
        let bookings = self.live.booking_count(event).await?;
        let journalled = self.live.journal_state(event).await?.unwrap_or_default().appended;
        let Tally { orders, changes } = self.durable.tally(event).await?;
        Ok(Counts { bookings, journalled, orders, changes })
    }

    /// Journal entries that could not be read, if the orders do not account for them in another way.
    pub(super) async fn unread_entries(&self, event: EventId) -> Result<u64> {
        let letters = self.durable.dead_keys(event).await?;
        let unread = letters.iter().filter(|key| key.starts_with(JOURNAL_LETTER)).count() as u64;
        if unread == 0 || self.counts(event).await?.agree(0) {
            return Ok(0);
        }
        Ok(unread)
    }
}

/// Bookings, changes, and the orders that they became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub bookings: u64,
    pub journalled: u64,
    pub orders: u64,
    pub changes: u64,
}

impl Counts {
    /// Whether the orders account for every booking and every change, but for `dead` ones. There may be more orders: the
    /// live store may have lost what the database has.
    const fn agree(&self, dead: u64) -> bool {
        self.orders + dead >= self.bookings && self.changes + dead >= self.journalled
    }
}
