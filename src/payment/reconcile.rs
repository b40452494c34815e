//! Reconciling: whatever was left in between is brought to its end. It takes no input and is idempotent; one process leads,
//! by a lease that expires, and two that lead at once do no harm: each payment is taken by one of them.
//!
//! A payment that is due is, by what is known of it,
//!
//! - not paid: the gateway is asked, since its callback may be lost
//! - paid and not applied: applied
//! - applied: its money is compared with its order, and what is too much goes back

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;

use super::callback::TAKEN_FOR;
use super::gateway::IntentState;
use super::{PaymentRecords, Payments};
use crate::domain::payment::{Payment, PaymentState};
use crate::error::Result;
use crate::store::live::link::Link;
use crate::task::Tracker;
use crate::telemetry::metrics::{PAYMENTS_UNAPPLIED, REFUNDS_STUCK};

const LEASE: &str = "payments";
/// Payments, and orders that gave units back, that one round looks at.
const PER_ROUND: u32 = 500;
/// Payments at work at once: most of the time goes into waiting for the gateway.
const AT_ONCE: usize = 8;
/// A buyer who pays at the last moment and whose callback is lost keeps the units if we hear of it before they go back.
const QUESTION_BEFORE: TimeDelta = TimeDelta::seconds(5);
/// Questions after a hold has run out, by the seconds that have passed: callbacks are repeated for days, buyers ask sooner.
const QUESTIONS_AFTER_S: [i64; 7] = [1, 10, 60, 600, 3_600, 21_600, 86_400];

/// When to ask the gateway next about a payment that nothing was heard of; `None` if there is no point any more.
pub(super) fn next_question(payment: &Payment, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let window = payment.expires_at - payment.created_at;
    let before = payment.expires_at - QUESTION_BEFORE.min(window / 2);
    let after = QUESTIONS_AFTER_S.into_iter().map(|seconds| payment.expires_at + TimeDelta::seconds(seconds));
    std::iter::once(before).chain(after).find(|moment| *moment > now)
}

impl<L: Link, D: PaymentRecords> Payments<L, D> {
    /// Reconciles again and again until the application stops, while this process leads.
    pub async fn keep_reconciling(self: Arc<Self>, tasks: Tracker) {
        if self.gateway.is_none() {
            return;
        }
        let interval = Duration::from_millis(self.config.reconcile_interval_ms);
        let mut pause = interval;
        while tasks.pause(pause).await {
            let payments = Arc::clone(&self);
            let round = async move {
                let now = payments.clock.now();
                let ttl = payments.lease_ttl.max(interval * 3);
                let leads = payments.durable.take_lease(LEASE, &payments.process, now, ttl).await?;
                if leads { payments.reconcile().await } else { Ok(false) }
            };
            pause = match tasks.complete("reconciling payments", round).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => interval,
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error, "payments cannot be reconciled now");
                    interval
                }
            };
        }
        drop(self.durable.give_up_lease(LEASE, &self.process).await);
    }

    /// One round; true if it had its hands full, and there may be more.
    ///
    /// # Errors
    /// When the database does not answer. A payment that cannot be dealt with does not hold up the others.
    pub async fn reconcile(&self) -> Result<bool> {
        let returned = self.wake_returned().await?;
        let due = self.durable.payments_due(self.clock.now(), PER_ROUND).await?;
        let full = returned.max(due.len()) >= PER_ROUND as usize;
        let steps = futures::stream::iter(due).map(|reservation| async move { self.step(&reservation).await });
        let failed = steps.buffer_unordered(AT_ONCE).filter_map(|step| async { step.err() }).collect::<Vec<_>>().await;
        if let Some(error) = failed.first() {
            tracing::warn!(failed = failed.len(), error = %error, "some payments could not be dealt with yet");
        }
        let (unapplied, stuck) = self.durable.payment_backlog().await?;
        let gauge = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        metrics::gauge!(PAYMENTS_UNAPPLIED).set(gauge(unapplied));
        metrics::gauge!(REFUNDS_STUCK).set(gauge(stuck));
        Ok(full)
    }

    /// Units went back: their money is due. The payments first, then the marks: a crash in between repeats it.
    async fn wake_returned(&self) -> Result<usize> {
        let returned = self.durable.returns_open(PER_ROUND).await?;
        if !returned.is_empty() {
            let reservations: Vec<&str> = returned.iter().map(|one| one.reservation_id.as_str()).collect();
            self.durable.wake_payments(&reservations, self.clock.now()).await?;
            self.durable.close_returns(&returned).await?;
        }
        Ok(returned.len())
    }

    async fn step(&self, reservation: &str) -> Result<()> {
        let now = self.clock.now();
        let Some(payment) = self.durable.claim_payment(reservation, now, now + TAKEN_FOR).await? else { return Ok(()) };
        match (payment.state, payment.applied) {
            (PaymentState::Succeeded, None) => self.apply_taken(&payment).await,
            (PaymentState::Succeeded, Some(_)) => self.balance(&payment).await,
            (PaymentState::Created | PaymentState::Failed, _) => self.question(&payment).await,
        }
    }

    /// Asks the gateway about a payment that nothing was heard of.
    async fn question(&self, payment: &Payment) -> Result<()> {
        let (Some(intent), now) = (&payment.intent, self.clock.now()) else {
            return self.durable.give_payment_back(payment, 0, None).await;
        };
        let next = next_question(payment, now);
        match self.gateway()?.intent(intent).await {
            Ok(found) => match found.state {
                IntentState::Open => self.durable.give_payment_back(payment, 0, next).await,
                IntentState::Succeeded => {
                    tracing::warn!(reservation = %payment.reservation, "a payment was found by asking; its callback has not come");
                    self.succeeded(&payment.reservation, intent, &found.received).await.map(|_| ())
                }
                IntentState::Canceled => {
                    self.durable.fail_payment(intent).await?;
                    self.durable.give_payment_back(payment, 0, None).await
                }
            },
            Err(error) => {
                let attempts = payment.attempts.saturating_add(1);
                tracing::warn!(reservation = %payment.reservation, attempts, error = %error.chain(), "the gateway does not say what became of a payment");
                // While there is any point in asking.
                let again = next.map(|_| now + self.pause(attempts));
                self.durable.give_payment_back(payment, attempts, again).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use iso_currency::Currency;

    use super::*;
    use crate::domain::ids::{EventId, ProductId, UserId};
    use crate::domain::money::Money;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn asked_at(now: i64) -> Option<i64> {
        let payment = Payment {
            reservation: "r".to_owned(),
            user: UserId::from_bytes([1; 12]),
            product: ProductId::from_bytes([2; 12]),
            event: EventId::from_bytes([3; 12]),
            quantity: 1,
            price: Money { minor: 100, currency: Currency::INR },
            amount_minor: 100,
            expires_at: at(1_000),
            intent: None,
            state: PaymentState::Created,
            paid: None,
            applied: None,
            refunded_minor: 0,
            refunding_minor: None,
            refusals: 0,
            attempts: 0,
            due_at: None,
            created_at: at(900),
        };
        next_question(&payment, at(now)).map(|moment| moment.timestamp())
    }

    #[test]
    fn the_gateway_is_asked_before_the_hold_runs_out_and_less_and_less_often_after_it() {
        assert_eq!(asked_at(900), Some(995));
        assert_eq!(asked_at(995), Some(1_001));
        assert_eq!(asked_at(1_001), Some(1_010));
        assert_eq!(asked_at(5_000), Some(22_600));
        assert_eq!(asked_at(1_000 + 86_400), None);
    }
}
