//! A callback: verified, recorded, applied, and only then dealt with.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::header::HeaderMap;

use super::gateway::Notice;
use super::{PaymentRecords, Payments};
use crate::domain::payment::Paid;
use crate::error::{Dependency, Error, Result};
use crate::store::live::link::Link;
use crate::telemetry::metrics::PAYMENT_CALLBACKS;

/// Whoever has taken a payment is given so long. Should its process die, the payment is due again then.
pub(super) const TAKEN_FOR: TimeDelta = TimeDelta::seconds(30);
/// A callback that finds its payment in other hands looks again this often, and then asks to be repeated.
const LOOKS_MAX: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// What became of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Something was changed.
    Applied,
    /// It had been applied before, or what it tells was known.
    Before,
    /// Nothing follows from it, or it is about something that is not ours.
    Ignored,
}

impl Received {
    /// The text on the wire and in the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Before => "before",
            Self::Ignored => "ignored",
        }
    }
}

impl<L: Link, D: PaymentRecords> Payments<L, D> {
    /// Deals with a callback. Run it to its end even if the caller hangs up.
    ///
    /// # Errors
    /// [`crate::error::Code::BadSignature`], [`crate::error::Code::MalformedBody`], [`crate::error::Code::PaymentsOff`];
    /// when a store does not answer: then the gateway should send it again.
    pub async fn receive(&self, headers: &HeaderMap, body: &[u8]) -> Result<Received> {
        let received = self.deal_with(headers, body).await;
        let label = match &received {
            Ok(received) => received.as_str(),
            Err(error) if error.retryable() => "later",
            Err(_) => "refused",
        };
        metrics::counter!(PAYMENT_CALLBACKS, "outcome" => label).increment(1);
        received
    }

    async fn deal_with(&self, headers: &HeaderMap, body: &[u8]) -> Result<Received> {
        let event = self.gateway()?.verify(headers, body, self.clock.now())?;
        if self.durable.callback_seen(&event.id).await? {
            return Ok(Received::Before);
        }
        let received = match &event.notice {
            Notice::Succeeded { intent, reservation, paid } => {
                let reservation = match reservation {
                    Some(reservation) => Some(reservation.clone()),
                    None => self.durable.payment_by_intent(intent).await?.map(|payment| payment.reservation),
                };
                match reservation {
                    Some(reservation) => self.succeeded(&reservation, intent, paid).await?,
                    None => not_ours(intent),
                }
            }
            Notice::Failed { intent } => {
                self.durable.fail_payment(intent).await?;
                Received::Applied
            }
            Notice::Refunded { intent } => self.refunded_elsewhere(intent).await?,
            Notice::Other => Received::Ignored,
        };
        self.durable.record_callback(&event.id, self.clock.now()).await?;
        Ok(received)
    }

    /// The money for a reservation is there. Also what is found out by asking ends up here.
    pub(super) async fn succeeded(&self, reservation: &str, intent: &str, paid: &Paid) -> Result<Received> {
        let until = self.clock.now() + TAKEN_FOR;
        if let Some(taken) = self.durable.succeed_payment(reservation, intent, paid, until).await? {
            self.apply_taken(&taken).await?;
            return Ok(Received::Applied);
        }
        for _ in 0..LOOKS_MAX {
            let Some(payment) = self.durable.payment(reservation).await? else {
                return Ok(not_ours(intent));
            };
            if payment.intent.as_deref() != Some(intent) {
                tracing::error!(%reservation, %intent, "money for a reservation that another intent was made for; refund it by hand");
                return Ok(Received::Ignored);
            }
            if payment.applied.is_some() {
                return Ok(Received::Before);
            }
            let now = self.clock.now();
            let taken = self.durable.claim_unapplied(reservation, now, now + TAKEN_FOR).await?;
            if let Some(taken) = taken {
                self.apply_taken(&taken).await?;
                return Ok(Received::Applied);
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Err(Error::timed_out(Dependency::Capacity, "waiting for another delivery of the same payment"))
    }

    /// Money went back: by us, or by somebody at the gateway's own pages. The next look at the payment takes it in.
    async fn refunded_elsewhere(&self, intent: &str) -> Result<Received> {
        let Some(payment) = self.durable.payment_by_intent(intent).await? else { return Ok(not_ours(intent)) };
        self.durable.wake_payments(&[payment.reservation.as_str()], self.clock.now()).await?;
        Ok(Received::Applied)
    }
}

/// A gateway's account may take money for more than Orbit: what was never asked for here is none of our business.
fn not_ours(intent: &str) -> Received {
    tracing::warn!(%intent, "a callback is about a payment that was not asked for here; it is ignored");
    Received::Ignored
}
