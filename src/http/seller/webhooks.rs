//! A seller's webhooks: endpoints that are told what happens in the seller's sales.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use garde::Validate;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::message::MessageKind;
use crate::domain::webhook::Webhook;
use crate::error::Error;
use crate::http::auth::MessageBody;
use crate::http::extract::{OwnedWebhook, Seller, ValidJson};
use crate::http::problem::{Answer, ProblemBody};
use crate::webhooks::NewWebhook;

/// A new endpoint.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct WebhookRequest {
    /// Where messages are sent: HTTPS, a public address, no credentials, at most 2048 bytes.
    #[garde(length(bytes, min = 1, max = 2048))]
    url: String,
    /// What is sent: `reservation.confirmed`, `reservation.cancelled`, `reservation.expired`, `sale.opened`, `sale.ended`,
    /// `order.settled`. Without any, all of them.
    #[serde(default)]
    #[garde(length(max = 6))]
    event_types: Vec<String>,
}

/// What may be changed of an endpoint.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct WebhookChange {
    /// Whether anything is sent to it. What was still to be sent to one that is disabled is given up.
    #[garde(skip)]
    enabled: bool,
}

/// An endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct WebhookItem {
    id: String,
    url: String,
    /// Empty: all of them.
    event_types: Vec<&'static str>,
    /// ENABLED; FAILING if a message could not be delivered in any attempt, and none since; DISABLED.
    state: &'static str,
    /// Until when the secret before the newest one signs, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Webhook> for WebhookItem {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id.to_string(),
            url: webhook.url,
            event_types: webhook.kinds.into_iter().map(MessageKind::as_str).collect(),
            state: webhook.state.as_str(),
            previous_secret_until: webhook.previous.map(|previous| previous.until),
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

/// An endpoint.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct WebhookBody {
    webhook: WebhookItem,
}

/// An endpoint with its secret.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct WebhookSecretBody {
    webhook: WebhookItem,
    /// `whsec_` and base64: what messages are signed with. It is not shown again.
    secret: String,
}

impl From<NewWebhook> for WebhookSecretBody {
    fn from(new: NewWebhook) -> Self {
        Self { secret: new.secret.expose_secret().to_owned(), webhook: new.webhook.into() }
    }
}

/// A seller's endpoints.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct WebhooksBody {
    webhooks: Vec<WebhookItem>,
}

/// Registers an endpoint that is told what happens in the seller's sales. Messages are signed as Standard Webhooks says; the
/// secret is in this answer and in no other.
#[utoipa::path(post, path = "/api/seller/webhooks", tag = "seller", request_body = WebhookRequest, responses(
    (status = 201, description = "Registered, with its secret", body = WebhookSecretBody),
    (status = 400, description = "A field breaks a rule: no public HTTPS address, an unknown type", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 409, description = "The seller has as many as a seller may", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn create_webhook(
    State(app): State<AppState>,
    Seller(session): Seller,
    ValidJson(request): ValidJson<WebhookRequest>,
) -> Answer<(StatusCode, Json<WebhookSecretBody>)> {
    let parse = |text: &String| {
        MessageKind::parse(text).ok_or_else(|| Error::invalid("eventTypes", "holds a type that there is not"))
    };
    let kinds = request.event_types.iter().map(parse).collect::<Result<_, _>>()?;
    let new = app.webhooks().register(session.user(), &request.url, kinds).await?;
    Ok((StatusCode::CREATED, Json(new.into())))
}

/// Lists the seller's webhooks, oldest first.
#[utoipa::path(get, path = "/api/seller/webhooks", tag = "seller", responses(
    (status = 200, description = "Webhooks", body = WebhooksBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_webhooks(
    State(app): State<AppState>,
    Seller(session): Seller,
) -> Answer<Json<WebhooksBody>> {
    let webhooks = app.webhooks().of_seller(session.user()).await?;
    Ok(Json(WebhooksBody { webhooks: webhooks.into_iter().map(WebhookItem::from).collect() }))
}

/// Shows a webhook.
#[utoipa::path(get, path = "/api/seller/webhooks/{webhookId}", tag = "seller",
    params(("webhookId" = String, Path, description = "Webhook id")), responses(
    (status = 200, description = "The webhook", body = WebhookBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such webhook", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_webhook(OwnedWebhook(webhook): OwnedWebhook) -> Answer<Json<WebhookBody>> {
    Ok(Json(WebhookBody { webhook: webhook.into() }))
}

/// Turns a webhook on or off. One that answered 410 was turned off by itself.
#[utoipa::path(put, path = "/api/seller/webhooks/{webhookId}", tag = "seller", request_body = WebhookChange,
    params(("webhookId" = String, Path, description = "Webhook id")), responses(
    (status = 200, description = "The webhook as it is now", body = WebhookBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such webhook", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn update_webhook(
    State(app): State<AppState>,
    OwnedWebhook(webhook): OwnedWebhook,
    ValidJson(change): ValidJson<WebhookChange>,
) -> Answer<Json<WebhookBody>> {
    let webhook = app.webhooks().set_enabled(&webhook, change.enabled).await?;
    Ok(Json(WebhookBody { webhook: webhook.into() }))
}

/// Gives a webhook a new secret. Until `previousSecretUntil` both sign: the header holds two signatures, and one that is
/// right is enough.
#[utoipa::path(post, path = "/api/seller/webhooks/{webhookId}/secrets", tag = "seller",
    params(("webhookId" = String, Path, description = "Webhook id")), responses(
    (status = 201, description = "The new secret", body = WebhookSecretBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such webhook", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn rotate_webhook_secret(
    State(app): State<AppState>,
    OwnedWebhook(webhook): OwnedWebhook,
) -> Answer<(StatusCode, Json<WebhookSecretBody>)> {
    Ok((StatusCode::CREATED, Json(app.webhooks().rotate(&webhook).await?.into())))
}

/// Deletes a webhook, with what was sent to it.
#[utoipa::path(delete, path = "/api/seller/webhooks/{webhookId}", tag = "seller",
    params(("webhookId" = String, Path, description = "Webhook id")), responses(
    (status = 200, description = "Deleted", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such webhook", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn delete_webhook(
    State(app): State<AppState>,
    OwnedWebhook(webhook): OwnedWebhook,
) -> Answer<Json<MessageBody>> {
    app.webhooks().delete(&webhook).await?;
    Ok(Json(MessageBody { message: "webhook deleted" }))
}
