//! Events and their products, as buyers see them.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::timing::TimingBody;
use crate::app::AppState;
use crate::catalogue::ProductView;
use crate::domain::event::Event;
use crate::error::Error;
use crate::http::extract::{Buyer, Paged, Path, next_cursor};
use crate::http::plan::PlanBody;
use crate::http::problem::{Answer, ProblemBody};

/// Events whose sale is open.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EventsBody {
    events: Vec<EventItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An event, for buyers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventItem {
    id: String,
    slug: String,
    event_name: String,
    /// The same as `eventName`.
    name: String,
    description: String,
    image_banner: String,
    #[serde(flatten)]
    plan: PlanBody,
}

impl From<Event> for EventItem {
    fn from(event: Event) -> Self {
        Self {
            plan: PlanBody::from(&event),
            id: event.id.to_string(),
            slug: event.slug,
            name: event.name.clone(),
            event_name: event.name,
            description: event.description,
            image_banner: event.banner_url,
        }
    }
}

/// Which events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct EventsQuery {
    /// `true`: events that are to open by themselves and have not yet.
    upcoming: Option<String>,
}

/// Lists the events whose sale is open, live or paused, oldest first; or those that are upcoming.
#[utoipa::path(get, path = "/api/buyer/events", tag = "buyer",
    params(EventsQuery, crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Events", body = EventsBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_open_events(
    State(app): State<AppState>,
    _buyer: Buyer,
    query: Result<Query<EventsQuery>, QueryRejection>,
    Paged(page): Paged,
) -> Answer<Json<EventsBody>> {
    let upcoming = match query.ok().and_then(|Query(query)| query.upcoming).as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Error::invalid("upcoming", "must be true or false").into()),
    };
    let catalogue = app.catalogue();
    let listed = if upcoming { catalogue.upcoming_events(page).await? } else { catalogue.open_events(page).await? };
    let events = listed.items.into_iter().map(EventItem::from).collect();
    Ok(Json(EventsBody { events, next_cursor: next_cursor(listed.next) }))
}

/// An event with its products.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EventPageBody {
    event: EventDetail,
    products: Vec<ProductItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An event and what its sale is doing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventDetail {
    #[serde(flatten)]
    item: EventItem,
    /// `NOT_STARTED`, LIVE, PAUSED or STOPPED.
    sale_status: &'static str,
    #[serde(flatten)]
    timing: TimingBody,
}

/// A product, for buyers. While the sale runs, all of it comes from where reservations are decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProductItem {
    product_id: String,
    title: String,
    description: String,
    /// Major units; exactly what a reservation takes.
    #[schema(value_type = f64)]
    price: serde_json::Number,
    /// The same in minor units.
    price_minor: i64,
    /// ISO 4217.
    currency: &'static str,
    image: String,
    /// Units that can be reserved now.
    available_stock: u64,
    /// Units at the start.
    total_stock: u64,
    /// Units that one buyer may reserve.
    per_buyer_limit: u32,
}

impl From<ProductView> for ProductItem {
    fn from(product: ProductView) -> Self {
        Self {
            product_id: product.id.to_string(),
            title: product.title,
            description: product.description,
            price: product.price.major_number(),
            price_minor: product.price.minor,
            currency: product.price.currency.code(),
            image: product.image_url,
            available_stock: product.available_units,
            total_stock: product.initial_units,
            per_buyer_limit: product.per_buyer_limit,
        }
    }
}

/// Shows an event that is or was on sale or is announced, by id or slug, with its products.
#[utoipa::path(get, path = "/api/buyer/event/{id}", tag = "buyer",
    params(("id" = String, Path, description = "Event id or slug"), crate::http::openapi::PageQuery), responses(
    (status = 200, description = "The event and its products", body = EventPageBody),
    (status = 400, description = "Neither an id nor a slug", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "No such event, or neither opened nor announced", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_event(
    State(app): State<AppState>,
    _buyer: Buyer,
    Path(id): Path<String>,
    Paged(page): Paged,
) -> Answer<Json<EventPageBody>> {
    let shown = app.catalogue().event_page(&id, page).await?;
    let timing = TimingBody::new(&shown.event, shown.status, shown.now);
    Ok(Json(EventPageBody {
        event: EventDetail { item: shown.event.into(), sale_status: shown.status.as_str(), timing },
        products: shown.products.items.into_iter().map(ProductItem::from).collect(),
        next_cursor: next_cursor(shown.products.next),
    }))
}

/// What a sale is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct StatusBody {
    /// `NOT_STARTED`, LIVE, PAUSED or STOPPED.
    status: &'static str,
    #[serde(flatten)]
    timing: TimingBody,
    #[serde(flatten)]
    plan: PlanBody,
}

/// Says what the sale of an event is doing.
#[utoipa::path(get, path = "/api/buyer/event/{id}/status", tag = "buyer",
    params(("id" = String, Path, description = "Event id or slug")), responses(
    (status = 200, description = "The status", body = StatusBody),
    (status = 400, description = "Neither an id nor a slug", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a buyer", body = ProblemBody),
    (status = 404, description = "No such event, or neither opened nor announced", body = ProblemBody),
    (status = 409, description = "The live store has lost the sale", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_status(
    State(app): State<AppState>,
    _buyer: Buyer,
    Path(id): Path<String>,
) -> Answer<Json<StatusBody>> {
    let event = app.catalogue().published_event(&id).await?;
    let (status, now) = app.sale().told(&event).await?;
    let timing = TimingBody::new(&event, status, now);
    Ok(Json(StatusBody { status: status.as_str(), timing, plan: PlanBody::from(&event) }))
}
