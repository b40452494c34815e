//! The gateway's callback. The raw body is what was signed, so nothing reads it before.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::Result;
use crate::http::extract::RawBody;
use crate::http::problem::{Answer, ProblemBody};
use crate::payment::Received;

/// The callback arrived.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct CallbackBody {
    /// applied, before (it was known) or ignored (nothing follows from it).
    outcome: &'static str,
}

/// Takes a signed event of the payment gateway. The same event may come any number of times.
#[utoipa::path(post, path = "/api/payments/callback", tag = "payment", security(()),
    request_body(content = String, description = "The event, exactly as it was signed", content_type = "application/json"),
    responses(
    (status = 200, description = "Dealt with", body = CallbackBody),
    (status = 400, description = "bad_signature, or a body that cannot be read", body = ProblemBody),
    (status = 409, description = "payments_off", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 503, description = "A store is away: send it again", body = ProblemBody)))]
pub(in crate::http) async fn receive_callback(
    State(app): State<AppState>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Answer<Json<CallbackBody>> {
    let received = receive(&app, headers, body.to_vec()).await?;
    Ok(Json(CallbackBody { outcome: received.as_str() }))
}

/// To its end, even if the gateway hangs up.
pub(super) async fn receive(app: &AppState, headers: HeaderMap, body: Vec<u8>) -> Result<Received> {
    let payments = Arc::clone(app.payments());
    let work = async move { payments.receive(&headers, &body).await };
    app.tasks().complete("receiving a callback", work).await
}
