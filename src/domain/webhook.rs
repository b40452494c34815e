//! Webhooks: where a seller is told, and how the telling went.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::ids::{DeliveryId, UserId, WebhookId};
use super::message::MessageKind;

/// Whether an endpoint is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookState {
    /// It is.
    Enabled,
    /// It is, and every attempt of some delivery has failed since the last one that succeeded.
    Failing,
    /// It is not: it said that it is gone (410), or its seller has turned it off.
    Disabled,
}

impl WebhookState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Enabled, Self::Failing, Self::Disabled];

    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Failing => "FAILING",
            Self::Disabled => "DISABLED",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A sealed secret that signs until a moment, beside the newest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousSecret {
    /// As it is stored.
    pub sealed: String,
    /// From then on it signs nothing.
    pub until: DateTime<Utc>,
}

/// An endpoint of a seller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Whose.
    pub seller: UserId,
    /// Where messages are sent.
    pub url: String,
    /// What is sent; every kind if there are none.
    pub kinds: Vec<MessageKind>,
    /// Whether anything is sent.
    pub state: WebhookState,
    /// The newest secret, sealed.
    pub secret: String,
    /// The one before, while both sign.
    pub previous: Option<PreviousSecret>,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

impl Webhook {
    /// Whether it is to be told of this kind.
    #[must_use]
    pub fn wants(&self, kind: MessageKind) -> bool {
        self.state != WebhookState::Disabled && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}

/// How far a delivery has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// There is an attempt to come.
    Pending,
    /// The endpoint has answered 2xx.
    Delivered,
    /// Nothing more is tried, unless the seller asks for it.
    Failed,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// One message on its way to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id, which follows from the message and the endpoint.
    pub id: DeliveryId,
    /// To which endpoint.
    pub webhook: WebhookId,
    /// Which message.
    pub message: String,
    /// What the message tells.
    pub kind: MessageKind,
    /// How far it has come.
    pub state: DeliveryState,
    /// Attempts since it was made, or since its seller asked for it again.
    pub attempts: u32,
    /// When the next attempt is due; of one that is being tried, when another process may take it over.
    pub next_at: DateTime<Utc>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The newest attempts, oldest first.
    pub log: Vec<Attempt>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// When it began.
    pub at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What the endpoint answered, if it did.
    pub status: Option<u16>,
    /// Why it failed, in at most [`ERROR_CHARS_MAX`] characters; `None` if it did not.
    pub error: Option<String>,
}

/// Attempts that a delivery remembers.
pub const LOG_ATTEMPTS_MAX: u32 = 20;
/// Characters of an attempt's error.
pub const ERROR_CHARS_MAX: usize = 200;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// How many seconds after the attempt before each attempt comes: the schedule of Standard Webhooks.
pub const SCHEDULE_S: [u64; 10] =
    [0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// How long to wait after this many failed attempts; `None` if there is no further one. `jitter` (0 to 255) makes it up to
/// a tenth longer, so that what failed together is not tried together.
#[must_use]
pub fn pause_after(attempts: u32, jitter: u8) -> Option<Duration> {
    let pause = Duration::from_secs(*SCHEDULE_S.get(attempts as usize)?);
    Some(pause + pause / 10 * u32::from(jitter) / 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_attempts_are_made_within_four_days() {
        let pauses: Vec<_> = (0..20).map_while(|attempts| pause_after(attempts, 0)).collect();
        assert_eq!(pauses.len(), 10);
        assert_eq!(pauses[1], Duration::from_secs(5));
        let longest: Duration = (0..20).map_while(|attempts| pause_after(attempts, 255)).sum();
        assert!(longest < Duration::from_secs(4 * 24 * HOUR), "{longest:?}");
        assert_eq!(pause_after(2, 255), Some(Duration::from_secs(330)));
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        assert!(WebhookState::ALL.iter().all(|state| WebhookState::parse(state.as_str()) == Some(*state)));
        assert!(DeliveryState::ALL.iter().all(|state| DeliveryState::parse(state.as_str()) == Some(*state)));
        assert!(WebhookState::parse("").is_none() && DeliveryState::parse("").is_none());
    }
}
