//! What was sent to a seller's webhook, and how it went.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::webhook::{Attempt, Delivery, DeliveryState};
use crate::http::extract::{OwnedWebhook, Paged, Path, next_cursor, path_id};
use crate::http::problem::{Answer, ProblemBody};

/// One message on its way to one endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DeliveryItem {
    id: String,
    /// The header `webhook-id` of every attempt.
    message_id: String,
    event_type: &'static str,
    /// PENDING, DELIVERED, or FAILED when nothing more is tried.
    state: &'static str,
    /// When the next attempt is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    /// The newest attempts, oldest first.
    attempts: Vec<AttemptItem>,
}

/// One attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttemptItem {
    /// From 1; again from 1 after a replay.
    number: u32,
    at: DateTime<Utc>,
    took_ms: u64,
    /// What the endpoint answered, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Why the attempt failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Attempt> for AttemptItem {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number,
            at: attempt.at,
            took_ms: attempt.took_ms,
            status: attempt.status,
            error: attempt.error,
        }
    }
}

impl From<Delivery> for DeliveryItem {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            message_id: delivery.message,
            event_type: delivery.kind.as_str(),
            state: delivery.state.as_str(),
            next_attempt_at: (delivery.state == DeliveryState::Pending).then_some(delivery.next_at),
            created_at: delivery.created_at,
            attempts: delivery.log.into_iter().map(AttemptItem::from).collect(),
        }
    }
}

/// What was sent to an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DeliveriesBody {
    deliveries: Vec<DeliveryItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists what was sent to a webhook, or is on its way, newest first. It is kept for 30 days.
#[utoipa::path(get, path = "/api/seller/webhooks/{webhookId}/deliveries", tag = "seller",
    params(("webhookId" = String, Path, description = "Webhook id"), crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Deliveries", body = DeliveriesBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such webhook", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_deliveries(
    State(app): State<AppState>,
    OwnedWebhook(webhook): OwnedWebhook,
    Paged(page): Paged,
) -> Answer<Json<DeliveriesBody>> {
    let listed = app.webhooks().deliveries(&webhook, page).await?;
    let deliveries = listed.items.into_iter().map(DeliveryItem::from).collect();
    Ok(Json(DeliveriesBody { deliveries, next_cursor: next_cursor(listed.next) }))
}

/// A delivery.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeliveryBody {
    delivery: DeliveryItem,
}

/// Sends a message to a webhook again, whatever became of it before. It has the same `webhook-id`.
#[utoipa::path(post, path = "/api/seller/webhooks/{webhookId}/deliveries/{deliveryId}/replays", tag = "seller",
    params(("webhookId" = String, Path, description = "Webhook id"),
        ("deliveryId" = String, Path, description = "Delivery id")), responses(
    (status = 202, description = "It is sent again, from the first attempt on", body = DeliveryBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such webhook, or the webhook no such delivery", body = ProblemBody),
    (status = 409, description = "The webhook is disabled", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn replay_delivery(
    State(app): State<AppState>,
    OwnedWebhook(webhook): OwnedWebhook,
    Path(ids): Path<(String, String)>,
) -> Answer<(StatusCode, Json<DeliveryBody>)> {
    let delivery = path_id(&ids.1, "delivery not found")?;
    let delivery = app.webhooks().replay(&webhook, delivery).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryBody { delivery: delivery.into() })))
}
