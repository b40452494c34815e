//! Cross-site request forgery: a browser tells where a write comes from, and only our own pages and the configured
//! origins may write. Programs send neither header and are not concerned: they have no cookies but their own.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::{Code, Error};
use crate::http::problem::Problem;

/// Refuses a browser's write from another site.
pub(in crate::http) async fn refuse_cross_site(
    State(allowed): State<Arc<Vec<String>>>,
    request: Request,
    next: Next,
) -> Response {
    if request.method().is_safe() || same_site(request.headers(), &allowed) {
        return next.run(request).await;
    }
    Problem::from(Error::refused(Code::CrossSite, "requests from this origin are not allowed")).into_response()
}

fn same_site(headers: &HeaderMap, allowed: &[String]) -> bool {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    match (headers.contains_key(header::ORIGIN), text("origin")) {
        (true, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            allowed.iter().any(|one| one == origin) || (host.is_some() && host == text("host"))
        }
        (true, None) => false,
        (false, _) => !matches!(text("sec-fetch-site"), Some("cross-site")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(headers: &[(&'static str, &'static str)]) -> bool {
        let map = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        same_site(&map, &["https://shop.example".to_owned()])
    }

    #[test]
    fn only_our_own_pages_the_allowed_ones_and_programs_may_write() {
        assert!(judge(&[]));
        assert!(judge(&[("origin", "http://localhost:9132"), ("host", "localhost:9132")]));
        assert!(judge(&[("origin", "https://shop.example"), ("host", "api.example")]));
        assert!(!judge(&[("origin", "https://evil.example"), ("host", "api.example")]));
        assert!(!judge(&[("origin", "null"), ("host", "api.example")]));
        assert!(!judge(&[("sec-fetch-site", "cross-site")]));
    }
}
