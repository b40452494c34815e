//! A seller's own webhook. Somebody else's is the same 404 as none, and is refused before a body is read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::{Seller, path_id, path_text};
use crate::app::AppState;
use crate::domain::webhook::Webhook;
use crate::http::problem::Problem;

/// A webhook of the seller who asks, from the path parameter `webhookId`.
#[derive(Debug)]
pub(in crate::http) struct OwnedWebhook(pub Webhook);

impl FromRequestParts<AppState> for OwnedWebhook {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let Seller(session) = Seller::from_request_parts(parts, app).await?;
        let id = path_id(&path_text(parts, app, "webhookId").await, "webhook not found")?;
        Ok(Self(app.webhooks().webhook(session.user(), id).await?))
    }
}
