//! Messages to sellers: what happened, once for each thing that happened.
//!
//! A message's id follows from what it tells, so telling the same again (after a crash, by another process) makes no
//! second message.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::event::Event;
use super::ids::{EventId, UserId};
use super::order::OrderStatus;
use super::reservation::Reservation;

/// What a message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// The units are the buyer's.
    ReservationConfirmed,
    /// A reservation or a part of it was given back.
    ReservationCancelled,
    /// A reservation was not paid in time.
    ReservationExpired,
    /// Buyers can reserve.
    SaleOpened,
    /// The sale is over, and its reservations are orders.
    SaleEnded,
    /// A confirmed order of a sale that is over.
    OrderSettled,
}

impl MessageKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::ReservationConfirmed,
        Self::ReservationCancelled,
        Self::ReservationExpired,
        Self::SaleOpened,
        Self::SaleEnded,
        Self::OrderSettled,
    ];

    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReservationConfirmed => "reservation.confirmed",
            Self::ReservationCancelled => "reservation.cancelled",
            Self::ReservationExpired => "reservation.expired",
            Self::SaleOpened => "sale.opened",
            Self::SaleEnded => "sale.ended",
            Self::OrderSettled => "order.settled",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// What a reservation in this state has just been through; `None` for a hold that waits for its payment.
    #[must_use]
    pub const fn of(reservation: &Reservation) -> Option<Self> {
        match reservation.status {
            OrderStatus::PendingPayment => None,
            // Returning a part needs the name of an operation, and a confirmation has none.
            OrderStatus::Confirmed if reservation.returned > 0 && !reservation.operation.is_empty() => {
                Some(Self::ReservationCancelled)
            }
            OrderStatus::Confirmed => Some(Self::ReservationConfirmed),
            OrderStatus::Cancelled => Some(Self::ReservationCancelled),
            OrderStatus::Expired => Some(Self::ReservationExpired),
        }
    }
}

/// A seller who wants to be told, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Who.
    pub seller: UserId,
    /// At least one kind.
    pub kinds: Vec<MessageKind>,
}

/// Something that happened, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id: the same for every endpoint and every attempt.
    pub id: String,
    /// Who is told.
    pub seller: UserId,
    /// What it tells.
    pub kind: MessageKind,
    /// The JSON that is sent, byte for byte.
    pub body: String,
    /// When it was told first.
    pub at: DateTime<Utc>,
}

impl Message {
    /// Tells of a reservation in one revision.
    #[must_use]
    pub fn of_reservation(seller: UserId, kind: MessageKind, of: &Reservation, at: DateTime<Utc>) -> Self {
        let data = json!({
            "eventId": of.event.to_string(),
            "reservationId": of.id,
            "productId": of.product.to_string(),
            "userId": of.user.to_string(),
            "status": of.status.as_str(),
            "quantity": of.quantity,
            "returned": of.returned,
            "priceMinor": of.price.minor,
            "currency": of.price.currency.code(),
            "bookedAtMs": of.booked_at_ms,
            "revision": of.revision,
        });
        // A settled order is told once, whatever it went through before.
        let revision = if kind == MessageKind::OrderSettled { 0 } else { of.revision };
        Self::new(seller, kind, &format!("{} {revision}", of.id), &data, at)
    }

    /// Tells that a sale is open.
    #[must_use]
    pub fn of_opening(event: &Event, at: DateTime<Utc>) -> Self {
        let data = json!({ "eventId": event.id.to_string(), "eventName": event.name });
        Self::new(event.seller, MessageKind::SaleOpened, &event.id.to_string(), &data, at)
    }

    /// Tells that a sale is over, with the orders that it came to.
    #[must_use]
    pub fn of_ending(seller: UserId, event: EventId, orders: u64, dead_letters: u64, at: DateTime<Utc>) -> Self {
        let data = json!({ "eventId": event.to_string(), "orders": orders, "deadLetters": dead_letters });
        Self::new(seller, MessageKind::SaleEnded, &event.to_string(), &data, at)
    }

    fn new(seller: UserId, kind: MessageKind, subject: &str, data: &Value, at: DateTime<Utc>) -> Self {
        let timestamp = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let body = json!({ "type": kind.as_str(), "timestamp": timestamp, "data": data }).to_string();
        Self { id: message_id(kind, subject), seller, kind, body, at }
    }
}

/// Without a full stop, which separates what is signed.
fn message_id(kind: MessageKind, subject: &str) -> String {
    let digest = Sha256::digest(format!("{} {subject}", kind.as_str()).as_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ProductId;
    use crate::domain::money::{self, Money};

    fn reservation(status: OrderStatus, revision: u32) -> Reservation {
        Reservation {
            id: "a-reservation".to_owned(),
            user: UserId::from_bytes([1; 12]),
            product: ProductId::from_bytes([2; 12]),
            event: EventId::from_bytes([3; 12]),
            quantity: 2,
            price: Money { minor: 19_999, currency: money::currency("INR").unwrap() },
            status,
            booked_at_ms: 1_767_225_600_000,
            expires_at_ms: None,
            returned: 0,
            slot_kept: false,
            revision,
            idempotency_key: "the buyer's own".to_owned(),
            operation: String::new(),
        }
    }

    #[test]
    fn a_kind_is_read_as_it_is_written() {
        for kind in MessageKind::ALL {
            assert_eq!(MessageKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(MessageKind::parse("reservation.*"), None);
    }

    #[test]
    fn a_part_that_is_given_back_is_no_second_confirmation() {
        let mut one = reservation(OrderStatus::Confirmed, 1);
        assert_eq!(MessageKind::of(&one), Some(MessageKind::ReservationConfirmed));
        one.returned = 1;
        assert_eq!(MessageKind::of(&one), Some(MessageKind::ReservationConfirmed), "paid late, and only in part");
        one.operation = "one back".to_owned();
        assert_eq!(MessageKind::of(&one), Some(MessageKind::ReservationCancelled));
        assert_eq!(MessageKind::of(&reservation(OrderStatus::PendingPayment, 1)), None);
    }

    #[test]
    fn the_same_thing_has_one_id_and_another_thing_has_another() {
        let seller = UserId::from_bytes([4; 12]);
        let (early, late) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH + chrono::Duration::days(1));
        let tell = |kind, revision, at| {
            Message::of_reservation(seller, kind, &reservation(OrderStatus::Confirmed, revision), at).id
        };
        let confirmed = MessageKind::ReservationConfirmed;
        assert_eq!(tell(confirmed, 1, early), tell(confirmed, 1, late));
        assert_ne!(tell(confirmed, 1, early), tell(confirmed, 2, early));
        assert_ne!(tell(confirmed, 1, early), tell(MessageKind::OrderSettled, 1, early));
        assert_eq!(tell(MessageKind::OrderSettled, 1, early), tell(MessageKind::OrderSettled, 2, early));
        assert!(!tell(confirmed, 1, early).contains('.'));
    }

    #[test]
    fn a_buyers_own_key_is_not_told() {
        let one = reservation(OrderStatus::Confirmed, 1);
        let kind = MessageKind::ReservationConfirmed;
        let message = Message::of_reservation(UserId::from_bytes([4; 12]), kind, &one, DateTime::UNIX_EPOCH);
        assert!(!message.body.contains("the buyer's own"), "{}", message.body);
        assert!(message.body.contains("\"type\":\"reservation.confirmed\""), "{}", message.body);
    }
}
