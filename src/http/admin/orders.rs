//! An administrator cancels an order.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;

use crate::app::AppState;
use crate::http::cancel::{CancelRequest, Cancellation, CancelledBody, cancel, ordered};
use crate::http::extract::{Admin, MaybeJson, Path};
use crate::http::problem::{Answer, ProblemBody};

/// Cancels any order, or a part of it. It is recorded who did.
#[utoipa::path(post, path = "/api/admin/orders/{reservationId}/cancel", tag = "admin",
    request_body(content = Option<CancelRequest>, description = "May be empty: all of it"),
    params(("reservationId" = String, Path, description = "Reservation id, as the order has it"),
        ("Idempotency-Key" = Option<String>, Header, description = "Needed to return a part")), responses(
    (status = 200, description = "Cancelled, now or before", body = CancelledBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such order", body = ProblemBody),
    (status = 409, description = "nothing_to_return", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 503, description = "A store is away, or the sale is being settled: cancel again", body = ProblemBody)))]
pub(in crate::http) async fn cancel_any_order(
    State(app): State<AppState>,
    Admin(session): Admin,
    Path(reservation): Path<String>,
    headers: HeaderMap,
    MaybeJson(request): MaybeJson<CancelRequest>,
) -> Answer<Json<CancelledBody>> {
    let of = ordered(&app, &reservation).await?;
    let Cancellation { units, operation } = Cancellation::read(&request, &headers, &of.id)?;
    let by = session.user();
    cancel(&app, move |sale| async move { sale.cancel_as_administrator(by, &of, units, operation).await }).await
}
