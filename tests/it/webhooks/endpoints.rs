//! Endpoints and their secrets.

use bson::Document;
use orbit::config::ExposeSecret;
use orbit::domain::webhook::DeliveryState;
use serde_json::json;

use super::receiver::{Behave, Receiver};
use super::{app_with_clock, register, tell_openings};
use crate::harness::{TestApp, eventually};

#[tokio::test]
async fn a_secret_is_shown_once_and_rests_sealed() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    let webhook = register(&seller, &receiver, &["sale.opened", "sale.ended"]).await;
    assert!(webhook.secret.starts_with("whsec_"));

    let shown = seller.get(&webhook.path("")).await.expect(200);
    let listed = seller.get("/api/seller/webhooks").await.expect(200);

    assert_eq!(shown["webhook"], listed["webhooks"][0]);
    assert_eq!(shown["webhook"]["eventTypes"], json!(["sale.opened", "sale.ended"]));
    assert_eq!((&shown["webhook"]["url"], &shown["webhook"]["state"]), (&json!(receiver.url()), &json!("ENABLED")));
    let secret = webhook.secret.strip_prefix("whsec_").unwrap();
    assert!(!shown.to_string().contains(secret) && !listed.to_string().contains(secret));
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    let rows = client.database(&app.config().mongo.database).collection::<Document>("webhookEndpoints");
    let stored = rows.find_one(bson::doc! {}).await.unwrap().unwrap();
    assert!(!stored.to_string().contains(secret), "{stored}");
    app.finish().await;
}

#[tokio::test]
async fn during_a_rotation_both_secrets_sign_and_after_it_the_new_one_alone() {
    let (app, clock) = app_with_clock(|config| config.webhooks.rotation_overlap_s = 600).await;
    let seller = app.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;

    let rotated = seller.post(&webhook.path("/secrets")).await.expect(201);
    let new = rotated["secret"].as_str().unwrap();
    assert_ne!(new, webhook.secret);
    assert!(rotated["webhook"]["previousSecretUntil"].is_string());
    tell_openings(&seller, 1).await;

    let both = receiver.until(1).await.remove(0);
    assert_eq!(both.signatures().len(), 2);
    assert!(both.signed_with(new) && both.signed_with(&webhook.secret));
    clock.advance(601);
    tell_openings(&seller, 1).await;
    let single = receiver.until(2).await.remove(1);
    assert_eq!(single.signatures().len(), 1);
    assert!(single.signed_with(new) && !single.signed_with(&webhook.secret));
    app.finish().await;
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_when_it_is_registered_and_at_each_attempt() {
    // Registered while it was allowed, by a process that sends nothing itself.
    let (lax, _) = app_with_clock(|config| config.webhooks.poll_interval_ms = 600_000).await;
    let seller = lax.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;
    let mut config = lax.config().clone();
    config.webhooks.allow_private = false;
    config.webhooks.poll_interval_ms = 50;
    let strict = TestApp::with(config).await;

    let addresses =
        [&*receiver.url(), "https://localhost/", "https://[::1]/", "https://2130706433/", "ftp://a.example/"];
    for url in addresses.into_iter().chain(["https://user:pass@shop.example/", "shop.example", ""]) {
        let reply = strict.here(&seller).post_json("/api/seller/webhooks", json!({ "url": url })).await;
        reply.refused(400, "validation_failed");
        assert_eq!(reply.body["fields"][0]["field"], "url", "{url}");
    }
    tell_openings(&seller, 1).await;

    let recorded = || async { webhook.deliveries(&strict).await.first().is_some_and(|one| !one.log.is_empty()) };
    eventually("the attempt is recorded", recorded).await;
    let delivery = webhook.deliveries(&strict).await.remove(0);
    assert_eq!(delivery.state, DeliveryState::Pending);
    assert_eq!(delivery.log[0].error.as_deref(), Some("the address must be a public address"));
    assert!(receiver.received().is_empty());
    assert!(strict.running.stop().await);
    lax.finish().await;
}

#[tokio::test]
async fn a_seller_has_a_limited_number_of_webhooks_and_names_types_that_there_are() {
    let mut config = crate::harness::config().await;
    config.webhooks.endpoints_per_seller_max = 2;
    let app = TestApp::with(config).await;
    let seller = app.seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    let unknown = json!({ "url": receiver.url(), "eventTypes": ["sale.paused"] });
    seller.post_json("/api/seller/webhooks", unknown).await.refused(400, "validation_failed");
    let first = register(&seller, &receiver, &[]).await;
    register(&seller, &receiver, &[]).await;

    let third = json!({ "url": receiver.url() });
    seller.post_json("/api/seller/webhooks", third.clone()).await.refused(409, "webhook_limit_reached");

    seller.delete(&first.path("")).await.expect(200);
    seller.get(&first.path("")).await.refused(404, "not_found");
    seller.post_json("/api/seller/webhooks", third).await.expect(201);
    app.finish().await;
}
