//! Paying for a reservation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::config::ExposeSecret;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::payment::Payment;
use crate::http::extract::{Buyer, Path, path_id};
use crate::http::problem::{Answer, ProblemBody};

/// What the buyer is asked for. One of `clientSecret` and `payUrl` is there, by the gateway.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PayBody {
    /// The gateway's name for it.
    intent_id: String,
    /// What the gateway's own script in the buyer's browser pays with.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// Where the buyer pays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pay_url: Option<String>,
    /// In minor units: of all units of the reservation.
    amount_minor: i64,
    /// ISO 4217.
    currency: &'static str,
    /// Until when the reservation is held.
    expires_at: DateTime<Utc>,
}

/// The money for a reservation.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct OwnPaymentBody {
    payment: PaymentItem,
}

/// What became of the money for a reservation, in minor units.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PaymentItem {
    reservation_id: String,
    /// The gateway's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    intent_id: Option<String>,
    /// CREATED, SUCCEEDED or FAILED.
    state: &'static str,
    /// What it did to the reservation, once it did: CONFIRMED, `CONFIRMED_LATE`, `PAID_WITHOUT_STOCK`, `PAID_AFTER_CANCEL`,
    /// MISMATCH or `NO_RESERVATION`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    amount_minor: i64,
    paid_minor: i64,
    refunded_minor: i64,
    /// ISO 4217.
    currency: &'static str,
    /// Whether nothing is to be done about it any more: no refund is due.
    settled: bool,
}

impl From<Payment> for PaymentItem {
    fn from(payment: Payment) -> Self {
        Self {
            intent_id: payment.intent,
            state: payment.state.as_str(),
            outcome: payment.applied.map(|applied| applied.outcome.as_str()),
            amount_minor: payment.amount_minor,
            paid_minor: payment.paid.map_or(0, |paid| paid.minor),
            refunded_minor: payment.refunded_minor,
            currency: payment.price.currency.code(),
            settled: payment.due_at.is_none() && payment.refunding_minor.is_none(),
            reservation_id: payment.reservation,
        }
    }
}

/// Shows what became of the money for the buyer's own reservation of a product: paid, kept, on its way back.
#[utoipa::path(get, path = "/api/buyer/event/{eventId}/reservation/{productId}/payment", tag = "buyer",
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "The payment", body = OwnPaymentBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "The buyer has no such reservation, or has not asked to pay", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_payment(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path((event, product)): Path<(String, String)>,
) -> Answer<Json<OwnPaymentBody>> {
    const UNKNOWN: &str = "reservation not found";
    let (event, product): (EventId, ProductId) = (path_id(&event, UNKNOWN)?, path_id(&product, UNKNOWN)?);
    let payment = app.payments().of_own(session.user(), product, event).await?;
    Ok(Json(OwnPaymentBody { payment: payment.into() }))
}

/// Asks to pay for the buyer's own reservation, as often as one likes: there is one payment for each reservation.
///
/// The reservation is confirmed when the gateway tells that the money is there, a moment after the buyer has paid.
#[utoipa::path(post, path = "/api/buyer/event/{eventId}/reservation/{productId}/pay", tag = "buyer",
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "Where and how much to pay", body = PayBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "The buyer has no such reservation", body = ProblemBody),
    (status = 409, description = "nothing_to_pay, reservation_expired, payments_off or price_not_chargeable", body = ProblemBody),
    (status = 503, description = "A store or the gateway is away: ask again", body = ProblemBody)))]
pub(in crate::http) async fn pay(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path((event, product)): Path<(String, String)>,
) -> Answer<Json<PayBody>> {
    const UNKNOWN: &str = "reservation not found";
    let (event, product): (EventId, ProductId) = (path_id(&event, UNKNOWN)?, path_id(&product, UNKNOWN)?);
    let (payments, user) = (Arc::clone(app.payments()), session.user());
    let asked = app.tasks().complete("asking to pay", async move { payments.pay(user, product, event).await }).await?;
    Ok(Json(PayBody {
        intent_id: asked.intent,
        client_secret: asked.client_secret.map(|secret| secret.expose_secret().to_owned()),
        pay_url: asked.pay_url,
        amount_minor: asked.amount.minor,
        currency: asked.amount.currency.code(),
        expires_at: asked.expires_at,
    }))
}
