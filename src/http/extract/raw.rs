//! A body as it came: for what is signed.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};

use super::json::body_bytes;
use crate::app::AppState;
use crate::http::problem::Problem;

/// The whole body, within the route's limit.
pub(in crate::http) struct RawBody(pub Bytes);

impl FromRequest<AppState> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        Ok(Self(body_bytes(request, app).await?))
    }
}
