//! A buyer's own reservations and orders.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::ReservationBody;
use super::timing::LifeBody;
use crate::app::AppState;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::order::{Order, OrderStatus};
use crate::http::extract::{Buyer, Paged, Path, next_cursor, path_id};
use crate::http::problem::{Answer, ProblemBody};
use crate::http::seller::OrderItem;

/// A buyer's orders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OwnOrdersBody {
    orders: Vec<OwnOrderItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A buyer's order, and what can be done about it.
#[derive(Debug, Serialize, ToSchema)]
struct OwnOrderItem {
    #[serde(flatten)]
    order: OrderItem,
    #[serde(flatten)]
    life: LifeBody,
}

impl OwnOrderItem {
    fn at(order: Order, now: Option<DateTime<Utc>>) -> Self {
        let life = LifeBody::new(order.status, order.expires_at, order.slot_kept, now);
        Self { order: order.into(), life }
    }
}

/// Lists the buyer's own orders, newest first. A reservation becomes an order about a second after it was made.
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
    // Orders are shown also while the live store, whose clock it is, does not answer.
    let now = if waiting(&listed.items) { app.sale().live_now().await.ok() } else { None };
    let orders = listed.items.into_iter().map(|order| OwnOrderItem::at(order, now)).collect();
    Ok(Json(OwnOrdersBody { orders, next_cursor: next_cursor(listed.next) }))
}

fn waiting(orders: &[Order]) -> bool {
    orders.iter().any(|order| order.status == OrderStatus::PendingPayment)
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
    let waits = reservation.status == OrderStatus::PendingPayment;
    let now = if waits { app.sale().live_now().await.ok() } else { None };
    Ok(Json(OwnReservationBody { reservation: ReservationBody::at(reservation, now) }))
}
