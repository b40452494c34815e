//! The codes that a buyer has bought.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};

use crate::app::AppState;
use crate::domain::ids::{EventId, ProductId};
use crate::http::extract::{Buyer, Path, path_id};
use crate::http::problem::{Answer, ProblemBody};
use crate::http::voucher::CodesBody;

/// Shows the codes of the buyer's own confirmed reservation: as many as it has units, the same every time. That they were
/// shown is recorded, and then the buyer cannot cancel any more.
#[utoipa::path(get, path = "/api/buyer/event/{eventId}/reservation/{productId}/codes", tag = "buyer",
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "The codes", body = CodesBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "The buyer has no reservation, or the product's units are no vouchers", body = ProblemBody),
    (status = 409, description = "voucher_state: the reservation is not confirmed, or is being cancelled, or a code is blocked; vouchers_short: its code is missing, and follows", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_own_codes(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path((event, product)): Path<(String, String)>,
) -> Answer<([(HeaderName, &'static str); 1], Json<CodesBody>)> {
    const UNKNOWN: &str = "reservation not found";
    let (event, product): (EventId, ProductId) = (path_id(&event, UNKNOWN)?, path_id(&product, UNKNOWN)?);
    let reservation = app.sale().reservation_of(session.user(), product, event).await?;
    let vouchers = Arc::clone(app.vouchers());
    let work = async move { vouchers.codes_of(&reservation).await };
    let shown = app.tasks().complete("showing codes", work).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(shown.into())))
}
