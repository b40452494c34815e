//! A buyer asks to pay.
//!
//! The payment is recorded first, with its amount; then the gateway is asked for an intent under the reservation's id as
//! idempotency key; then the intent's name is recorded, once. However often and from wherever it is asked, there is one
//! intent for a reservation, of one amount. If units are cancelled before it is paid, the buyer pays for all and is refunded
//! what is too much.

use chrono::{DateTime, Utc};

use super::gateway::{Intent, IntentState, NewIntent, PaymentGateway};
use super::reconcile::next_question;
use super::{PaymentRecords, Payments};
use crate::config::SecretString;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::Money;
use crate::domain::order::OrderStatus;
use crate::domain::payment::{Payment, PaymentState};
use crate::domain::reservation::Reservation;
use crate::error::{Code, Error, Result};
use crate::store::live::link::Link;
use crate::task::retry::Retry;

/// A gateway that did not answer is asked once more: the same key finds what the first call made.
const ATTEMPTS_MAX: u32 = 2;

/// What a buyer is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The gateway's name for it.
    pub intent: String,
    /// What the buyer's browser pays with.
    pub client_secret: Option<SecretString>,
    /// Where the buyer's browser pays.
    pub pay_url: Option<String>,
    /// How much.
    pub amount: Money,
    /// Until when the reservation is held.
    pub expires_at: DateTime<Utc>,
}

impl<L: Link, D: PaymentRecords> Payments<L, D> {
    /// Asks a buyer to pay for their own reservation of a product. Run it to its end even if the caller hangs up.
    ///
    /// # Errors
    /// [`Code::PaymentsOff`], [`Code::NotFound`], [`Code::NothingToPay`], [`Code::ReservationExpired`]; when a store or the
    /// gateway does not answer: asking again is safe.
    pub async fn pay(&self, user: UserId, product: ProductId, event: EventId) -> Result<Asked> {
        let gateway = self.gateway()?;
        let reservation = self.sale.reservation_of(user, product, event).await?;
        let expires_at = self.payable_until(&reservation).await?;
        let payment = self.durable.begin_payment(&self.new_payment(&reservation, expires_at)).await?;
        if payment.state == PaymentState::Succeeded {
            return Err(paid());
        }
        let intent = self.intent_of(gateway, &payment).await?;
        match intent.state {
            IntentState::Open => {}
            IntentState::Succeeded => {
                // Its callback is lost or on its way; there is no need to wait for it.
                self.durable.ask_payment_at(&payment.reservation, self.clock.now()).await?;
                return Err(paid());
            }
            IntentState::Canceled => {
                return Err(Error::refused(
                    Code::NothingToPay,
                    "the payment was cancelled; it cannot be paid any more",
                ));
            }
        }
        Ok(Asked {
            intent: intent.id,
            client_secret: intent.client_secret,
            pay_url: intent.pay_url,
            amount: Money { minor: payment.amount_minor, currency: payment.price.currency },
            expires_at,
        })
    }

    /// The payment for a buyer's own reservation of a product.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when a store does not answer.
    pub async fn of_own(&self, user: UserId, product: ProductId, event: EventId) -> Result<Payment> {
        let reservation = self.sale.reservation_of(user, product, event).await?;
        let payment = self.durable.payment(&reservation.id).await?;
        payment.ok_or_else(|| Error::not_found("payment not found"))
    }

    /// Until when it can be paid, if it can be. Decided by the live store's clock, as everything about holds.
    async fn payable_until(&self, reservation: &Reservation) -> Result<DateTime<Utc>> {
        let expired = || {
            let message = "the time to pay has passed; reserve again if there are units";
            Error::refused(Code::ReservationExpired, message)
        };
        let nothing = |message: &'static str| Err(Error::refused(Code::NothingToPay, message));
        match reservation.status {
            OrderStatus::PendingPayment => {}
            OrderStatus::Confirmed => return nothing("the reservation is confirmed; there is nothing to pay"),
            OrderStatus::Cancelled => return nothing("the reservation was cancelled; there is nothing to pay"),
            OrderStatus::Expired => return Err(expired()),
        }
        let until_ms = reservation.expires_at_ms.ok_or_else(expired)?;
        if self.live.now_ms().await? >= until_ms {
            return Err(expired());
        }
        DateTime::from_timestamp_millis(until_ms).ok_or_else(expired)
    }

    fn new_payment(&self, reservation: &Reservation, expires_at: DateTime<Utc>) -> Payment {
        Payment {
            reservation: reservation.id.clone(),
            user: reservation.user,
            product: reservation.product,
            event: reservation.event,
            quantity: reservation.quantity,
            price: reservation.price,
            amount_minor: reservation.price.minor.saturating_mul(i64::from(reservation.units_held())),
            expires_at,
            intent: None,
            state: PaymentState::Created,
            paid: None,
            applied: None,
            refunded_minor: 0,
            refunding_minor: None,
            refusals: 0,
            attempts: 0,
            due_at: None,
            created_at: self.clock.now(),
        }
    }

    async fn intent_of(&self, gateway: &dyn PaymentGateway, payment: &Payment) -> Result<Intent> {
        if let Some(id) = &payment.intent {
            return gateway.intent(id).await;
        }
        let wanted = NewIntent {
            reservation: payment.reservation.clone(),
            event: payment.event,
            product: payment.product,
            price: payment.price,
            amount: Money { minor: payment.amount_minor, currency: payment.price.currency },
        };
        let retry = Retry { attempts_max: ATTEMPTS_MAX, pause: self.pause(1) };
        let intent = retry.run(|| gateway.create(&wanted)).await?;
        let first = next_question(payment, self.clock.now());
        let recorded = self.durable.attach_intent(&payment.reservation, &intent.id, first).await?;
        match recorded.intent {
            // A gateway that forgets keys has made a second one. Nobody hears of it, so nobody pays it.
            Some(other) if other != intent.id => gateway.intent(&other).await,
            _ => Ok(intent),
        }
    }
}

fn paid() -> Error {
    Error::refused(Code::NothingToPay, "the reservation is paid; it will be confirmed in a moment")
}
