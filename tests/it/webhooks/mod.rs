//! Webhooks: what sellers are told, and what becomes of it when endpoints and processes misbehave.

mod delivery;
mod endpoints;
mod failures;
mod receiver;
mod secure;

use std::sync::Arc;

use orbit::config::Config;
use orbit::domain::page::Page;
use orbit::domain::webhook::{Delivery, Webhook};
use serde_json::{Value, json};

use crate::harness::{self, Actor, LiveSale, TestApp, TestClock};
use receiver::Receiver;

/// An application whose time the test moves.
async fn app_with_clock(adjust: impl FnOnce(&mut Config)) -> (TestApp, Arc<TestClock>) {
    let mut config = harness::config().await;
    // A busy machine is slow to answer.
    config.mongo.deadline_ms = 30_000;
    adjust(&mut config);
    let clock = Arc::new(TestClock::default());
    (TestApp::with_clock(config, Arc::clone(&clock) as _).await, clock)
}

/// A webhook as its seller has registered it.
struct Registered {
    id: String,
    secret: String,
    seller: Actor,
}

impl Registered {
    fn path(&self, rest: &str) -> String {
        format!("/api/seller/webhooks/{}{rest}", self.id)
    }

    /// As the service knows it.
    async fn webhook(&self, app: &TestApp) -> Webhook {
        app.app().webhooks().webhook(self.seller.id.parse().unwrap(), self.id.parse().unwrap()).await.unwrap()
    }

    /// What was sent to it, newest first.
    async fn deliveries(&self, app: &TestApp) -> Vec<Delivery> {
        let page = Page { limit: 1_000, after: None };
        app.app().webhooks().deliveries(&self.webhook(app).await, page).await.unwrap().items
    }
}

async fn register(seller: &Actor, receiver: &Receiver, kinds: &[&str]) -> Registered {
    let body = json!({ "url": receiver.url(), "eventTypes": kinds });
    let created = seller.post_json("/api/seller/webhooks", body).await.expect(201);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Registered { id: text(&created["webhook"]["id"]), secret: text(&created["secret"]), seller: seller.clone() }
}

/// A sale that is ready to be opened.
async fn prepared(seller: &Actor, units: u32) -> LiveSale {
    let event = seller.create_event("Spring drop").await;
    let product = seller.add_product(&event, "A product", "199.99", units).await;
    LiveSale { seller: seller.clone(), event, products: vec![product] }
}

/// A message of its own for each: a sale that nobody buys from is opened, and its opening told.
async fn tell_openings(seller: &Actor, count: usize) {
    for _ in 0..count {
        prepared(seller, 1).await.control("Live").await.expect(200);
    }
}
