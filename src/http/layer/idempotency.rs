//! Writes with an `Idempotency-Key` are answered once: the same caller's same key on the same path gets the first answer
//! again. Without the header nothing is looked up and nothing is kept.
//!
//! The request runs in a task of its own: a caller who hangs up, or a deadline, does not stop it between what it did and
//! its answer being kept. An answer that says "not now" (5xx, 429) is not kept, so that asking again really asks.

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request, response};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tracing::Instrument;

use super::RequestId;
use crate::app::AppState;
use crate::error::Error;
use crate::http::extract::{IDEMPOTENCY_KEY, Session, body_bytes, content_type, idempotency_key};
use crate::http::problem::{Problem, written};
use crate::idempotency::{ANSWER_BYTES_MAX, Answer, Decision, KeyedRequest, LEASE, hex, request_id};

/// Sign-up and sign-in have no caller yet, and their answers carry sessions.
const WITHOUT_CALLER: &str = "/api/auth/";
/// Says that the answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Answers a write once, if it has a key and its caller is signed in.
pub(in crate::http) async fn answer_once(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let keyed = request.headers().contains_key(IDEMPOTENCY_KEY);
    if !keyed || request.method().is_safe() || request.uri().path().starts_with(WITHOUT_CALLER) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let session = Session::from_request_parts(&mut parts, &app).await;
    let request = Request::from_parts(parts, body);
    // Whoever is not signed in is refused by the route itself, or has no need to be.
    let Ok(session) = session else { return next.run(request).await };
    once(app, &session, request, next).await.unwrap_or_else(IntoResponse::into_response)
}

async fn once(app: AppState, session: &Session, request: Request, next: Next) -> Result<Response, Problem> {
    let key = idempotency_key(request.headers())?.unwrap_or_default();
    let (parts, body) = request.into_parts();
    let bytes = body_bytes(Request::from_parts(parts.clone(), body), &app).await?;
    let id = request_id(session.user(), parts.method.as_str(), parts.uri.path(), &key);
    let keyed = match app.idempotency().begin(id, fingerprint(&parts, &bytes)).await? {
        Decision::Replay(answer) => return Ok(replayed(answer)),
        Decision::Run(keyed) => keyed,
    };
    let tasks = app.tasks().clone();
    let run = run(app, keyed, Request::from_parts(parts, Body::from(bytes)), next).in_current_span();
    Ok(tasks.complete("answering a request once", async { Ok(run.await) }).await?)
}

async fn run(app: AppState, keyed: KeyedRequest, request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_default();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut handler = std::pin::pin!(next.run(request));
    let response = loop {
        tokio::select! {
            response = handler.as_mut() => break response,
            () = tokio::time::sleep(LEASE / 3) => app.idempotency().renew(&keyed).await,
        }
    };
    // The body that the caller gets is the one that is kept.
    let (parts, body) = written(response, &id, &method, &path).into_parts();
    let not_now = parts.status.is_server_error() || parts.status == StatusCode::TOO_MANY_REQUESTS;
    let small = body.size_hint().upper().is_some_and(|bytes| bytes <= ANSWER_BYTES_MAX);
    if not_now || !small {
        if let Err(error) = app.idempotency().free(&keyed).await {
            tracing::warn!(error = %error, "a key could not be freed; it is when its lease is over");
        }
        return Response::from_parts(parts, body);
    }
    keep(&app, &keyed, parts, body).await
}

async fn keep(app: &AppState, keyed: &KeyedRequest, parts: response::Parts, body: Body) -> Response {
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Problem::from(Error::Internal { doing: "reading an answer", source: None }).into_response();
    };
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let answer = Answer {
        status: parts.status.as_u16(),
        content_type: content_type.unwrap_or_default().to_owned(),
        body: String::from_utf8_lossy(&bytes).into_owned(),
    };
    if let Err(error) = app.idempotency().keep(keyed, &answer).await {
        tracing::warn!(error = %error, "an answer could not be kept; its key is free when its lease is over");
    }
    Response::from_parts(parts, Body::from(bytes))
}

fn replayed(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(kind) = HeaderValue::from_str(&answer.content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// What is asked for. A form that is sent again has another boundary between its parts, and is the same form.
fn fingerprint(parts: &request::Parts, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(parts.uri.query().unwrap_or_default());
    for piece in pieces(body, boundary(&parts.headers).as_bytes()) {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    hex(&hash.finalize())
}

/// What separates the parts of a form; empty if the body is none.
fn boundary(headers: &HeaderMap) -> String {
    if content_type(headers).as_deref() != Some("multipart/form-data") {
        return String::new();
    }
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parameters = text.split(';').map(str::trim);
    let boundary = parameters.find_map(|one| one.strip_prefix("boundary="));
    boundary.unwrap_or_default().trim_matches('"').to_owned()
}

fn pieces<'a>(mut body: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while let Some(at) = find(body, separator) {
        pieces.push(&body[..at]);
        body = &body[at + separator.len()..];
    }
    pieces.push(body);
    pieces
}

fn find(body: &[u8], separator: &[u8]) -> Option<usize> {
    if separator.is_empty() {
        return None;
    }
    body.windows(separator.len()).position(|window| window == separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: &str, body: &str) -> String {
        let request = Request::builder().uri("/a").header(header::CONTENT_TYPE, kind).body(()).unwrap();
        fingerprint(&request.into_parts().0, body.as_bytes())
    }

    #[test]
    fn a_form_is_the_same_whatever_separates_its_parts() {
        let form = |boundary: &str, value: &str| {
            let kind = format!("multipart/form-data; boundary=\"{boundary}\"");
            told(&kind, &format!("--{boundary}\r\nx\r\n\r\n{value}\r\n--{boundary}--\r\n"))
        };
        assert_eq!(form("one", "v"), form("another", "v"));
        assert_ne!(form("one", "v"), form("one", "w"));
        assert_ne!(told("application/json", "one"), told("application/json", "two"));
        assert_ne!(told("multipart/form-data", "one"), told("multipart/form-data", "two"));
    }
}
