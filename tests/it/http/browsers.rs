//! Browsers: other sites' pages, shared origins, security headers, and the request id that a person quotes.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Actor, PASSWORD, Reply, TestApp, config};

const SHOP: &str = "https://shop.example";

/// A sign-in by a page of this origin.
async fn sign_in_from(app: &TestApp, headers: &[(&str, &str)]) -> Reply {
    let mut request = app.anonymous().request(Method::POST, "/api/auth/signin");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Actor::send(request.json(&json!({ "emailId": "nobody@example.com", "password": PASSWORD }))).await
}

#[tokio::test]
async fn another_sites_page_cannot_write() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 1).await;
    let buyer = app.buyer().await;
    for headers in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:1")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        sign_in_from(&app, headers).await.refused(403, "cross_site");
        // A purchase needs no body, so a form of another site could send it with the buyer's cookie.
        let (name, value) = headers[0];
        let request = buyer.request(Method::POST, &sale.purchase(0)).header(name, value);
        Actor::send(request).await.refused(403, "cross_site");
    }
    assert_eq!(sale.available(&buyer, 0).await, 1);
    // Its page may not read either: no header says that it may.
    let request = buyer.request(Method::GET, "/api/auth/check").header("origin", "https://evil.example");
    let reply = Actor::send(request).await;
    assert!(!reply.headers.contains_key("access-control-allow-origin"), "{:?}", reply.headers);
    app.finish().await;
}

#[tokio::test]
async fn our_own_pages_the_allowed_ones_and_programs_may_write() {
    let mut config = config().await;
    config.server.allowed_origins = vec![SHOP.to_owned()];
    let app = TestApp::with(config).await;
    for headers in [&[][..], &[("origin", app.url().as_str())], &[("sec-fetch-site", "same-origin")]] {
        sign_in_from(&app, headers).await.refused(401, "bad_credentials");
    }
    let reply = sign_in_from(&app, &[("origin", SHOP), ("sec-fetch-site", "cross-site")]).await;
    reply.refused(401, "bad_credentials");
    assert_eq!(reply.headers["access-control-allow-origin"], SHOP);
    assert_eq!(reply.headers["access-control-allow-credentials"], "true");

    let request = app.anonymous().request(Method::OPTIONS, "/api/auth/signin");
    let preflight = Actor::send(
        request
            .header("origin", SHOP)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type"),
    )
    .await;
    assert_eq!((preflight.status, preflight.headers["access-control-allow-origin"].as_str()), (200, SHOP));
    assert!(preflight.headers["access-control-allow-methods"].contains("POST"));
    assert!(preflight.headers["access-control-allow-headers"].contains("content-type"));
    sign_in_from(&app, &[("origin", "https://evil.example")]).await.refused(403, "cross_site");
    sign_in_from(&app, &[("origin", "https://shop.example.evil.example")]).await.refused(403, "cross_site");
    app.finish().await;
}

#[tokio::test]
async fn every_answer_keeps_a_browser_from_guessing() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let refused = sign_in_from(&app, &[("origin", "https://evil.example")]).await;
    let replies = [
        buyer.get("/api/auth/check").await,
        buyer.get("/api/nothing").await,
        app.anonymous().get("/api/auth/check").await,
        buyer.post("/health/live").await,
        buyer.get("/docs").await,
        refused,
    ];
    for reply in replies {
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        assert_eq!(reply.headers["x-frame-options"], "DENY");
        assert_eq!(reply.headers["referrer-policy"], "no-referrer");
        assert_eq!(reply.headers["cache-control"], "no-store");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_plain_request_id_is_kept_and_any_other_is_replaced() {
    let app = TestApp::start().await;
    let ask = |id: &str| {
        let request = app.anonymous().request(Method::GET, "/api/auth/check");
        Actor::send(request.header("x-request-id", id.to_owned()))
    };
    let reply = ask("lb-0123456789").await;
    assert_eq!(reply.headers["x-request-id"], "lb-0123456789");
    assert_eq!(reply.body["requestId"], "lb-0123456789");
    let long = "a".repeat(65);
    for odd in ["", "two words", "<script>", "a;b", &long] {
        let reply = ask(odd).await;
        let given = &reply.headers["x-request-id"];
        assert!(given != odd && given.len() == 32, "{odd}: {given}");
        assert_eq!(reply.body["requestId"], given.as_str());
    }
    let (one, other) = (app.anonymous().get("/health/live").await, app.anonymous().get("/health/live").await);
    assert_ne!(one.headers["x-request-id"], other.headers["x-request-id"]);
    app.finish().await;
}
