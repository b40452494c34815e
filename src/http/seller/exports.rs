//! An event's orders as files. They are sent as they are read: an export that fails on its way is cut off, and the
//! connection with it, so that a part is never taken for the whole.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use futures::StreamExt;
use futures::stream;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::ids::EventId;
use crate::domain::order::Order;
use crate::domain::spreadsheet;
use crate::error::{Error, Result};
use crate::http::extract::OwnedEvent;
use crate::http::problem::{Answer, ProblemBody};
use crate::reports::ExportedPage;

/// An order as a row of an export.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ExportedOrder {
    order_id: String,
    reservation_id: String,
    user_id: String,
    product_id: String,
    product_title: String,
    status: &'static str,
    quantity: u32,
    /// Units of it that went back to stock.
    returned: u32,
    /// Of one unit, in major units.
    #[schema(value_type = f64)]
    price: serde_json::Number,
    price_minor: i64,
    currency: &'static str,
    booked_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl ExportedOrder {
    fn new(order: Order, product_title: String) -> Self {
        Self {
            order_id: order.id.to_string(),
            reservation_id: order.reservation_id,
            user_id: order.user.to_string(),
            product_id: order.product.to_string(),
            product_title,
            status: order.status.as_str(),
            quantity: order.quantity,
            returned: order.returned,
            price: order.price.major_number(),
            price_minor: order.price.minor,
            currency: order.price.currency.code(),
            booked_at: order.created_at,
            updated_at: order.updated_at,
        }
    }
}

const COLUMNS: [&str; 13] = [
    "orderId",
    "reservationId",
    "userId",
    "productId",
    "productTitle",
    "status",
    "quantity",
    "returned",
    "price",
    "priceMinor",
    "currency",
    "bookedAt",
    "updatedAt",
];

fn rows(page: ExportedPage) -> impl Iterator<Item = ExportedOrder> {
    let titles = page.titles;
    page.orders.into_iter().map(move |order| {
        let title = titles.get(&order.product).cloned().unwrap_or_default();
        ExportedOrder::new(order, title)
    })
}

fn csv_of(page: Option<ExportedPage>) -> Result<Bytes> {
    let broken = |error: csv::Error| Error::internal("writing CSV", error);
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let Some(page) = page else {
        writer.write_record(COLUMNS).map_err(broken)?;
        return finished(writer);
    };
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    for row in rows(page) {
        let fields = [
            row.order_id,
            spreadsheet::inert(row.reservation_id).into_owned(),
            row.user_id,
            row.product_id,
            spreadsheet::inert(row.product_title).into_owned(),
            row.status.to_owned(),
            row.quantity.to_string(),
            row.returned.to_string(),
            row.price.to_string(),
            row.price_minor.to_string(),
            row.currency.to_owned(),
            time(row.booked_at),
            time(row.updated_at),
        ];
        writer.write_record(fields).map_err(broken)?;
    }
    finished(writer)
}

fn finished(writer: csv::Writer<Vec<u8>>) -> Result<Bytes> {
    writer.into_inner().map(Bytes::from).map_err(|error| Error::internal("writing CSV", error.to_string()))
}

fn ndjson_of(page: Option<ExportedPage>) -> Result<Bytes> {
    let mut lines = Vec::new();
    for row in page.into_iter().flat_map(rows) {
        serde_json::to_writer(&mut lines, &row).map_err(|error| Error::internal("writing NDJSON", error))?;
        lines.push(b'\n');
    }
    Ok(Bytes::from(lines))
}

/// Sends every page as `write` writes it; `None` stands for what comes before the first one. The first page is read before
/// anything is answered: a database that is away is a 503 and no file.
async fn file(
    app: &AppState,
    event: EventId,
    (ending, kind): (&str, &'static str),
    write: fn(Option<ExportedPage>) -> Result<Bytes>,
) -> Answer<Response> {
    let mut pages = Box::pin(app.reports().export(event));
    let first = match pages.next().await {
        Some(page) => write(Some(page?))?,
        None => Bytes::new(),
    };
    let rest = pages.map(move |page| {
        page.and_then(|page| write(Some(page))).inspect_err(|error| {
            tracing::warn!(%event, code = error.code().as_str(), cause = %error.chain(), "an export was cut off");
        })
    });
    let body = Body::from_stream(stream::iter([write(None), Ok(first)]).chain(rest));
    let name = format!("attachment; filename=\"orders-{event}.{ending}\"");
    let name = HeaderValue::from_str(&name).map_err(|error| Error::internal("naming an export", error))?;
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, body).into_response())
}

/// All orders of an event as CSV (RFC 4180), newest first, with a header row. Texts that a spreadsheet would take for a
/// formula begin with an apostrophe.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/orders.csv", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "The file", body = String, content_type = "text/csv"),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn export_csv(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
) -> Answer<Response> {
    file(&app, event.id, ("csv", "text/csv; charset=utf-8; header=present"), csv_of).await
}

/// All orders of an event, newest first, one JSON object a line.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/orders.ndjson", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "The file", body = ExportedOrder, content_type = "application/x-ndjson"),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn export_ndjson(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
) -> Answer<Response> {
    file(&app, event.id, ("ndjson", "application/x-ndjson"), ndjson_of).await
}
