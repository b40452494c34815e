//! Money that is there is applied to its reservation, once.

use super::{PaymentRecords, Payments};
use crate::domain::order::OrderStatus;
use crate::domain::payment::{Applied, Payment, PaymentOutcome};
use crate::domain::reservation::Confirmed;
use crate::error::{Code, Dependency, Error, Result};
use crate::sale::ReservationRef;
use crate::store::live::link::Link;
use crate::telemetry::metrics::PAYMENTS;

impl<L: Link, D: PaymentRecords> Payments<L, D> {
    /// Applies a payment that has succeeded and that this call has taken; after a failure it is due again soon.
    ///
    /// # Errors
    /// When a store does not answer, or while the sale is being settled.
    pub(super) async fn apply_taken(&self, payment: &Payment) -> Result<()> {
        let applied = self.apply(payment).await;
        if let Err(error) = &applied {
            let (attempts, now) = (payment.attempts.saturating_add(1), self.clock.now());
            tracing::warn!(reservation = %payment.reservation, attempts, error = %error, "a payment cannot be applied now");
            // Should this not be possible either, it is due when its time runs out.
            drop(self.durable.give_payment_back(payment, attempts, Some(now + self.pause(attempts))).await);
        }
        applied
    }

    async fn apply(&self, payment: &Payment) -> Result<()> {
        let applied = self.decide(payment).await?;
        let recorded = self.durable.apply_payment(&payment.reservation, applied, self.clock.now()).await?;
        let outcome = recorded.applied.map_or(applied.outcome, |recorded| recorded.outcome);
        if applied.outcome.confirmed() && !outcome.confirmed() {
            // Should this process die or fail now, whoever looks at the payment next takes them back.
            self.durable.wake_payments(&[payment.reservation.as_str()], self.clock.now()).await?;
            return self.take_back(payment, outcome).await;
        }
        metrics::counter!(PAYMENTS, "outcome" => outcome.as_str()).increment(1);
        if outcome.confirmed() {
            tracing::info!(reservation = %payment.reservation, outcome = outcome.as_str(), "payment applied");
        } else {
            tracing::warn!(reservation = %payment.reservation, outcome = outcome.as_str(), "a payment buys nothing; it is refunded");
        }
        Ok(())
    }

    /// What the money does. Units follow from the amount: paid / price, a whole number from 1 to what was reserved.
    async fn decide(&self, payment: &Payment) -> Result<Applied> {
        let Some(units) = payment.units_paid() else {
            return Ok(Applied { outcome: PaymentOutcome::Mismatch, revision: 0 });
        };
        let confirmed = self.sale.confirm(&reservation_of(payment), units).await?;
        let (outcome, reservation) = match confirmed {
            Confirmed::OnTime(reservation) | Confirmed::Before(reservation) => (PaymentOutcome::Confirmed, reservation),
            Confirmed::Late(reservation) => (PaymentOutcome::ConfirmedLate, reservation),
            Confirmed::NoStock(reservation) => (PaymentOutcome::PaidWithoutStock, reservation),
            Confirmed::Cancelled(reservation) => (PaymentOutcome::PaidAfterCancel, reservation),
            Confirmed::Unknown => return Ok(Applied { outcome: PaymentOutcome::NoReservation, revision: 0 }),
            Confirmed::NotRunning(_) => {
                return Err(Error::timed_out(Dependency::LiveStore, "confirming in a sale that is being settled"));
            }
        };
        Ok(Applied { outcome, revision: reservation.revision })
    }

    /// Takes units back that a payment which buys nothing has confirmed all the same: see [`Self::take_back`].
    ///
    /// # Errors
    /// When a store does not answer, or while the sale is being settled.
    pub(super) async fn take_back_if_held(&self, payment: &Payment, outcome: PaymentOutcome) -> Result<()> {
        // The live store knows it before its order does.
        let found = match self.sale.reservation_of(payment.user, payment.product, payment.event).await {
            Ok(found) => found,
            Err(error) if error.code() == Code::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let held = found.id == payment.reservation && found.status == OrderStatus::Confirmed && found.units_held() > 0;
        if held { self.take_back(payment, outcome).await } else { Ok(()) }
    }

    /// Somebody else had decided that this money buys nothing, and units came back just before this call confirmed. It was
    /// slower than it may be ([`super::callback::TAKEN_FOR`]), and the live store has lost that it had refused already. The
    /// first decision stands, and its refund.
    async fn take_back(&self, payment: &Payment, outcome: PaymentOutcome) -> Result<()> {
        tracing::warn!(reservation = %payment.reservation, outcome = outcome.as_str(), "a payment was confirmed after it was refused; its units go back");
        let operation = format!("payment {}", payment.reservation);
        self.sale.cancel(&reservation_of(payment), None, Some(operation)).await.map(|_| ())
    }
}

fn reservation_of(payment: &Payment) -> ReservationRef {
    ReservationRef {
        id: payment.reservation.clone(),
        user: payment.user,
        product: payment.product,
        event: payment.event,
    }
}
