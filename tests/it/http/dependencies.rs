//! What callers are told when a server behind the service is away, or an answer takes too long.

use reqwest::Method;
use serde_json::json;

use crate::harness::{PASSWORD, Reply, TestApp, config, eventually, own_mongo, pictures};

/// Says that it may be tried again, and nothing of what is inside.
#[track_caller]
fn try_again(reply: &Reply, code: &str) {
    reply.refused(503, code);
    assert!(reply.headers.contains_key("retry-after"), "{:?}", reply.headers);
    let text = reply.body.to_string().to_lowercase();
    for inside in ["mongo", "redis", "127.0.0.1", "os error", "timed out", ".rs"] {
        assert!(!text.contains(inside), "{inside}: {text}");
    }
}

#[tokio::test]
async fn without_mongodb_purchases_go_on_and_the_rest_says_try_again() {
    let mut mongo = own_mongo().await;
    let mut config = config().await;
    config.mongo.uri = mongo.uri().into();
    config.mongo.deadline_ms = 1000;
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, 2).await;
    let (first, second) = (app.buyer().await, app.buyer().await);

    mongo.kill().await;
    first.post(&sale.purchase(0)).await.expect(201);
    first.post(&sale.purchase(0)).await.refused(409, "already_booked");
    let ready = app.anonymous().get("/health/ready").await;
    assert_eq!((ready.status, &ready.body["database"]), (503, &json!("unavailable")), "{}", ready.body);
    assert_eq!(ready.body["liveStore"], "ok");
    let body = json!({ "emailId": second.email, "password": PASSWORD });
    try_again(&app.anonymous().post_json("/api/auth/signin", body).await, "database_unavailable");
    try_again(&sale.seller.get("/api/seller/events/get").await, "database_unavailable");
    // A session that is there is good all the same.
    second.get("/api/auth/check").await.expect(200);

    mongo.restart().await.unwrap();
    eventually("ready again", || async { app.anonymous().get("/health/ready").await.status == 200 }).await;
    second.post(&sale.purchase(0)).await.expect(201);
    sale.control("End").await.expect(200);
    assert_eq!(sale.orders().await.len(), 2);
    app.finish().await;
}

#[tokio::test]
async fn without_the_media_store_an_upload_says_try_again_and_leaves_no_record() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let dir = &app.config().media.filesystem.dir;
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::write(dir, "not a folder").unwrap();
    let text = [("title", "A title"), ("description", "Some text"), ("scheduledAt", "2099-01-01T00:00:00Z")];
    let create = || {
        let file = Some(("imageBanner", pictures::png(8, 8)));
        seller.form(Method::POST, "/api/seller/events/create", &text, file)
    };
    try_again(&create().await, "media_unavailable");
    assert_eq!(seller.get("/api/seller/events/get").await.expect(200)["events"], json!([]));
    std::fs::remove_file(dir).unwrap();
    create().await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_at_its_deadline() {
    let mut config = config().await;
    config.accounts.bootstrap_admin_email = String::new();
    // A hash takes longer than a request may.
    config.auth.bcrypt_cost = 14;
    config.server.request_timeout_ms = 300;
    let app = TestApp::with(config).await;
    let body = json!({ "emailId": "nobody@example.com", "password": PASSWORD });
    try_again(&app.anonymous().post_json("/api/auth/signin", body).await, "deadline_exceeded");
    app.anonymous().get("/health/live").await.expect(200);
    app.finish().await;
}
