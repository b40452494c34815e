//! What a payment gateway is to us.
//!
//! Every call has a deadline that cancels it. A call without an answer has an unknown outcome: it is asked for, or the call
//! is made again with the same idempotency key. It is never guessed.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;

use crate::config::SecretString;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::money::Money;
use crate::domain::payment::Paid;
use crate::error::Result;

/// What a buyer is to be asked for.
#[derive(Debug, Clone)]
pub struct NewIntent {
    /// What it is for; also the idempotency key: the same reservation asked for twice is one intent.
    pub reservation: String,
    /// Where, for whoever reads the gateway's own pages.
    pub event: EventId,
    /// Of what, for the same.
    pub product: ProductId,
    /// Of one unit: what goes back later is a whole number of these.
    pub price: Money,
    /// How much, in the price's currency.
    pub amount: Money,
}

/// How far the buyer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentState {
    /// Not paid yet.
    Open,
    /// The money is there.
    Succeeded,
    /// It can never be paid.
    Canceled,
}

/// An intent to pay, as the gateway tells of it.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The gateway's name for it.
    pub id: String,
    /// How far the buyer has come.
    pub state: IntentState,
    /// What was paid, if it is.
    pub received: Paid,
    /// What the buyer's browser pays with.
    pub client_secret: Option<SecretString>,
    /// Where the buyer's browser pays.
    pub pay_url: Option<String>,
}

/// A callback whose signature is good.
#[derive(Debug, Clone)]
pub struct GatewayEvent {
    /// The gateway's name for it: the same in every repetition.
    pub id: String,
    /// What it tells.
    pub notice: Notice,
}

/// What a callback tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An intent is paid.
    Succeeded {
        /// Which.
        intent: String,
        /// What it is for, if the gateway knows.
        reservation: Option<String>,
        /// How much.
        paid: Paid,
    },
    /// An attempt to pay has failed. The buyer may try again.
    Failed {
        /// Which intent.
        intent: String,
    },
    /// Money of an intent went back.
    Refunded {
        /// Which intent.
        intent: String,
    },
    /// Something that nothing follows from.
    Other,
}

/// What the gateway has said of a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refunded {
    /// The money goes back.
    Made,
    /// It does not, for this reason; and will not under this key, of which the gateway remembers its answer.
    Refused(String),
}

/// Takes money and gives it back.
pub trait PaymentGateway: std::fmt::Debug + Send + Sync {
    /// Makes an intent, or finds the one that was made for this reservation.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`]: whether it was made is unknown, and asking again is safe.
    fn create<'a>(&'a self, wanted: &'a NewIntent) -> BoxFuture<'a, Result<Intent>>;

    /// What became of an intent.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`] when the gateway does not say.
    fn intent<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Intent>>;

    /// What went back of an intent in all, in minor units; what is on its way back included.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`] when the gateway does not say.
    fn refunded_minor<'a>(&'a self, intent: &'a str) -> BoxFuture<'a, Result<i64>>;

    /// Gives a part of an intent back, in the currency that it was paid in, once for each key.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`]: the outcome is unknown; [`Self::refunded_minor`] knows.
    fn refund<'a>(&'a self, intent: &'a str, back: &'a Paid, key: &'a str) -> BoxFuture<'a, Result<Refunded>>;

    /// Reads a callback, if it was signed by the gateway, and lately.
    ///
    /// # Errors
    /// [`crate::error::Code::BadSignature`]; [`crate::error::Code::MalformedBody`] if what was signed cannot be read.
    fn verify(&self, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Result<GatewayEvent>;
}
