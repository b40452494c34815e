//! `/docs`: the API as a page, and `/openapi.json` under it. Nothing is fetched from elsewhere.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

use crate::app::AppState;

const PAGE: &str = include_str!("docs.html");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";

/// The two routes.
pub(super) fn routes(document: &utoipa::openapi::OpenApi) -> Router<AppState> {
    let json = document.to_json().unwrap_or_default();
    let page = || async {
        let policy = [(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))];
        (policy, Html(PAGE))
    };
    let json = move || async move {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (kind, json).into_response()
    };
    Router::new().route("/docs", get(page)).route("/openapi.json", get(json))
}
