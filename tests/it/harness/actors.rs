//! Actors: somebody with a session who sends requests.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use super::{PASSWORD, pictures};

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Value,
}

impl Reply {
    /// The body, if the status is this.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    /// Asserts an error's status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{}", self.body);
        assert!(self.body["error"].is_string() && self.body["requestId"].is_string(), "{}", self.body);
    }
}

/// Somebody, perhaps signed in.
#[derive(Debug, Clone)]
pub struct Actor {
    client: Client,
    url: String,
    pub token: Option<String>,
    pub id: String,
    pub email: String,
}

impl Actor {
    pub fn new(url: String) -> Self {
        let client = Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        Self { client, url, token: None, id: String::new(), email: String::new() }
    }

    /// The same account and session, speaking to another process.
    pub fn at(&self, url: String) -> Self {
        Self { url, ..self.clone() }
    }

    /// Where the process listens, as `host:port`.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub async fn sign_up(self, role: &str) -> Self {
        let email = format!("{role}-{}@example.com", uuid::Uuid::new_v4().simple());
        let body = json!({
            "firstName": "Test", "lastName": "Person", "emailId": email, "age": 30, "password": PASSWORD, "role": role,
        });
        let reply = self.post_json("/api/auth/signup", body).await;
        self.signed(email, reply, 201)
    }

    pub async fn sign_in(self, email: &str, password: &str) -> Self {
        let reply = self.post_json("/api/auth/signin", json!({ "emailId": email, "password": password })).await;
        self.signed(email.to_owned(), reply, 200)
    }

    fn signed(mut self, email: String, reply: Reply, status: u16) -> Self {
        self.token = reply
            .headers
            .get("set-cookie")
            .and_then(|cookie| Some(cookie.strip_prefix("token=")?.split(';').next()?.to_owned()));
        self.id = reply.expect(status)["user"]["_id"].as_str().unwrap().to_owned();
        self.email = email;
        self
    }

    /// A request with the session's cookie, for tests that add headers or bodies of their own.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.header("cookie", format!("token={token}")),
            None => request,
        }
    }

    /// Sends a request; a transport error is a panic with its text.
    pub async fn send(request: RequestBuilder) -> Reply {
        Self::try_send(request).await.unwrap()
    }

    pub async fn try_send(request: RequestBuilder) -> reqwest::Result<Reply> {
        let response = request.send().await?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Reply { status, headers, body })
    }

    pub async fn get(&self, path: &str) -> Reply {
        Self::send(self.request(Method::GET, path)).await
    }

    /// A POST without a body but with a JSON content type, as existing clients send it.
    pub async fn post(&self, path: &str) -> Reply {
        Self::send(self.request(Method::POST, path).header("content-type", "application/json")).await
    }

    pub async fn post_json(&self, path: &str, body: Value) -> Reply {
        Self::send(self.request(Method::POST, path).json(&body)).await
    }

    /// As [`Self::post_json`], of a process that may be killed meanwhile: `None` if there was no answer.
    pub async fn try_post_json(&self, path: &str, body: Value) -> Option<Reply> {
        Self::try_send(self.request(Method::POST, path).json(&body)).await.ok()
    }

    pub async fn put_json(&self, path: &str, body: Value) -> Reply {
        Self::send(self.request(Method::PUT, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        Self::send(self.request(Method::DELETE, path)).await
    }

    /// A multipart form; a file is `(field, bytes)` and typed as existing clients type it.
    pub async fn form(
        &self,
        method: Method,
        path: &str,
        text: &[(&str, &str)],
        file: Option<(&str, Vec<u8>)>,
    ) -> Reply {
        let mut form = Form::new();
        for (name, value) in text {
            form = form.text((*name).to_owned(), (*value).to_owned());
        }
        if let Some((name, bytes)) = file {
            let part = Part::bytes(bytes).file_name("assets/picture.jpg").mime_str("application/octet-stream").unwrap();
            form = form.part(name.to_owned(), part);
        }
        Self::send(self.request(method, path).multipart(form)).await
    }

    /// Creates an event scheduled for tomorrow, and returns its id.
    pub async fn create_event(&self, title: &str) -> String {
        let text = [("title", title), ("description", "An event of a test"), ("scheduledAt", "2099-01-01T00:00:00Z")];
        let file = Some(("imageBanner", pictures::jpeg(64, 64)));
        let reply = self.form(Method::POST, "/api/seller/events/create", &text, file).await;
        reply.expect(201)["eventId"].as_str().unwrap().to_owned()
    }

    /// Adds a product, and returns its id.
    pub async fn add_product(&self, event: &str, title: &str, price: &str, units: u32) -> String {
        let units = units.to_string();
        let text =
            [("title", title), ("description", "A product of a test"), ("price", price), ("frequency", units.as_str())];
        let file = Some(("image", pictures::jpeg(64, 64)));
        let reply = self.form(Method::POST, &format!("/api/seller/events/{event}/registerProducts"), &text, file).await;
        reply.expect(201)["productId"].as_str().unwrap().to_owned()
    }
}
