//! Live stock: an event stream for each listener, written once for all of them.

mod frames;
mod teller;

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::AppState;
use crate::domain::ids::ProductId;
use crate::error::Error;
use crate::http::extract::{Buyer, Path};
use crate::http::problem::{Answer, ProblemBody};
use teller::Teller;

/// Products that one listener may ask for.
const PRODUCTS_MAX: usize = 200;

/// What to listen to.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct StreamQuery {
    /// At most 200 product ids with commas between them; without it the whole sale.
    products: Option<String>,
}

/// Streams the stock and the status of a sale as they change, at most four times a second, as server-sent events.
///
/// `snapshot` comes first and has all of it: `{"status", "serverTimeMs", "products": [{"productId", "availableStock",
/// "heldUnits"}]}`. Then come `stock` (`{"serverTimeMs", "products"}`: the products whose level is another now) and `status`
/// (`{"status", "serverTimeMs"}`). What a listener was too slow for is left out, never what is true now. A comment comes at
/// least every 15 seconds or so. The stream ends when the sale has stopped, the session ends, or the server stops; a client
/// that comes back with `Last-Event-ID` gets a snapshot only if it has missed something. Of a sale with more than 1,000 products only
/// those in `products` are streamed.
#[utoipa::path(get, path = "/api/buyer/event/{id}/stream", tag = "buyer",
    params(("id" = String, Path, description = "Event id or slug"), StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client has")), responses(
    (status = 200, description = "Server-sent events", content_type = "text/event-stream", body = String),
    (status = 400, description = "Neither an id nor a slug, or not such products", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "No such event, or neither opened nor announced", body = ProblemBody),
    (status = 503, description = "A store is away, or too many listen: come back after Retry-After", body = ProblemBody)))]
pub(in crate::http) async fn stream_event(
    State(app): State<AppState>,
    Buyer(session): Buyer,
    Path(id): Path<String>,
    query: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Answer<Response> {
    let selection = match query.ok().and_then(|Query(query)| query.products) {
        None => None,
        Some(text) => Some(selection(&text)?),
    };
    let event = app.catalogue().published_event(&id).await?;
    let listener = app.sale().listen(event, selection, app.tasks()).await?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let teller = Teller::new(listener, last, session.claims, app.clone());
    let pieces = futures::stream::unfold(teller, async |mut teller| {
        teller.next().await.map(|piece| (Ok::<_, Infallible>(piece), teller))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // A proxy that gathers an answer before it passes it on makes a stream useless.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// The products that a listener asks for, each once, in order.
fn selection(text: &str) -> Result<Vec<ProductId>, Error> {
    let ids: Result<Vec<ProductId>, _> = text.split(',').map(|id| id.trim().parse()).collect();
    let rule =
        || Error::invalid("products", format!("must be 1 to {PRODUCTS_MAX} product ids with commas between them"));
    let mut ids = ids.map_err(|_| rule())?;
    ids.sort_unstable();
    ids.dedup();
    if ids.len() > PRODUCTS_MAX { Err(rule()) } else { Ok(ids) }
}
