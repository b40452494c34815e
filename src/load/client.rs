//! The service, reached over HTTP: one pool of connections for everybody who is played.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{RETRY_AFTER, SET_COOKIE};
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::answers::{Listing, Problem, Signed};
use super::error::{ApiError, LoadError, Result};

/// Servers close idle connections; a client that closes first never sends a request into one that just closed.
const IDLE_MAX: Duration = Duration::from_secs(8);
/// Preparations wait out "come back later" this often, each time as long as the service asks, within reason.
const PATIENCE: u32 = 20;
const WAIT_MAX: Duration = Duration::from_secs(15);

/// An e-mail address and a password.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The account.
    pub email: String,
    /// Its password.
    pub password: String,
}

/// The service at one address.
#[derive(Debug, Clone)]
pub struct Api {
    base: Arc<str>,
    http: reqwest::Client,
}

impl Api {
    /// A client of the service at `base`, such as `http://localhost:9132`. No answer may take longer than `timeout`.
    ///
    /// # Errors
    /// When `base` is not an HTTP address, or the client cannot be made.
    pub fn new(base: &str, timeout: Duration) -> Result<Self> {
        let base = base.trim_end_matches('/');
        let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none() {
            return Err(LoadError::Plan(format!("\"{base}\" is not an address such as http://localhost:9132")));
        }
        crate::tls::install();
        let http = reqwest::Client::builder()
            .timeout(timeout)
            .connect_timeout(timeout)
            .pool_idle_timeout(IDLE_MAX)
            // A proxy would be measured along with the service.
            .no_proxy()
            .build()
            .map_err(LoadError::Client)?;
        Ok(Self { base: base.into(), http })
    }

    /// The address.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Makes an account and signs it in. `role` is `buyer` or `seller`.
    ///
    /// # Errors
    /// [`LoadError::Api`] when the service refuses, [`LoadError::Contract`] when it gives no session.
    pub async fn sign_up(&self, who: &Credentials, role: &'static str) -> Result<Session> {
        let body = json!({
            "firstName": if role == "seller" { "Seller" } else { "Buyer" },
            "lastName": "Test",
            "emailId": who.email,
            "age": 30,
            "password": who.password,
            "role": role,
        });
        self.session("signing up", "/api/auth/signup", &body).await
    }

    /// Opens a session.
    ///
    /// # Errors
    /// As [`Self::sign_up`].
    pub async fn sign_in(&self, who: &Credentials) -> Result<Session> {
        let body = json!({ "emailId": who.email, "password": who.password });
        self.session("signing in", "/api/auth/signin", &body).await
    }

    async fn session(&self, doing: &'static str, path: &str, body: &serde_json::Value) -> Result<Session> {
        let make = || self.request(Method::POST, path).json(body);
        let response = self.patiently(doing, make).await?;
        let token = token(&response)
            .ok_or_else(|| LoadError::Contract { doing, detail: "the answer sets no cookie named token".to_owned() })?;
        let signed: Signed = read(doing, response).await?;
        Ok(Session { api: self.clone(), token, user_id: signed.user.id })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// Sends a preparation, and again whenever the service says that it is busy.
    async fn patiently(&self, doing: &'static str, make: impl Fn() -> RequestBuilder) -> Result<Response, ApiError> {
        let mut tries = 0;
        loop {
            let error = match self.send(doing, make()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            tries += 1;
            if tries >= PATIENCE || !matches!(error.status, 429 | 503) {
                return Err(error);
            }
            tokio::time::sleep(error.retry_after.unwrap_or(Duration::from_millis(500)).min(WAIT_MAX)).await;
        }
    }

    async fn send(&self, doing: &'static str, request: RequestBuilder) -> Result<Response, ApiError> {
        let request = request.build().map_err(|error| ApiError::no_answer(doing, &error))?;
        self.execute(doing, request).await
    }

    async fn execute(&self, doing: &'static str, request: Request) -> Result<Response, ApiError> {
        let response = self.http.execute(request).await.map_err(|error| ApiError::no_answer(doing, &error))?;
        if response.status().is_success() { Ok(response) } else { Err(problem(doing, response).await) }
    }

    /// Sends a request that was made before, and reads its answer. This is the measured path: it is never repeated.
    pub(super) async fn call<T: DeserializeOwned>(&self, doing: &'static str, request: Request) -> Result<T, ApiError> {
        read(doing, self.execute(doing, request).await?).await
    }
}

/// An account that is signed in.
#[derive(Debug, Clone)]
pub struct Session {
    api: Api,
    token: String,
    user_id: String,
}

impl Session {
    /// The account.
    #[must_use]
    pub fn user_id(&self) -> &str {
        &self.user_id
    }

    /// Where it is signed in.
    #[must_use]
    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// What proves the session.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.api.request(method, path).bearer_auth(&self.token)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, doing: &'static str, path: &str) -> Result<T, ApiError> {
        read(doing, self.api.patiently(doing, || self.request(Method::GET, path)).await?).await
    }

    /// Sends what `make` makes; the answer's body is not looked at.
    pub(super) async fn tell(&self, doing: &'static str, make: impl Fn() -> RequestBuilder) -> Result<(), ApiError> {
        // Read to the end, so that the connection can be used again.
        self.api
            .patiently(doing, make)
            .await?
            .bytes()
            .await
            .map(drop)
            .map_err(|error| ApiError::no_answer(doing, &error))
    }

    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        make: impl Fn() -> RequestBuilder,
    ) -> Result<T, ApiError> {
        read(doing, self.api.patiently(doing, make).await?).await
    }

