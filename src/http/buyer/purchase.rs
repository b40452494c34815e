//! The purchase. No database is touched on the way: the session is checked in memory, the decision is one script.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, Utc};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::timing::LifeBody;
use crate::app::AppState;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::product::PER_BUYER_LIMIT_MAX;
use crate::domain::reservation::{Reservation, ReserveOutcome, ReserveRequest};
use crate::error::{Code, Error};
use crate::http::extract::{Buyer, MaybeJson, Path, idempotency_key, path_id};
use crate::http::problem::{Answer, Problem, ProblemBody};

/// What a buyer may say; an empty body asks for one unit.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct PurchaseRequest {
    /// Units, from 1.
    #[serde(default = "one")]
    #[garde(range(min = 1, max = PER_BUYER_LIMIT_MAX))]
    quantity: u32,
}

const fn one() -> u32 {
    1
}

impl Default for PurchaseRequest {
    fn default() -> Self {
        Self { quantity: one() }
    }
}

/// A reservation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ReservationBody {
    /// Unique for all time.
    reservation_id: String,
    /// Of one unit, in major units.
    #[schema(value_type = f64)]
    price: serde_json::Number,
    /// CONFIRMED, `PENDING_PAYMENT`, CANCELLED or EXPIRED.
    status: &'static str,
    /// The price in minor units.
    price_minor: i64,
    /// ISO 4217.
    currency: &'static str,
    quantity: u32,
    product_id: String,
    event_id: String,
    /// Milliseconds since 1970, by the live store's clock.
    booked_at_ms: i64,
    /// Units of it that went back to stock.
    returned: u32,
    /// When it runs out unless it is paid, by the live store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    life: LifeBody,
}

impl ReservationBody {
    /// The reservation at a moment of the live store's clock, if that is known.
    pub(in crate::http) fn at(reservation: Reservation, now: Option<DateTime<Utc>>) -> Self {
        let expires_at = reservation.expires_at_ms.and_then(DateTime::from_timestamp_millis);
        Self {
            returned: reservation.returned,
            expires_at,
            life: LifeBody::new(reservation.status, expires_at, reservation.slot_kept, now),
            reservation_id: reservation.id,
            price: reservation.price.major_number(),
            status: reservation.status.as_str(),
            price_minor: reservation.price.minor,
            currency: reservation.price.currency.code(),
            quantity: reservation.quantity,
            product_id: reservation.product.to_string(),
            event_id: reservation.event.to_string(),
            booked_at_ms: reservation.booked_at_ms,
        }
    }
}

impl From<Reservation> for ReservationBody {
    fn from(reservation: Reservation) -> Self {
        Self::at(reservation, None)
    }
}

/// Reserves units of a product for the buyer who asks.
///
/// A 503 means that the outcome is unknown. Ask again: with the same `Idempotency-Key` the answer is the reservation that
/// was made; without one it is a 409 `already_booked` that carries the reservation. There is never a second one.
#[utoipa::path(post, path = "/api/buyer/event/{eventId}/purchase/{productId}", tag = "buyer",
    request_body(content = Option<PurchaseRequest>, description = "May be empty: one unit"),
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 128 visible ASCII characters")), responses(
    (status = 201, description = "Reserved; or held until `expiresAt` if the event has a payment window", body = ReservationBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an approved buyer", body = ProblemBody),
    (status = 404, description = "The sale has no such product", body = ProblemBody),
    (status = 409, description = "sold_out, already_booked, sale_not_active or limit_reached", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 503, description = "The live store did not answer in time: ask again", body = ProblemBody)))]
pub(in crate::http) async fn purchase(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path((event, product)): Path<(String, String)>,
    headers: HeaderMap,
    MaybeJson(request): MaybeJson<PurchaseRequest>,
) -> Answer<(StatusCode, Json<ReservationBody>)> {
    if !session.standing.approved {
        return Err(Error::refused(Code::NotApproved, "verification required").into());
    }
    let unknown = |_| Error::refused(Code::ProductNotFound, "product not found");
    let event: EventId = path_id(&event, "").map_err(unknown)?;
    let product: ProductId = path_id(&product, "").map_err(unknown)?;
    let request = ReserveRequest {
        user: session.user(),
        product,
        event,
        quantity: request.quantity,
        reservation_id: uuid::Uuid::now_v7().to_string(),
        idempotency_key: idempotency_key(&headers)?.unwrap_or_default(),
    };
    let outcome = app.sale().reserve(&request).await?;
    let now = moment_of(&app, &outcome).await;
    match outcome {
        ReserveOutcome::Reserved(reservation) | ReserveOutcome::Replayed(reservation) => {
            Ok((StatusCode::CREATED, Json(ReservationBody::at(reservation, now))))
        }
        refused => Err(refusal(refused, now)),
    }
}

/// The moment of the answer by the live store's clock. A reservation made just now carries it; only for an older one that
/// waits for payment is the clock asked, and the answer does not depend on it.
async fn moment_of(app: &AppState, outcome: &ReserveOutcome) -> Option<DateTime<Utc>> {
    match outcome {
        ReserveOutcome::Reserved(reservation) => DateTime::from_timestamp_millis(reservation.booked_at_ms),
        ReserveOutcome::Replayed(reservation) | ReserveOutcome::AlreadyReserved(reservation)
            if reservation.expires_at_ms.is_some() =>
        {
            app.sale().live_now().await.ok()
        }
        _ => None,
    }
}

fn refusal(outcome: ReserveOutcome, now: Option<DateTime<Utc>>) -> Problem {
    match outcome {
        ReserveOutcome::AlreadyReserved(reservation)
        | ReserveOutcome::Reserved(reservation)
        | ReserveOutcome::Replayed(reservation) => {
            let reservation = serde_json::to_value(ReservationBody::at(reservation, now)).unwrap_or_default();
            Problem::from(Error::refused(Code::AlreadyBooked, "already booked")).with("reservation", reservation)
        }
        ReserveOutcome::KeyReused => Error::refused(
            Code::IdempotencyKeyReused,
            "this Idempotency-Key belongs to another request; use a new one for each",
        )
        .into(),
        ReserveOutcome::SoldOut => Error::refused(Code::SoldOut, "sold out").into(),
        ReserveOutcome::NotLive(status) => Problem::from(Error::refused(Code::SaleNotActive, "sale is not active"))
            .with("currentStatus", status.as_str()),
        ReserveOutcome::UnknownProduct => Error::refused(Code::ProductNotFound, "product not found").into(),
        ReserveOutcome::LimitReached { limit } => {
            Problem::from(Error::refused(Code::LimitReached, "more units than one buyer may have")).with("limit", limit)
        }
    }
}
