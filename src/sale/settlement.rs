//! Settlement: every reservation of a stopped sale becomes an order.
//!
//! Page by page, so that memory is bounded; unordered upserts against the unique index on `reservationId`, so that doing
//! it twice, or in two processes at once, leaves one order each. Nothing is removed here. A booking that cannot be read
//! or written is recorded whole as a dead letter and keeps its key; a store that does not answer is an error, and then
//! nothing is taken for settled.

use std::collections::{HashMap, HashSet};

use super::Sale;
use crate::domain::ids::EventId;
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};
use crate::store::live::{BookingRead, StoredBooking};
use crate::telemetry::metrics::{DEAD_LETTERS, ORDERS_SETTLED};

/// What settlement found and wrote.
#[derive(Debug, Clone, Default)]
pub(super) struct Settlement {
    /// Orders that MongoDB holds for the event now.
    pub orders: u64,
    /// Booking keys that could not be settled; they are kept.
    pub dead: HashSet<String>,
}

struct Settled {
    keys: HashSet<String>,
    dead: Vec<DeadLetter>,
}

struct DeadLetter {
    key: String,
    reason: String,
    raw: HashMap<String, String>,
}

impl Sale {
    /// Writes every booking of a stopped sale as an order, and compares the counts.
    pub(super) async fn settle(&self, event: EventId) -> Result<Settlement> {
        let booked = self.live.booking_count(event).await?;
        let journalled = self.live.journal_len(event).await?;
        let known_dead = self.mongo.dead_letters.keys_of_event(event).await?;
        let mut dead = HashSet::new();
        let mut cursor = 0;
        loop {
            let (next, keys) = self.live.booking_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            let settled = self.settle_page(event, keys).await?;
            for letter in settled.dead {
                self.record_dead(event, &letter).await?;
                dead.insert(letter.key);
            }
            let revived = known_dead.intersection(&settled.keys).cloned().collect();
            self.mongo.dead_letters.resolve(event, &revived).await?;
            if next == 0 {
                break;
            }
            cursor = next;
        }
        let orders = self.mongo.orders.count_of_event(event).await?;
        // Each change has one journal entry and each reservation one booking, so neither can outnumber the orders.
        let accounted = orders + dead.len() as u64;
        if booked > accounted || journalled > accounted {
            let detail =
                format!("{booked} bookings, {journalled} journal entries, {orders} orders, {} dead", dead.len());
            return Err(Error::Damaged { doing: "comparing a settlement's counts", detail });
        }
        Ok(Settlement { orders, dead })
    }

    async fn settle_page(&self, event: EventId, keys: Vec<String>) -> Result<Settled> {
        let bookings = self.live.read_bookings(event, keys).await?;
        let (mut whole, mut dead) = (Vec::with_capacity(bookings.len()), Vec::new());
        for StoredBooking { key, read } in bookings {
            match read {
                BookingRead::Whole(reservation) => whole.push((key, reservation)),
                BookingRead::Unreadable { raw, reason } => dead.push(DeadLetter { key, reason, raw }),
                // A settlement in another process may have confirmed and removed it since the page was listed.
                BookingRead::Absent if !self.live.booking_listed(event, &key).await? => {}
                BookingRead::Absent => {
                    let reason = "the booking is listed but gone".to_owned();
                    dead.push(DeadLetter { key, reason, raw: HashMap::new() });
                }
            }
        }
        let reservations: Vec<Reservation> = whole.iter().map(|(_, reservation)| reservation.clone()).collect();
        let written = self.mongo.orders.upsert(&reservations).await?;
        if written.confirmed + written.refused.len() != reservations.len() {
            let what = format!("{} of {} orders were confirmed", written.confirmed, reservations.len());
            return Err(Error::internal("settling", what));
        }
        let refused: HashMap<usize, String> = written.refused.into_iter().collect();
        let mut settled = HashSet::with_capacity(whole.len());
        for (index, (key, reservation)) in whole.into_iter().enumerate() {
            match refused.get(&index) {
                None => {
                    settled.insert(key);
                }
                Some(reason) => {
                    let raw = HashMap::from([("reservationId".to_owned(), reservation.id)]);
                    dead.push(DeadLetter { key, reason: reason.clone(), raw });
                }
            }
        }
        metrics::counter!(ORDERS_SETTLED).increment(settled.len() as u64);
        Ok(Settled { keys: settled, dead })
    }

    async fn record_dead(&self, event: EventId, letter: &DeadLetter) -> Result<()> {
        metrics::counter!(DEAD_LETTERS).increment(1);
        tracing::error!(event = %event, key = %letter.key, reason = %letter.reason, "a booking could not be settled; it is kept");
        self.mongo.dead_letters.record(event, &letter.key, &letter.reason, &letter.raw, self.clock.now()).await
    }
}
