//! A seller's events.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::{PlanForm, moment, plan};
use crate::app::AppState;
use crate::catalogue::{EventDraft, EventEdit};
use crate::domain::event::{Event, SalePhase};
use crate::error::{Code, Error};
use crate::http::auth::MessageBody;
use crate::http::extract::{Form, OwnedEvent, Paged, Seller, next_cursor};
use crate::http::plan::PlanBody;
use crate::http::problem::{Answer, ProblemBody};

const TITLE_CHARS: std::ops::RangeInclusive<usize> = 1..=200;
const DESCRIPTION_CHARS: std::ops::RangeInclusive<usize> = 1..=5000;
const BANNER_CHARS: std::ops::RangeInclusive<usize> = 1..=2048;
/// Clocks differ, and forms take time to fill in.
pub(super) const PAST_TOLERANCE: Duration = Duration::minutes(10);

/// An event, for its seller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventItem {
    id: String,
    seller_id: String,
    slug: String,
    event_name: String,
    description: String,
    #[serde(flatten)]
    plan: PlanBody,
    is_live: bool,
    /// DRAFT, OPENING, LIVE, STOPPED or SETTLED.
    sale_phase: &'static str,
    image_banner: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Event> for EventItem {
    fn from(event: Event) -> Self {
        Self {
            plan: PlanBody::from(&event),
            id: event.id.to_string(),
            seller_id: event.seller.to_string(),
            slug: event.slug,
            event_name: event.name,
            description: event.description,
            is_live: event.phase == SalePhase::Live,
            sale_phase: event.phase.as_str(),
            image_banner: event.banner_url,
            created_at: event.created_at,
            updated_at: event.updated_at,
        }
    }
}

/// A form with a banner.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents the form")]
pub(in crate::http) struct EventForm {
    /// 1 to 200 characters.
    title: String,
    /// 1 to 5000 characters.
    description: String,
    /// RFC 3339 with an offset, not in the past.
    scheduled_at: DateTime<Utc>,
    /// JPEG or PNG, at most 5 MiB and 5000x5000.
    #[schema(format = Binary, value_type = String)]
    image_banner: Vec<u8>,
    #[serde(flatten)]
    plan: PlanForm,
}

/// A new event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EventCreatedBody {
    message: &'static str,
    event_id: String,
}

/// Creates an event.
#[utoipa::path(post, path = "/api/seller/events/create", tag = "seller",
    request_body(content = EventForm, content_type = "multipart/form-data"), responses(
    (status = 201, description = "Created", body = EventCreatedBody),
    (status = 400, description = "A field breaks a rule, or the image is not acceptable", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not a form", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn create_event(
    State(app): State<AppState>,
    Seller(session): Seller,
    mut form: Form,
) -> Answer<(StatusCode, Json<EventCreatedBody>)> {
    let banner = form.take_file("imageBanner");
    let now = app.clock().now();
    let mut fields = form.fields();
    let title = fields.text("title", TITLE_CHARS);
    let title = fields.require("title", title);
    let description = fields.text("description", DESCRIPTION_CHARS);
    let description = fields.require("description", description);
    let scheduled_at = fields.parse("scheduledAt", |text| schedule(text, now));
    let scheduled_at = fields.require("scheduledAt", scheduled_at);
    let plan = plan(&mut fields, scheduled_at, None, now);
    fields.finish()?;
    let banner = banner.ok_or_else(|| Error::refused(Code::ImageRejected, "imageBanner file is required"))?;
    let (Some(title), Some(description), Some(scheduled_at)) = (title, description, scheduled_at) else {
        return Err(Error::invalid("title", "is required").into());
    };
    let draft = EventDraft { title, description, scheduled_at, banner, plan };
    let id = app.catalogue().create_event(session.user(), draft).await?;
    let body = EventCreatedBody { message: "event created successfully", event_id: id.to_string() };
    Ok((StatusCode::CREATED, Json(body)))
}

fn schedule(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, &'static str> {
    let at = moment(text)?;
    if at < now - PAST_TOLERANCE { Err("must not be in the past") } else { Ok(at) }
}

/// A seller's events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OwnEventsBody {
    events: Vec<EventItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists the seller's own events, oldest first.
#[utoipa::path(get, path = "/api/seller/events/get", tag = "seller", params(crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Events", body = OwnEventsBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_own_events(
    State(app): State<AppState>,
    Seller(session): Seller,
    Paged(page): Paged,
) -> Answer<Json<OwnEventsBody>> {
    let listed = app.catalogue().events_of(session.user(), page).await?;
    let events = listed.items.into_iter().map(EventItem::from).collect();
    Ok(Json(OwnEventsBody { events, next_cursor: next_cursor(listed.next) }))
}

/// One event.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct OwnEventBody {
    event: EventItem,
}

/// Shows one of the seller's events.
#[utoipa::path(get, path = "/api/seller/events/get/{id}", tag = "seller",
    params(("id" = String, Path, description = "Event id")), responses(
    (status = 200, description = "The event", body = OwnEventBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_own_event(OwnedEvent { event }: OwnedEvent) -> Json<OwnEventBody> {
    Json(OwnEventBody { event: event.into() })
}

/// A change; fields that are left out stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents the body")]
pub(in crate::http) struct EventEditRequest {
    /// 1 to 200 characters.
    title: Option<String>,
    /// 1 to 5000 characters.
    description: Option<String>,
    /// RFC 3339 with an offset, not in the past.
    scheduled_at: Option<DateTime<Utc>>,
    /// The address of a banner that the seller keeps elsewhere; 1 to 2048 characters.
    image_banner: Option<String>,
    #[serde(flatten)]
    plan: PlanForm,
}

/// Changes an event, also while its sale runs; but for what the sale is opened with, which cannot change from then on.
#[utoipa::path(put, path = "/api/seller/events/update/{id}", tag = "seller", request_body = EventEditRequest,
    params(("id" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Changed", body = MessageBody),
    (status = 400, description = "A field breaks a rule, or there is none", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The sale was opened with another plan", body = ProblemBody),
    (status = 415, description = "Not a form or JSON", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn update_event(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    form: Form,
) -> Answer<Json<MessageBody>> {
    let now = app.clock().now();
    let mut fields = form.fields();
    let scheduled_at = fields.parse("scheduledAt", |text| schedule(text, now));
    let edit = EventEdit {
        title: fields.text("title", TITLE_CHARS),
        description: fields.text("description", DESCRIPTION_CHARS),
        scheduled_at,
        banner_url: fields.text("imageBanner", BANNER_CHARS),
        plan: plan(&mut fields, scheduled_at, Some(&event), now),
    };
    fields.finish()?;
    if edit == EventEdit::default() {
        return Err(Error::refused(Code::ValidationFailed, "no fields provided for update").into());
    }
    app.catalogue().edit_event(event.id, edit).await?;
    Ok(Json(MessageBody { message: "event updated successfully" }))
}

/// Deletes an event with its products and images. Its orders stay.
#[utoipa::path(delete, path = "/api/seller/events/delete/{id}", tag = "seller",
    params(("id" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Deleted", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "Its sale is open, or not settled yet", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn delete_event(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
) -> Answer<Json<MessageBody>> {
    app.catalogue().delete_event(&event).await?;
    Ok(Json(MessageBody { message: "event deleted successfully" }))
}
