//! An event: the occasion whose products go on sale together.

use chrono::{DateTime, Utc};

use super::ids::{EventId, UserId};
use super::journal::EntryId;

/// What MongoDB knows of the sale. It is the durable memory behind the live status in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SalePhase {
    /// Being prepared; the catalogue may change.
    Draft,
    /// The inventory is being projected; the catalogue is frozen.
    Opening,
    /// Opened: live or paused in Redis.
    Live,
    /// Stopped in Redis; orders are being written.
    Stopped,
    /// Every reservation is an order.
    Settled,
}

impl SalePhase {
    /// Every phase.
    pub const ALL: [Self; 5] = [Self::Draft, Self::Opening, Self::Live, Self::Stopped, Self::Settled];

    /// The text in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "DRAFT",
            Self::Opening => "OPENING",
            Self::Live => "LIVE",
            Self::Stopped => "STOPPED",
            Self::Settled => "SETTLED",
        }
    }

    /// The phase of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text)
    }

    /// Whether the sale has been stopped for good.
    #[must_use]
    pub const fn over(self) -> bool {
        matches!(self, Self::Stopped | Self::Settled)
    }
}

/// The longest payment window, in seconds: a week.
pub const PAYMENT_WINDOW_S_MAX: u32 = 604_800;

/// What the buyers of an event are promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Seconds in which a reservation is to be paid; with 0 it is confirmed at once.
    pub payment_window_s: u32,
    /// Until when a buyer may cancel; `None` is always.
    pub cancel_until: Option<DateTime<Utc>>,
    /// Whether a buyer whose confirmed reservation was cancelled may not reserve the product again.
    pub refund_keeps_slot: bool,
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Who owns it.
    pub seller: UserId,
    /// A readable, unique name for links: the title and six digits of the id.
    pub slug: String,
    /// Its title.
    pub name: String,
    /// Free text.
    pub description: String,
    /// When the seller means to open it; opening earlier is allowed.
    pub scheduled_at: DateTime<Utc>,
    /// Whether it opens by itself at that moment.
    pub auto_open: bool,
    /// When its sale ends by itself, if it does.
    pub ends_at: Option<DateTime<Utc>>,
    /// The IANA zone that its times are shown in; they are moments, and it changes none of them.
    pub time_zone: Option<String>,
    /// What its buyers are promised.
    pub terms: Terms,
    /// What is known of its sale.
    pub phase: SalePhase,
    /// Public address of the banner.
    pub banner_url: String,
    /// The banner's key in the media store; `None` when the seller gave an address of their own.
    pub banner_key: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
    /// How far the journal of its sale was read into orders.
    pub drained: Option<EntryId>,
    /// How many orders its sale came to, once it is settled.
    pub settled_orders: Option<u64>,
}

/// The slug of an event: lower-case words of the title joined by hyphens, then six digits of the id.
#[must_use]
pub fn slug(title: &str, id: EventId) -> String {
    let mut words = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            words.push(c);
        } else if !words.is_empty() && !words.ends_with('-') {
            words.push('-');
        }
        if words.len() >= 60 {
            break;
        }
    }
    let id = id.to_string();
    let words = words.trim_end_matches('-');
    let words = if words.is_empty() { "event" } else { words };
    format!("{words}-{}", &id[id.len() - 6..])
}

/// Whether a text has the shape of a slug, and so may name an event.
#[must_use]
pub fn is_slug(text: &str) -> bool {
    text.len() <= 80
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.rsplit_once('-').is_some_and(|(words, tail)| {
            !words.is_empty() && tail.len() == 6 && tail.bytes().all(|b| b.is_ascii_hexdigit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_readable_and_unique_per_event() {
        let id: EventId = "0123456789abcdef01234567".parse().unwrap();
        assert_eq!(slug("Air Max — Spring '26!", id), "air-max-spring-26-234567");
        assert_eq!(slug("日本", id), "event-234567");
        assert!(is_slug(&slug("Air Max", id)));
        assert!(!is_slug("not-an-object-id") && !is_slug("0123456789abcdef01234567") && !is_slug(""));
    }
}
