//! Refunds: money kept is price x units held, for every payment, whatever has become of its reservation.
//!
//! Exactly once. What is to have gone back in all is written first (`refunding.targetMinor`, only if no other refund is under
//! way); the gateway is asked under the key `{reservation}:{target}`; and then it is written that it went back. A refund that
//! was cut short is found again by the first write, and the gateway is asked what went back before anything is repeated: it
//! forgets keys after a day. What it has refused for good under one key is counted, and asked for under another.

use std::time::Duration;

use super::gateway::Refunded;
use super::{PaymentRecords, Payments};
use crate::domain::event::SalePhase;
use crate::domain::payment::{Paid, Payment};
use crate::error::{Dependency, Error, Result};
use crate::store::live::link::Link;
use crate::telemetry::metrics::REFUNDS;

/// An order that does not tell of its payment yet is looked at again this soon, and less and less often.
const ORDER_PAUSE: Duration = Duration::from_millis(200);
const ORDER_PAUSE_MAX: Duration = Duration::from_secs(60);

impl<L: Link, D: PaymentRecords> Payments<L, D> {
    /// Looks at an applied payment that this call has taken: refunds what is too much, and is done with it then, until units
    /// go back.
    ///
    /// # Errors
    /// When the database does not answer; then the payment is due when its time runs out. A failed refund is no error here.
    pub(super) async fn balance(&self, payment: &Payment) -> Result<()> {
        if let Some(applied) = payment.applied.filter(|applied| !applied.outcome.confirmed()) {
            self.take_back_if_held(payment, applied.outcome).await?;
        }
        let order = self.durable.order(&payment.reservation).await?;
        let now = self.clock.now();
        if !payment.told_by(order.as_ref()) && !self.settled(payment).await? {
            let attempts = payment.attempts.saturating_add(1);
            let pause = (ORDER_PAUSE * attempts).min(ORDER_PAUSE_MAX);
            return self.durable.give_payment_back(payment, attempts, Some(now + pause)).await;
        }
        // A refund that is under way comes to its end first, whatever the order says by now.
        let target = payment.refunding_minor.unwrap_or_else(|| payment.refund_target(order.as_ref()));
        if target <= payment.refunded_minor {
            return self.durable.give_payment_back(payment, 0, None).await;
        }
        match self.refund(payment, target).await {
            // Looked at once more: units may have gone back meanwhile.
            Ok(()) => self.durable.give_payment_back(payment, 0, Some(now)).await,
            Err(error) => {
                let attempts = payment.attempts.saturating_add(1);
                let reservation = &payment.reservation;
                if attempts >= self.config.refund_attempts_max {
                    metrics::counter!(REFUNDS, "outcome" => "given_up").increment(1);
                    tracing::error!(%reservation, target, attempts, error = %error.chain(), "a refund was given up; it needs a person");
                    return self.durable.give_payment_up(payment, now).await;
                }
                metrics::counter!(REFUNDS, "outcome" => "failed").increment(1);
                tracing::warn!(%reservation, target, attempts, error = %error.chain(), "a refund has failed; it is tried again");
                self.durable.give_payment_back(payment, attempts, Some(now + self.pause(attempts))).await
            }
        }
    }

    /// Whether the orders are all that is left of the sale: what they do not know was lost with a live store.
    async fn settled(&self, payment: &Payment) -> Result<bool> {
        let event = self.durable.event(payment.event).await?;
        Ok(event.is_none_or(|event| event.phase == SalePhase::Settled))
    }

    /// Brings what went back up to `target`, in minor units.
    async fn refund(&self, payment: &Payment, target: i64) -> Result<()> {
        let gateway = self.gateway()?;
        let reservation = &payment.reservation;
        // A payment that has succeeded has an intent: it was recorded with it.
        let intent = payment.intent.as_deref().unwrap_or_default();
        let mut back = payment.refunded_minor;
        if payment.refunding_minor.is_some() {
            back = back.max(gateway.refunded_minor(intent).await?);
        } else if !self.durable.start_refund(reservation, target).await? {
            // Somebody else was quicker, who had this payment for longer than one may.
            return Ok(());
        }
        if back < target {
            let currency = payment.paid.as_ref().map_or_else(|| payment.price.currency.code(), |paid| &paid.currency);
            let missing = Paid { minor: target - back, currency: currency.to_owned() };
            let key = refund_key(payment, target, back);
            if let Refunded::Refused(why) = gateway.refund(intent, &missing, &key).await? {
                self.durable.refuse_refund(reservation, target).await?;
                return Err(Error::unavailable(Dependency::PaymentGateway, "refunding a payment", why));
            }
        }
        if self.durable.finish_refund(reservation, target).await? {
            metrics::counter!(REFUNDS, "outcome" => "made").increment(1);
            tracing::info!(%reservation, target, "payment refunded");
        }
        Ok(())
    }
}

/// The same refund has the same key. What somebody gave back by hand makes it another request, and so does a refusal: the
/// gateway repeats its answer to a key for a day, also when there is money again to give back.
fn refund_key(payment: &Payment, target: i64, back: i64) -> String {
    let mut key = format!("{}:{target}", payment.reservation);
    if back > payment.refunded_minor {
        key.push_str(&format!(":{back}"));
    }
    if payment.refusals > 0 {
        key.push_str(&format!("#{}", payment.refusals));
    }
    key
}
