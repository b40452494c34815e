//! The layers around every route, outermost first:
//!
//! 1. request id: everything below can name the request
//! 2. problems: errors of all layers below become bodies, and are logged
//! 3. panics become errors
//! 4. counting
//! 5. security headers
//! 6. CORS: a refused preflight never reaches a handler
//! 7. cross-site check: a browser's write from another site is refused before authentication
//! 8. body idle timeout
//! 9. deadline (per group of routes)
//! 10. writes with a key are answered once (all but purchases, whose script does that)

mod body;
mod cross_site;
mod deadline;
mod idempotency;
mod request_id;

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};

pub(super) use body::idle_timeout;
pub(super) use cross_site::refuse_cross_site;
pub(super) use deadline::{Deadline, enforce_deadline};
pub(super) use idempotency::answer_once;
pub(super) use request_id::{RequestId, identify};

use super::problem::Problem;
use crate::error::Error;
use crate::telemetry::metrics::REQUESTS;

/// The peer of a connection.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// Counts answers by class.
pub(super) async fn count(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let class = match response.status().as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    };
    metrics::counter!(REQUESTS, "class" => class).increment(1);
    response
}

/// Headers that keep a browser from guessing.
pub(super) async fn security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// CORS for the configured origins, and nobody else.
pub(super) fn cors(origins: &[String]) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_credentials(true)
        .allow_methods([
            axum::http::Method::GET,
            axum::http::Method::POST,
            axum::http::Method::PUT,
            axum::http::Method::DELETE,
        ])
        .allow_headers([header::CONTENT_TYPE, header::AUTHORIZATION, HeaderName::from_static("idempotency-key")])
}

/// A panic is a bug, and the caller's connection survives it.
pub(super) fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    Problem::from(Error::Internal { doing: "handling a request (a panic)", source: None }).into_response()
}
