//! A name for each request: ours, or the load balancer's if it is a plain token.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The name of a request.
#[derive(Debug, Clone)]
pub(in crate::http) struct RequestId(Arc<str>);

impl Default for RequestId {
    fn default() -> Self {
        Self("unknown".into())
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names the request, for everything below and for the answer's header.
pub(in crate::http) async fn identify(mut request: Request, next: Next) -> Response {
    let plain = |text: &&str| {
        !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok()).filter(plain);
    let id: Arc<str> = given.map_or_else(|| uuid::Uuid::now_v7().simple().to_string().into(), Into::into);
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let span = tracing::info_span!("request", request_id = %id);
    let mut response = next.run(request).instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
