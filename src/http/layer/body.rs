//! A body that stops coming is given up.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tower_http::timeout::TimeoutBody;

/// Ends a body that pauses for longer than this between two pieces.
pub(in crate::http) async fn idle_timeout(State(pause): State<Duration>, request: Request, next: Next) -> Response {
    next.run(request.map(|body| Body::new(TimeoutBody::new(pause, body)))).await
}
