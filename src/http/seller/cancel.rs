//! A seller cancels an order of their event.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;

use crate::app::AppState;
use crate::error::Error;
use crate::http::cancel::{CancelRequest, Cancellation, CancelledBody, cancel, ordered};
use crate::http::extract::{MaybeJson, OwnedEvent, Path};
use crate::http::problem::{Answer, ProblemBody};

/// The part of the path that [`OwnedEvent`] does not read.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct OrderPath {
    #[serde(rename = "reservationId")]
    reservation: String,
}

/// Cancels an order of the seller's event, or a part of it. An order is known about a second after its reservation.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/orders/{reservationId}/cancel", tag = "seller",
    request_body(content = Option<CancelRequest>, description = "May be empty: all of it"),
    params(("eventId" = String, Path, description = "Event id"),
        ("reservationId" = String, Path, description = "Reservation id, as the order has it"),
        ("Idempotency-Key" = Option<String>, Header, description = "Needed to return a part")), responses(
    (status = 200, description = "Cancelled, now or before", body = CancelledBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event, or it has no such order", body = ProblemBody),
    (status = 409, description = "nothing_to_return", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 503, description = "A store is away, or the sale is being settled: cancel again", body = ProblemBody)))]
pub(in crate::http) async fn cancel_order(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Path(path): Path<OrderPath>,
    headers: HeaderMap,
    MaybeJson(request): MaybeJson<CancelRequest>,
) -> Answer<Json<CancelledBody>> {
    let of = ordered(&app, &path.reservation).await?;
    if of.event != event.id {
        return Err(Error::not_found("order not found").into());
    }
    let Cancellation { units, operation } = Cancellation::read(&request, &headers, &of.id)?;
    cancel(&app, |sale| async move { sale.cancel(&of, units, operation).await }).await
}
