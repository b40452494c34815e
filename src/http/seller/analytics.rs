//! How an event sells: each product, and over time. Money counts when its order is confirmed, and for the units that are
//! still the buyer's.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::AppState;
use crate::error::Error;
use crate::http::extract::{OwnedEvent, Paged, next_cursor};
use crate::http::problem::{Answer, ProblemBody};
use crate::reports::{Booked, SellThrough, SpanSum};

/// How a product sells.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ProductSales {
    product_id: String,
    title: String,
    /// Units that were ever for sale: those of the catalogue, and those restocked, less those withdrawn.
    units_offered: u64,
    /// Units in confirmed orders.
    units_confirmed: u64,
    /// Units in orders that wait for payment.
    units_pending: u64,
    /// Confirmed units as a part of those offered, from 0 to 1, to four decimals.
    sell_through: f64,
    /// Revenue of confirmed orders per currency, in minor units.
    revenue_by_currency: BTreeMap<&'static str, i64>,
}

impl From<SellThrough> for ProductSales {
    fn from(sold: SellThrough) -> Self {
        // At most ten thousand, which a double holds exactly.
        let part = u32::try_from(sold.ten_thousandths()).unwrap_or(u32::MAX);
        Self {
            product_id: sold.product.id.to_string(),
            title: sold.product.title,
            units_offered: sold.offered,
            units_confirmed: sold.sum.confirmed,
            units_pending: sold.sum.pending,
            sell_through: f64::from(part) / 10_000.0,
            revenue_by_currency: sold.sum.revenue.iter().map(|money| (money.currency.code(), money.minor)).collect(),
        }
    }
}

/// How an event's products sell.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ProductSalesBody {
    products: Vec<ProductSales>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Says how each product of an event sells, in the order of the catalogue. Orders are counted within about a second of
/// their reservation.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/analytics/products", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Products", body = ProductSalesBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_product_sales(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Paged(page): Paged,
) -> Answer<Json<ProductSalesBody>> {
    let listed = app.reports().sell_through(event.id, page).await?;
    let products = listed.items.into_iter().map(ProductSales::from).collect();
    Ok(Json(ProductSalesBody { products, next_cursor: next_cursor(listed.next) }))
}

/// Which spans of time.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct SeriesQuery {
    /// `minute` or `hour`; without it, `hour`.
    span: Option<String>,
    /// Only orders booked from this moment on, as RFC 3339 with an offset.
    from: Option<String>,
    /// Only orders booked before this moment, as RFC 3339 with an offset.
    before: Option<String>,
}

impl SeriesQuery {
    fn span(&self) -> Result<(&'static str, Duration), Error> {
        match self.span.as_deref() {
            Some("minute") => Ok(("minute", Duration::from_secs(60))),
            Some("hour") | None => Ok(("hour", Duration::from_secs(3_600))),
            Some(_) => Err(Error::invalid("span", "must be minute or hour")),
        }
    }

    fn booked(&self) -> Result<Booked, Error> {
        let moment = |field, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            let parsed = DateTime::parse_from_rfc3339(text).map(|at| Some(at.to_utc()));
            parsed.map_err(|_| Error::invalid(field, "must be RFC 3339 with an offset, such as 2026-01-01T00:00:00Z"))
        };
        Ok(Booked { from: moment("from", &self.from)?, before: moment("before", &self.before)? })
    }
}

/// What was sold in a span of time, in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SpanItem {
    /// When it begins.
    at: DateTime<Utc>,
    /// Confirmed orders that were booked in it.
    orders: u64,
    /// Units in them.
    units: u64,
    /// Their revenue in minor units.
    revenue_minor: i64,
    /// ISO 4217.
    currency: &'static str,
}

impl From<SpanSum> for SpanItem {
    fn from(sum: SpanSum) -> Self {
        Self {
            at: sum.at,
            orders: sum.orders,
            units: sum.units,
            revenue_minor: sum.revenue.minor,
            currency: sum.revenue.currency.code(),
        }
    }
}

/// What was sold over time.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct SeriesBody {
    /// minute or hour.
    span: &'static str,
    /// Oldest first; a span in which nothing was sold is left out.
    series: Vec<SpanItem>,
}

/// Says what was sold in each minute or hour, by when it was booked. Only confirmed orders count.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/analytics/series", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), SeriesQuery), responses(
    (status = 200, description = "Spans of time in which something was sold", body = SeriesBody),
    (status = 400, description = "The query cannot be read, or there are too many spans", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_series(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    query: Result<Query<SeriesQuery>, axum::extract::rejection::QueryRejection>,
) -> Answer<Json<SeriesBody>> {
    let Query(query) = query.map_err(|_| Error::invalid("span", "the query cannot be read"))?;
    let (span, length) = query.span()?;
    let series = app.reports().series(event.id, query.booked()?, length).await?;
    Ok(Json(SeriesBody { span, series: series.into_iter().map(SpanItem::from).collect() }))
}
