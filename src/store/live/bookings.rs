//! Reading bookings: page by page for settlement, one by one for their buyers.

use std::collections::HashMap;

use super::Live;
use super::link::Link;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::order::OrderStatus;
use crate::domain::reservation::{FIRST_REVISION, Reservation};
use crate::error::Result;

/// What `slot` says when the buyer may not reserve the product again.
pub(super) const SLOT_KEPT: &str = "kept";

/// A booking with the key that it is stored under.
#[derive(Debug, Clone)]
pub struct StoredBooking {
    /// Its key.
    pub key: String,
    /// What the key holds.
    pub read: BookingRead,
}

/// What a booking key holds.
#[derive(Debug, Clone)]
pub enum BookingRead {
    /// A whole reservation.
    Whole(Reservation),
    /// Nothing: removed by another settlement since it was listed, or lost.
    Absent,
    /// Something that cannot be read as a reservation.
    Unreadable {
        /// Every field as it is, for the dead-letter record.
        raw: HashMap<String, String>,
        /// What is wrong.
        reason: String,
    },
}

impl<L: Link> Live<L> {
    /// How many bookings the event has.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn booking_count(&self, event: EventId) -> Result<u64> {
        let mut call = redis::cmd("SCARD");
        call.arg(self.keys.bookings(event));
        self.query("counting bookings", &call).await
    }

    /// One page of booking keys, and where the next page starts (0: the end). A key may come twice.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn booking_keys_page(&self, event: EventId, cursor: u64, count: usize) -> Result<(u64, Vec<String>)> {
        self.set_page("listing bookings", self.keys.bookings(event), cursor, count).await
    }

    /// Whether the key is still listed among the event's bookings.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn booking_listed(&self, event: EventId, key: &str) -> Result<bool> {
        let mut call = redis::cmd("SISMEMBER");
        call.arg(self.keys.bookings(event)).arg(key);
        self.query("looking for a booking", &call).await
    }

    /// Reads bookings, in one round trip. A key that cannot be read does not hide the others.
    ///
    /// # Errors
    /// When the live store does not answer for the whole page: then nothing is known of any of them.
    pub async fn read_bookings(&self, event: EventId, keys: Vec<String>) -> Result<Vec<StoredBooking>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        for key in &keys {
            pipeline.cmd("HGETALL").arg(key);
        }
        let values: Vec<redis::RedisResult<HashMap<String, String>>> =
            self.query_all("reading bookings", &pipeline).await?;
        let mut bookings = Vec::with_capacity(keys.len());
        for (key, value) in keys.into_iter().zip(values) {
            let read = match value {
                Ok(fields) if fields.is_empty() => BookingRead::Absent,
                Ok(fields) => match reservation(&fields, event) {
                    Ok(reservation) => BookingRead::Whole(reservation),
                    Err(reason) => BookingRead::Unreadable { raw: fields, reason },
                },
                // The server answered for this key alone, so this is about the key: a wrong type, or not text.
                Err(error) => match super::fault("reading bookings", error) {
                    crate::error::Error::Damaged { detail, .. } => {
                        BookingRead::Unreadable { raw: HashMap::new(), reason: detail }
                    }
                    other => return Err(other),
                },
            };
            bookings.push(StoredBooking { key, read });
        }
        Ok(bookings)
    }

    /// One buyer's reservation of one product, if there is one.
    ///
    /// # Errors
    /// When the live store does not answer, or the booking cannot be read.
    pub async fn booking(&self, user: UserId, product: ProductId, event: EventId) -> Result<Option<Reservation>> {
        let key = self.keys.booking(user, product, event);
        let stored = self.read_bookings(event, vec![key]).await?.pop();
        match stored.map(|stored| stored.read) {
            Some(BookingRead::Whole(reservation)) => Ok(Some(reservation)),
            Some(BookingRead::Unreadable { reason, .. }) => {
                Err(crate::error::Error::Damaged { doing: "reading a booking", detail: reason })
            }
            Some(BookingRead::Absent) | None => Ok(None),
        }
    }
}

/// Reads the fields of a booking or of a journal entry.
pub(super) fn reservation(fields: &HashMap<String, String>, event: EventId) -> Result<Reservation, String> {
    fn field<'a>(fields: &'a HashMap<String, String>, name: &str) -> Result<&'a str, String> {
        fields.get(name).map(String::as_str).ok_or_else(|| format!("{name} is missing"))
    }
    fn parse<T: std::str::FromStr>(fields: &HashMap<String, String>, name: &str) -> Result<T, String> {
        field(fields, name)?.parse().map_err(|_| format!("{name} cannot be read"))
    }
    let currency = money::currency(field(fields, "currency")?).ok_or("currency is unknown")?;
    let reservation = Reservation {
        id: field(fields, "reservationId")?.to_owned(),
        user: parse(fields, "userId")?,
        product: parse(fields, "productId")?,
        event: parse(fields, "eventId")?,
        quantity: parse(fields, "quantity")?,
        price: Money { minor: parse(fields, "price")?, currency },
        status: OrderStatus::parse(field(fields, "status")?).ok_or("status is unknown")?,
        booked_at_ms: parse(fields, "bookedAt")?,
        expires_at_ms: if fields.contains_key("expiresAt") { Some(parse(fields, "expiresAt")?) } else { None },
        returned: if fields.contains_key("returned") { parse(fields, "returned")? } else { 0 },
        slot_kept: fields.get("slot").is_some_and(|slot| slot == SLOT_KEPT),
        // The first state of a reservation does not carry its number.
        revision: if fields.contains_key("revision") { parse(fields, "revision")? } else { FIRST_REVISION },
        idempotency_key: fields.get("idempotencyKey").cloned().unwrap_or_default(),
        operation: fields.get("operation").cloned().unwrap_or_default(),
    };
    if reservation.event != event {
        return Err("eventId is another event's".to_owned());
    }
    if reservation.id.is_empty() || reservation.quantity == 0 || reservation.price.minor <= 0 {
        return Err("reservationId, quantity or price is empty".to_owned());
    }
    if reservation.returned > reservation.quantity {
        return Err("more units were returned than reserved".to_owned());
    }
    Ok(reservation)
}
