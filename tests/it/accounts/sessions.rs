//! Signing in and out, blocking, and what a token is worth.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ADMIN_EMAIL, Actor, PASSWORD, Reply, TestApp, eventually};

async fn sign_in(app: &TestApp, email: &Value, password: &Value) -> Reply {
    app.anonymous().post_json("/api/auth/signin", json!({ "emailId": email, "password": password })).await
}

/// Awaits an answer that must come within a second of the change that causes it.
async fn within_a_second(actor: &Actor, path: &str, status: u16) -> Reply {
    let started = Instant::now();
    eventually(&format!("{path} answers {status}"), || async { actor.get(path).await.status == status }).await;
    assert!(started.elapsed() < Duration::from_secs(1), "it took {:?}", started.elapsed());
    actor.get(path).await
}

#[tokio::test]
async fn an_unknown_address_and_a_wrong_password_get_the_same_answer() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let mut wrong = sign_in(&app, &json!(buyer.email), &json!("Password124")).await;
    let mut unknown = sign_in(&app, &json!("nobody@example.com"), &json!(PASSWORD)).await;
    wrong.refused(401, "bad_credentials");
    assert_eq!(wrong.body["error"], "EmailId or Password is wrong..!!");
    for reply in [&mut wrong, &mut unknown] {
        reply.body["requestId"] = json!("");
        assert!(!reply.headers.contains_key("set-cookie"));
    }
    assert_eq!((wrong.status, wrong.body), (unknown.status, unknown.body));
    app.finish().await;
}

#[tokio::test]
async fn a_query_operator_is_no_address_and_no_password() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    for trick in [json!({ "$gt": "" }), json!({ "$ne": null }), json!(["a@b.example"]), json!(1), json!(true)] {
        sign_in(&app, &trick, &json!(PASSWORD)).await.refused(400, "malformed_body");
        sign_in(&app, &json!(buyer.email), &trick).await.refused(400, "malformed_body");
    }
    sign_in(&app, &json!("{\"$gt\":\"\"}"), &json!(PASSWORD)).await.refused(400, "validation_failed");
    app.finish().await;
}

#[tokio::test]
async fn a_blocked_account_is_out_within_a_second_on_every_process_and_back_when_unblocked() {
    let app = TestApp::start().await;
    let second = app.second().await;
    let (buyer, admin) = (app.buyer().await, app.admin().await);
    let there = second.here(&buyer);
    there.get("/api/auth/check").await.expect(200);

    admin.post(&format!("/api/admin/accounts/{}/block", buyer.id)).await.expect(200);
    buyer.get("/api/auth/check").await.refused(403, "account_inactive");
    within_a_second(&there, "/api/auth/check", 403).await.refused(403, "account_inactive");
    for app in [&app, &second] {
        sign_in(app, &json!(buyer.email), &json!(PASSWORD)).await.refused(403, "account_inactive");
        // Only who knows the password learns that the account is blocked.
        sign_in(app, &json!(buyer.email), &json!("Password124")).await.refused(401, "bad_credentials");
    }

    admin.post(&format!("/api/admin/accounts/{}/unblock", buyer.id)).await.expect(200);
    buyer.get("/api/auth/check").await.expect(200);
    within_a_second(&there, "/api/auth/check", 200).await.expect(200);
    sign_in(&second, &json!(buyer.email), &json!(PASSWORD)).await.expect(200);
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn a_process_that_starts_later_knows_who_was_blocked_before() {
    let app = TestApp::start().await;
    let (buyer, admin) = (app.buyer().await, app.admin().await);
    admin.post(&format!("/api/admin/accounts/{}/block", buyer.id)).await.expect(200);
    let second = app.second().await;
    second.here(&buyer).get("/api/auth/check").await.refused(403, "account_inactive");
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn an_administrator_cannot_block_the_own_account() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    admin.post(&format!("/api/admin/accounts/{}/block", admin.id)).await.refused(403, "role_required");
    admin.get("/api/auth/check").await.expect(200);
    admin.post(&format!("/api/admin/accounts/{}/block", "0".repeat(24))).await.refused(404, "not_found");
    app.finish().await;
}

#[tokio::test]
async fn signing_out_ends_that_session_on_every_process_and_no_other() {
    let app = TestApp::start().await;
    let second = app.second().await;
    let buyer = app.buyer().await;
    let phone = app.anonymous().sign_in(&buyer.email, PASSWORD).await;
    let there = second.here(&buyer);

    let reply = buyer.post("/api/auth/signout").await;
    assert!(reply.headers["set-cookie"].starts_with("token=;"), "{}", reply.headers["set-cookie"]);
    assert!(reply.headers["set-cookie"].contains("Max-Age=0"), "{}", reply.headers["set-cookie"]);
    reply.expect(200);
    buyer.get("/api/auth/check").await.refused(401, "session_expired");
    within_a_second(&there, "/api/auth/check", 401).await.refused(401, "session_expired");
    for app in [&app, &second] {
        app.here(&phone).get("/api/auth/check").await.expect(200);
    }
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn a_forged_token_is_no_session() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let token = buyer.token.clone().unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    claims["role"] = json!("admin");
    let promoted = URL_SAFE_NO_PAD.encode(claims.to_string());
    let header = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let none = header(r#"{"alg":"none","typ":"JWT"}"#);
    let forged = [
        format!("{none}.{}.", parts[1]),
        format!("{none}.{promoted}."),
        format!("{}.{}.{}", header(r#"{"alg":"None","typ":"JWT"}"#), parts[1], parts[2]),
        format!("{}.{}.{}", header(r#"{"alg":"RS256","typ":"JWT"}"#), parts[1], parts[2]),
        format!("{}.{}.{}", header(r#"{"alg":"HS512","typ":"JWT"}"#), parts[1], parts[2]),
        format!("{}.{promoted}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{token}x"),
        "null".to_owned(),
        "a".repeat(5000),
    ];
    for token in forged {
        let mut forger = app.anonymous();
        let request = forger.request(Method::GET, "/api/auth/check");
        let bearer = Actor::send(request.header("authorization", format!("Bearer {token}"))).await;
        bearer.refused(401, "session_expired");
        forger.token = Some(token);
        forger.get("/api/auth/check").await.refused(401, "session_expired");
        forger.get("/api/admin/verifications/pending").await.refused(401, "session_expired");
    }
    buyer.get("/api/auth/check").await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn a_session_ends_by_itself() {
    let mut config = crate::harness::config().await;
    config.auth.session_ttl_s = 2;
    let app = TestApp::with(config).await;
    let buyer = app.buyer().await;
    buyer.get("/api/auth/check").await.expect(200);
    eventually("the session is over", || async { buyer.get("/api/auth/check").await.status == 401 }).await;
    buyer.get("/api/auth/check").await.refused(401, "session_expired");
    app.finish().await;
}

#[tokio::test]
async fn the_configured_administrator_signs_in_and_starting_again_changes_nothing() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    let checked = admin.get("/api/auth/check").await.expect(200);
    assert_eq!(checked["user"]["role"], "admin");
    let second = app.second().await;
    let again = second.anonymous().sign_in(ADMIN_EMAIL, PASSWORD).await;
    assert_eq!(again.id, admin.id);
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn the_administrators_address_must_not_be_a_buyers() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let mut config = app.config().clone();
    config.accounts.bootstrap_admin_email = buyer.email.clone();
    let error = orbit::app::App::start(config).await.map(|_| ()).unwrap_err();
    assert!(error.public_message().contains("accounts.bootstrap_admin_email"), "{error}");
    app.finish().await;
}
