//! An event's orders and analytics.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::order::Order;
use crate::http::extract::{OwnedBookings, OwnedEvent, Paged, next_cursor};
use crate::http::problem::{Answer, ProblemBody};
use crate::reports::StatusTotal;

/// An order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OrderItem {
    id: String,
    user_id: String,
    product_id: String,
    event_id: String,
    reservation_id: String,
    quantity: u32,
    /// Of one unit, in major units.
    #[schema(value_type = f64)]
    price: serde_json::Number,
    price_minor: i64,
    /// ISO 4217.
    currency: &'static str,
    /// CONFIRMED, `PENDING_PAYMENT`, CANCELLED or EXPIRED.
    status: &'static str,
    /// Units of it that went back to stock.
    returned: u32,
    /// When an unpaid one runs out.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
    /// When it was booked.
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Order> for OrderItem {
    fn from(order: Order) -> Self {
        Self {
            id: order.id.to_string(),
            user_id: order.user.to_string(),
            product_id: order.product.to_string(),
            event_id: order.event.to_string(),
            reservation_id: order.reservation_id,
            quantity: order.quantity,
            price: order.price.major_number(),
            price_minor: order.price.minor,
            currency: order.price.currency.code(),
            status: order.status.as_str(),
            returned: order.returned,
            expires_at: order.expires_at,
            created_at: order.created_at,
            updated_at: order.updated_at,
        }
    }
}

/// An event's orders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OrdersBody {
    orders: Vec<OrderItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists an event's orders, newest first.
#[utoipa::path(get, path = "/api/seller/events/booking/fetch/{eventId}", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Orders", body = OrdersBody),
    (status = 400, description = "Not an event id", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_orders(
    State(app): State<AppState>,
    OwnedBookings(OwnedEvent { event }): OwnedBookings,
    Paged(page): Paged,
) -> Answer<Json<OrdersBody>> {
    let listed = app.reports().orders_of_event(event.id, page).await?;
    let orders = listed.items.into_iter().map(OrderItem::from).collect();
    Ok(Json(OrdersBody { orders, next_cursor: next_cursor(listed.next) }))
}

/// An event's analytics.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct AnalyticsBody {
    analytics: AnalyticsItem,
}

/// Sums over an event's orders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AnalyticsItem {
    total_orders: u64,
    /// Confirmed orders only, in major units of `currency`.
    #[schema(value_type = f64)]
    total_revenue: serde_json::Number,
    /// The same in minor units.
    total_revenue_minor: i64,
    /// The currency with the largest revenue; null without revenue.
    currency: Option<&'static str>,
    /// Every currency, in minor units.
    revenue_by_currency: BTreeMap<&'static str, i64>,
    /// Orders per status.
    status_breakdown: BTreeMap<String, u64>,
    /// Units in confirmed orders.
    units_sold: u64,
    /// Units ordered of each product.
    units_by_product: BTreeMap<String, u64>,
    /// Orders, units and their worth, per status and currency.
    totals_by_status: Vec<StatusTotalItem>,
}

/// What the orders of one status come to. Only CONFIRMED is revenue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StatusTotalItem {
    status: String,
    /// ISO 4217.
    currency: String,
    orders: u64,
    /// Units that are the buyers', or held for them.
    units: u64,
    /// What those are worth, in minor units.
    amount_minor: i64,
}

impl From<StatusTotal> for StatusTotalItem {
    fn from(total: StatusTotal) -> Self {
        Self {
            status: total.status,
            currency: total.currency,
            orders: total.orders,
            units: total.units,
            amount_minor: total.minor,
        }
    }
}

/// Sums an event's orders. Only confirmed orders are revenue.
#[utoipa::path(get, path = "/api/seller/events/booking/analytics/{eventId}", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Analytics", body = AnalyticsBody),
    (status = 400, description = "Not an event id", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_analytics(
    State(app): State<AppState>,
    OwnedBookings(OwnedEvent { event }): OwnedBookings,
) -> Answer<Json<AnalyticsBody>> {
    let analytics = app.reports().analytics(event.id).await?;
    let first = analytics.revenue.first().copied();
    Ok(Json(AnalyticsBody {
        analytics: AnalyticsItem {
            total_orders: analytics.orders,
            total_revenue: first.map_or_else(|| 0.into(), crate::domain::money::Money::major_number),
            total_revenue_minor: first.map_or(0, |money| money.minor),
            currency: first.map(|money| money.currency.code()),
            revenue_by_currency: analytics.revenue.iter().map(|money| (money.currency.code(), money.minor)).collect(),
            status_breakdown: analytics.by_status,
            units_sold: analytics.units_sold,
            units_by_product: analytics
                .units_by_product
                .into_iter()
                .map(|(id, units)| (id.to_string(), units))
                .collect(),
            totals_by_status: analytics.totals.into_iter().map(StatusTotalItem::from).collect(),
        },
    }))
}
