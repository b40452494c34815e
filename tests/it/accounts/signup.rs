//! Signing up.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{PASSWORD, Reply, TestApp};

/// A body that is accepted, with one field as given.
fn body(field: &str, value: Value) -> Value {
    let mut body = json!({
        "firstName": "Test", "lastName": "Person", "emailId": format!("{}@example.com", uuid::Uuid::new_v4().simple()),
        "age": 30, "password": PASSWORD, "role": "buyer",
    });
    body[field] = value;
    body
}

async fn sign_up(app: &TestApp, body: Value) -> Reply {
    app.anonymous().post_json("/api/auth/signup", body).await
}

#[tokio::test]
async fn each_field_has_its_rule_and_a_broken_one_is_named() {
    let app = TestApp::start().await;
    let refused = [
        ("firstName", json!("ab")),
        ("firstName", json!("a".repeat(21))),
        ("firstName", json!("")),
        ("lastName", json!("ab")),
        ("lastName", json!("a".repeat(21))),
        ("emailId", json!("no address")),
        ("emailId", json!("")),
        ("emailId", json!("a@")),
        ("emailId", json!(format!("{}@example.com", "a".repeat(300)))),
        ("age", json!(5)),
        ("age", json!(81)),
        ("age", json!(-1)),
        ("password", json!("")),
        ("password", json!("1234567")),
        ("password", json!("a".repeat(73))),
        // 25 characters, but 75 bytes.
        ("password", json!("\u{20ac}".repeat(25))),
        ("role", json!("admin")),
        ("role", json!("Buyer")),
        ("role", json!("")),
    ];
    for (field, value) in refused {
        let reply = sign_up(&app, body(field, value.clone())).await;
        assert_eq!((reply.status, reply.body["code"].as_str()), (400, Some("validation_failed")), "{field}: {value}");
        let named = reply.body["fields"].as_array().unwrap();
        assert!(named.iter().any(|broken| spelled(&broken["field"]) == spelled(&json!(field))), "{}", reply.body);
        assert!(!reply.headers.contains_key("set-cookie"));
    }
    let accepted = [
        ("firstName", json!("abc")),
        ("firstName", json!("\u{e9}".repeat(20))),
        ("lastName", json!("")),
        ("lastName", Value::Null),
        ("age", json!(0)),
        ("age", json!(6)),
        ("age", json!(80)),
        ("age", Value::Null),
        ("password", json!("12345678")),
        ("password", json!("a".repeat(72))),
        ("role", json!("seller")),
    ];
    for (field, value) in accepted {
        let reply = sign_up(&app, body(field, value.clone())).await;
        assert_eq!(reply.status, 201, "{field}: {value}: {}", reply.body);
    }
    app.finish().await;
}

fn spelled(field: &Value) -> String {
    field.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_broken_rule_is_reported_at_once() {
    let app = TestApp::start().await;
    let body = json!({
        "firstName": "a", "lastName": "b", "emailId": "x", "age": 1, "password": "a".repeat(73), "role": "king",
    });
    let reply = sign_up(&app, body).await;
    reply.refused(400, "validation_failed");
    let mut named: Vec<_> = reply.body["fields"].as_array().unwrap().iter().map(|f| spelled(&f["field"])).collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named, ["age", "emailId", "firstName", "lastName", "password", "role"], "{}", reply.body);
    app.finish().await;
}

#[tokio::test]
async fn an_address_has_one_account_however_it_is_written() {
    let app = TestApp::start().await;
    sign_up(&app, body("emailId", json!("Jo.Doe@Example.com"))).await.expect(201);
    for spelling in ["Jo.Doe@Example.com", "jo.doe@example.com", "JO.DOE@EXAMPLE.COM"] {
        let reply = sign_up(&app, body("emailId", json!(spelling))).await;
        reply.refused(409, "email_taken");
        assert_eq!(reply.body["error"], "Email already exists");
        app.anonymous().sign_in(spelling, PASSWORD).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn of_two_who_sign_up_at_once_with_one_address_exactly_one_gets_it() {
    let app = TestApp::start().await;
    let second = app.second().await;
    for round in 0..5 {
        let address = json!(format!("race-{round}@example.com"));
        let (one, other) =
            tokio::join!(sign_up(&app, body("emailId", address.clone())), sign_up(&second, body("emailId", address)),);
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{} {}", one.body, other.body);
    }
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn a_huge_password_is_refused_without_being_hashed() {
    let mut config = crate::harness::config().await;
    // So slow that a test would notice.
    config.auth.bcrypt_cost = 14;
    config.accounts.bootstrap_admin_email = String::new();
    let app = TestApp::with(config).await;
    let started = Instant::now();
    sign_up(&app, body("password", json!("a".repeat(50_000)))).await.refused(400, "validation_failed");
    sign_up(&app, body("password", json!("a".repeat(100_000)))).await.refused(413, "too_large");
    let sign_in = |password: String| {
        let anonymous = app.anonymous();
        let body = json!({ "emailId": "nobody@example.com", "password": password });
        async move { anonymous.post_json("/api/auth/signin", body).await }
    };
    sign_in("a".repeat(1025)).await.refused(400, "validation_failed");
    sign_in("a".repeat(73)).await.refused(401, "bad_credentials");
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    app.finish().await;
}

#[tokio::test]
async fn the_password_is_stored_as_a_hash_and_never_shown() {
    let app = TestApp::start().await;
    let reply = sign_up(&app, body("firstName", json!("Jo Doe"))).await;
    let body = reply.expect(201);
    assert!(!body.to_string().contains("assword"), "{body}");
    let users = super::verification::collection(&app, "users").await;
    let stored = users.find_one(bson::doc! { "firstName": "Jo Doe" }).await.unwrap().unwrap();
    assert!(stored.get_str("password").unwrap().starts_with("$2"));
    assert!(!stored.to_string().contains(PASSWORD));
    app.finish().await;
}