    /// Reads a list page by page until `enough` says so, or to its end.
    pub(super) async fn list<L: Listing + DeserializeOwned>(
        &self,
        doing: &'static str,
        path: &str,
        enough: impl Fn(&[L::Item]) -> bool,
    ) -> Result<Vec<L::Item>, ApiError> {
        let (mut items, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = self.get::<L>(doing, &with_cursor(path, cursor.as_deref())).await?.into_parts();
            items.extend(page);
            if enough(&items) || next.is_none() {
                return Ok(items);
            }
            cursor = next;
        }
    }
}

fn with_cursor(path: &str, cursor: Option<&str>) -> String {
    let Some(cursor) = cursor else { return path.to_owned() };
    let mut query = String::new();
    for byte in cursor.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => query.push(char::from(byte)),
            _ => query.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{path}?cursor={query}")
}

fn token(response: &Response) -> Option<String> {
    response.headers().get_all(SET_COOKIE).iter().find_map(|cookie| {
        let (name, value) = cookie.to_str().ok()?.split(';').next()?.split_once('=')?;
        (name.trim() == "token" && !value.is_empty()).then(|| value.trim().to_owned())
    })
}

async fn read<T: DeserializeOwned>(doing: &'static str, response: Response) -> Result<T, ApiError> {
    let status = response.status().as_u16();
    let body = response.bytes().await.map_err(|error| ApiError::no_answer(doing, &error))?;
    serde_json::from_slice(&body).map_err(|error| ApiError {
        doing,
        status,
        code: "unreadable_answer".to_owned(),
        message: format!("the answer is not what was expected: {error}"),
        retry_after: None,
    })
}

async fn problem(doing: &'static str, response: Response) -> ApiError {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = response.bytes().await.unwrap_or_default();
    let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
    let message = problem
        .error
        .or(problem.message)
        .unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason").to_owned());
    ApiError {
        doing,
        status: status.as_u16(),
        code: problem.code.unwrap_or_else(|| code_of(status, &message)),
        message,
        retry_after: retry_after.map(Duration::from_secs),
    }
}

/// Servers that predate error codes tell refusals apart by their text alone.
fn code_of(status: StatusCode, message: &str) -> String {
    match (status, message) {
        (StatusCode::CONFLICT, "sold out") => "sold_out".to_owned(),
        (StatusCode::CONFLICT, "already booked") => "already_booked".to_owned(),
        _ => format!("http_{}", status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_opaque() {
        assert_eq!(with_cursor("/a", None), "/a");
        assert_eq!(with_cursor("/a", Some("x-Y_1=&/é")), "/a?cursor=x-Y_1%3D%26%2F%C3%A9");
    }

    #[test]
    fn codes_come_from_the_text_where_there_are_none() {
        assert_eq!(code_of(StatusCode::CONFLICT, "sold out"), "sold_out");
        assert_eq!(code_of(StatusCode::BAD_GATEWAY, "sold out"), "http_502");
    }

    #[test]
    fn refuses_an_address_that_is_none() {
        for text in ["localhost:9132", "ftp://x", ""] {
            assert!(matches!(Api::new(text, Duration::from_secs(1)), Err(LoadError::Plan(_))), "{text}");
        }
        assert_eq!(Api::new("http://localhost:1/", Duration::from_secs(1)).unwrap().base(), "http://localhost:1");
    }
}
