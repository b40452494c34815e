//! How often somebody may try, and what happens when too many passwords are hashed at once.

use std::time::Instant;

use serde_json::json;

use crate::harness::{PASSWORD, Reply, TestApp, config};

async fn sign_in(app: &TestApp, email: &str) -> Reply {
    app.anonymous().post_json("/api/auth/signin", json!({ "emailId": email, "password": "Password124" })).await
}

#[tokio::test]
async fn an_account_takes_so_many_attempts_a_minute_and_others_are_not_concerned() {
    let mut config = config().await;
    config.auth.attempts_per_account_per_minute = 3;
    let app = TestApp::with(config).await;
    let buyer = app.buyer().await;
    for spelling in [buyer.email.clone(), buyer.email.to_uppercase(), buyer.email.clone()] {
        sign_in(&app, &spelling).await.refused(401, "bad_credentials");
    }
    let reply = sign_in(&app, &buyer.email).await;
    reply.refused(429, "rate_limited");
    let wait_s: u64 = reply.headers["retry-after"].parse().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    // Also with the right password; but a session that is there goes on, and so do others.
    let body = json!({ "emailId": buyer.email, "password": PASSWORD });
    app.anonymous().post_json("/api/auth/signin", body).await.refused(429, "rate_limited");
    buyer.get("/api/auth/check").await.expect(200);
    sign_in(&app, "somebody.else@example.com").await.refused(401, "bad_credentials");
    app.finish().await;
}

#[tokio::test]
async fn an_unknown_account_is_limited_like_a_known_one() {
    let mut config = config().await;
    config.auth.attempts_per_account_per_minute = 3;
    let app = TestApp::with(config).await;
    for _ in 0..3 {
        sign_in(&app, "nobody@example.com").await.refused(401, "bad_credentials");
    }
    sign_in(&app, "nobody@example.com").await.refused(429, "rate_limited");
    app.finish().await;
}

#[tokio::test]
async fn an_address_has_so_many_attempts_a_minute_and_a_header_counts_only_from_the_configured_proxy() {
    let mut config = config().await;
    config.auth.attempts_per_address_per_minute = 3;
    let app = TestApp::with(config.clone()).await;
    let from = |app: &TestApp, address: &str| {
        let request = app.anonymous().request(reqwest::Method::POST, "/api/auth/signin");
        let body = json!({ "emailId": format!("{}@example.com", uuid::Uuid::new_v4().simple()), "password": PASSWORD });
        crate::harness::Actor::send(request.header("x-real-ip", address.to_owned()).json(&body))
    };
    for number in 1..=3 {
        from(&app, &format!("192.0.2.{number}")).await.refused(401, "bad_credentials");
    }
    from(&app, "192.0.2.4").await.refused(429, "rate_limited");
    app.finish().await;

    config.server.client_ip_header = "x-real-ip".to_owned();
    let app = TestApp::with(config).await;
    for _ in 0..3 {
        from(&app, "192.0.2.1").await.refused(401, "bad_credentials");
    }
    from(&app, "192.0.2.1").await.refused(429, "rate_limited");
    from(&app, "192.0.2.2").await.refused(401, "bad_credentials");
    app.finish().await;
}

#[tokio::test]
async fn a_storm_of_sign_ins_is_turned_away_and_purchases_go_on() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    let mut config = app.config().clone();
    (config.auth.hash_workers, config.auth.hash_queue_max) = (1, 1);
    config.auth.bcrypt_cost = 12;
    config.live.purchase_deadline_ms = 5000;
    let busy = TestApp::with(config).await;

    let started = Instant::now();
    // For unknown addresses a hash is computed as well.
    let storm = async {
        let emails: Vec<String> = (0..8).map(|number| format!("nobody{number}@example.com")).collect();
        let replies = futures::future::join_all(emails.iter().map(|email| sign_in(&busy, email))).await;
        (replies, started.elapsed())
    };
    let purchase = async {
        let reply = busy.here(&buyer).post(&sale.purchase(0)).await;
        (reply, started.elapsed())
    };
    let ((replies, stormed), (bought, took)) = tokio::join!(storm, purchase);
    bought.expect(201);
    assert!(took < stormed, "the purchase waited for the passwords: {took:?} of {stormed:?}");
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status == 503).collect();
    let served = replies.iter().filter(|reply| reply.status == 401).count();
    assert!(!refused.is_empty() && served >= 1 && refused.len() + served == 8);
    for reply in refused {
        reply.refused(503, "overloaded");
        assert!(reply.headers.contains_key("retry-after"));
    }
    assert!(busy.running.stop().await);
    app.finish().await;
}
