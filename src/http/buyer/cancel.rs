//! A buyer cancels.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;

use crate::app::AppState;
use crate::domain::ids::{EventId, ProductId};
use crate::http::cancel::{CancelRequest, Cancellation, CancelledBody, cancel};
use crate::http::extract::{Buyer, MaybeJson, Path, path_id};
use crate::http::problem::{Answer, ProblemBody};
use crate::sale::ReservationRef;

const UNKNOWN: &str = "reservation not found";

/// Cancels the buyer's own reservation of a product, or a part of it: while its sale runs, when its units are on sale
/// again at once, and after it is settled. Cancelling what is cancelled changes nothing.
#[utoipa::path(post, path = "/api/buyer/event/{eventId}/reservation/{productId}/cancel", tag = "buyer",
    request_body(content = Option<CancelRequest>, description = "May be empty: all of it"),
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id"),
        ("Idempotency-Key" = Option<String>, Header, description = "Needed to return a part")), responses(
    (status = 200, description = "Cancelled, now or before", body = CancelledBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "The buyer has none", body = ProblemBody),
    (status = 409, description = "cancellation_closed or nothing_to_return", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 503, description = "A store is away, or the sale is being settled: cancel again", body = ProblemBody)))]
pub(in crate::http) async fn cancel_own_reservation(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path((event, product)): Path<(String, String)>,
    headers: HeaderMap,
    MaybeJson(request): MaybeJson<CancelRequest>,
) -> Answer<Json<CancelledBody>> {
    let (event, product): (EventId, ProductId) = (path_id(&event, UNKNOWN)?, path_id(&product, UNKNOWN)?);
    let reservation = app.sale().reservation_of(session.user(), product, event).await?;
    let of = ReservationRef { id: reservation.id, user: session.user(), product, event };
    let Cancellation { units, operation } = Cancellation::read(&request, &headers, &of.id)?;
    cancel(&app, |sale| async move { sale.cancel_own(&of, units, operation).await }).await
}
