//! A buyer's own reservations and orders.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::ReservationBody;
use crate::app::AppState;
use crate::domain::ids::{EventId, ProductId};
use crate::http::extract::{Buyer, Paged, Path, next_cursor, path_id};
use crate::http::problem::{Answer, ProblemBody};
use crate::http::seller::OrderItem;

/// A buyer's orders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OwnOrdersBody {
    orders: Vec<OrderItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists the buyer's own orders, newest first. A reservation becomes an order when its sale is settled.
#[utoipa::path(get, path = "/api/buyer/orders", tag = "buyer", params(crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Orders", body = OwnOrdersBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_own_orders(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Paged(page): Paged,
) -> Answer<Json<OwnOrdersBody>> {
    let listed = app.reports().orders_of_user(session.user(), page).await?;
    let orders = listed.items.into_iter().map(OrderItem::from).collect();
    Ok(Json(OwnOrdersBody { orders, next_cursor: next_cursor(listed.next) }))
}

/// The buyer's reservation of a product.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct OwnReservationBody {
    reservation: ReservationBody,
}

/// Shows the buyer's own reservation of a product, while its sale runs and after it is settled.
#[utoipa::path(get, path = "/api/buyer/event/{eventId}/reservation/{productId}", tag = "buyer",
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "The reservation", body = OwnReservationBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "The buyer has none", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_own_reservation(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path((event, product)): Path<(String, String)>,
) -> Answer<Json<OwnReservationBody>> {
    const UNKNOWN: &str = "reservation not found";
    let (event, product): (EventId, ProductId) = (path_id(&event, UNKNOWN)?, path_id(&product, UNKNOWN)?);
    let reservation = app.sale().reservation_of(session.user(), product, event).await?;
    Ok(Json(OwnReservationBody { reservation: reservation.into() }))
}
