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
    (status = 409, description = "nothing_to_pay, reservation_expired or payments_off", body = ProblemBody),
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
