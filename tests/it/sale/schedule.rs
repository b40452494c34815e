//! Sales that open and end by themselves, by the clock of the live store.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use orbit::app::App;
use orbit::config::Config;
use orbit::domain::clock::Clock;
use orbit::domain::event::SalePhase;
use orbit::domain::sale::{SaleAction, SaleStatus};
use orbit::store::live::{OpeningToken, Transitioned};
use serde_json::{Value, json};

use super::{command, contents, event_id, phase, prepared, prepared_by, seen_from, without_hurry};
use crate::harness::{self, LiveSale, TestApp, business, eventually};

/// A clock that is wrong by this much.
struct WrongBy(chrono::Duration);

impl Clock for WrongBy {
    #[expect(clippy::disallowed_methods, reason = "a clock of the test's own")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + self.0
    }
}

async fn config_that_looks_every(ms: u64) -> Config {
    let mut config = without_hurry(harness::config().await);
    config.sale.schedule_interval_ms = ms;
    config
}

/// An application that keeps the schedule closely.
async fn punctual_app() -> TestApp {
    TestApp::with(config_that_looks_every(50).await).await
}

/// An application that never looks at the schedule.
async fn idle_app() -> TestApp {
    TestApp::with(config_that_looks_every(3_600_000).await).await
}

/// The live store's time, so long from now.
async fn in_ms(app: &TestApp, ms: i64) -> DateTime<Utc> {
    app.app().sale().live_now().await.unwrap() + chrono::Duration::milliseconds(ms)
}

async fn plan(sale: &LiveSale, plan: Value) -> Value {
    sale.seller.put_json(&format!("/api/seller/events/update/{}", sale.event), plan).await.expect(200)
}

async fn status(sale: &LiveSale) -> Value {
    sale.seller.get(&format!("/api/seller/events/{}/saleStatus", sale.event)).await.expect(200)
}

async fn until_it_is(sale: &LiveSale, wanted: &str) {
    eventually(&format!("the sale is {wanted}"), || async { status(sale).await["status"] == wanted }).await;
}

#[tokio::test]
async fn a_sale_opens_by_itself_once_whoever_looks() {
    let app = punctual_app().await;
    let second = app.second().await;
    let sale = prepared(&app, 3, 2).await;
    let opens = in_ms(&app, 1_000).await;
    plan(&sale, json!({ "scheduledAt": opens, "autoOpen": true })).await;
    assert_eq!(status(&sale).await["status"], "NOT_STARTED");

    until_it_is(&sale, "LIVE").await;

    assert!(in_ms(&app, 0).await >= opens);
    let (buyer, again) = (app.buyer().await, app.buyer().await);
    let there = seen_from(&sale, &second);
    buyer.post(&sale.purchase(0)).await.expect(201);
    second.here(&again).post(&there.purchase(0)).await.expect(201);
    // Both go on looking; neither opens it again, which would bring the stock back.
    eventually("the phase is LIVE", || async { phase(app.app(), &sale).await == SalePhase::Live }).await;
    assert_eq!(sale.available(&buyer, 0).await, 0);
    assert_eq!(status(&sale).await["products"], 3);
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

/// Keeps the schedule in a process whose clock is wrong, and in no other, and says when the sale opened by the clock that
/// decides.
async fn opened_by_a_process_that_is_ahead(ahead: chrono::Duration) {
    let app = idle_app().await;
    let sale = prepared(&app, 1, 1).await;
    let opens = in_ms(&app, 1_500).await;
    plan(&sale, json!({ "scheduledAt": opens, "autoOpen": true })).await;
    let wrong = config_like(&app, 20);
    let wrong = Arc::new(App::connect_with_clock(wrong, Arc::new(WrongBy(ahead))).await.unwrap());
    wrong.tasks().spawn(Arc::clone(wrong.sale()).keep_schedule(wrong.tasks().clone()));

    let live = app.app().live();
    loop {
        let status = live.status(event_id(&sale)).await.unwrap();
        let now = in_ms(&app, 0).await;
        if status == SaleStatus::Live {
            assert!(now >= opens, "open at {now}, scheduled at {opens}");
            break;
        }
        assert!(now < opens + chrono::Duration::seconds(10), "it never opened");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(wrong.tasks().stop(Duration::from_secs(10)).await);
    app.finish().await;
}

fn config_like(app: &TestApp, interval_ms: u64) -> Config {
    let mut config = app.config().clone();
    config.sale.schedule_interval_ms = interval_ms;
    config
}

#[tokio::test]
async fn a_process_that_is_five_seconds_ahead_opens_nothing_early() {
    opened_by_a_process_that_is_ahead(chrono::Duration::seconds(5)).await;
}

#[tokio::test]
async fn a_process_that_is_a_day_ahead_opens_nothing_early() {
    opened_by_a_process_that_is_ahead(chrono::Duration::days(1)).await;
}

#[tokio::test]
async fn the_flip_itself_waits_for_its_moment() {
    let app = idle_app().await;
    let sale = prepared(&app, 1, 1).await;
    let (live, event, token) = (app.app().live(), event_id(&sale), OpeningToken::random());
    assert!(live.take_opening(event, &token, 20_000).await.unwrap());
    let flip = async |at: DateTime<Utc>| {
        let at = Some(at.timestamp_millis());
        live.transition_not_before(event, SaleAction::Live, Some(&token), at).await.unwrap()
    };
    let before = contents(&app, &sale).await;
    assert_eq!(flip(in_ms(&app, 60_000).await).await, Transitioned::TooEarly(SaleStatus::NotStarted));
    assert_eq!(contents(&app, &sale).await, before);
    assert_eq!(flip(in_ms(&app, 0).await).await, Transitioned::Changed(SaleStatus::NotStarted));
    let end = async |at: DateTime<Utc>| {
        live.transition_not_before(event, SaleAction::End, None, Some(at.timestamp_millis())).await.unwrap()
    };
    assert_eq!(end(in_ms(&app, 60_000).await).await, Transitioned::TooEarly(SaleStatus::Live));
    assert_eq!(end(in_ms(&app, 0).await).await, Transitioned::Changed(SaleStatus::Live));
    app.finish().await;
}

#[tokio::test]
async fn a_running_and_a_paused_sale_end_by_themselves_and_are_settled() {
    let app = punctual_app().await;
    let second = app.second().await;
    let (running, paused) = (prepared(&app, 1, 5).await, prepared(&app, 1, 5).await);
    let buyer = app.buyer().await;
    let ends = in_ms(&app, 3_000).await;
    for sale in [&running, &paused] {
        plan(sale, json!({ "scheduledAt": in_ms(&app, 0).await, "endsAt": ends })).await;
        sale.control("Live").await.expect(200);
        buyer.post(&sale.purchase(0)).await.expect(201);
    }
    paused.control("Pause").await.expect(200);
    for sale in [&running, &paused] {
        eventually("the sale is settled", || async { phase(app.app(), sale).await == SalePhase::Settled }).await;
        assert!(in_ms(&app, 0).await >= ends);
        assert_eq!(status(sale).await["status"], "STOPPED");
        assert_eq!(sale.orders().await.len(), 1);
        buyer.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        sale.assert_sound(app.app()).await;
    }
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn from_its_end_on_a_sale_sells_nothing_although_no_process_ends_it() {
    let app = idle_app().await;
    let sale = prepared(&app, 1, 5).await;
    let (early, late) = (app.buyer().await, app.buyer().await);
    let ends = in_ms(&app, 2_500).await;
    plan(&sale, json!({ "scheduledAt": in_ms(&app, 0).await, "endsAt": ends })).await;
    sale.control("Live").await.expect(200);
    early.post(&sale.purchase(0)).await.expect(201);
    eventually("the end has come", || async { in_ms(&app, 0).await >= ends }).await;
    let refused = late.post(&sale.purchase(0)).await;
    refused.refused(409, "sale_not_active");
    assert_eq!(refused.body["currentStatus"], "STOPPED");
    // Nobody has stopped it yet; whoever looks next does.
    let status: String = command(app.config(), &["GET", &app.app().live().keys().status(event_id(&sale))]).await;
    assert_eq!(status, "LIVE");
    app.app().sale().schedule_round(app.app().tasks()).await.unwrap();
    eventually("the sale is settled", || async { phase(app.app(), &sale).await == SalePhase::Settled }).await;
    app.finish().await;
}

#[tokio::test]
async fn opening_by_hand_before_the_moment_is_allowed_and_the_schedule_has_nothing_left_to_do() {
    let app = punctual_app().await;
    let sale = prepared(&app, 1, 1).await;
    let buyer = app.buyer().await;
    let opens = in_ms(&app, 1_500).await;
    plan(&sale, json!({ "scheduledAt": opens, "autoOpen": true })).await;
    sale.control("Live").await.expect(200);
    assert!(in_ms(&app, 0).await < opens, "the test was too slow to show anything");
    buyer.post(&sale.purchase(0)).await.expect(201);
    eventually("the moment has come", || async { in_ms(&app, -500).await >= opens }).await;
    let view = status(&sale).await;
    assert_eq!((&view["status"], &view["reservations"]), (&json!("LIVE"), &json!(1)));
    assert!(view["schedule"].get("problem").is_none(), "{view}");
    assert_eq!(sale.available(&buyer, 0).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn a_sale_that_its_seller_may_not_open_says_why_and_opens_once_that_is_mended() {
    let app = punctual_app().await;
    let sale = prepared_by(app.seller().await, 0, 0).await;
    sale.seller.post_json("/api/seller/verify", business()).await.expect(200);
    plan(&sale, json!({ "scheduledAt": in_ms(&app, 0).await, "autoOpen": true })).await;
    let problem = async || status(&sale).await["schedule"]["problem"].clone();
    eventually("the reason is shown", || async { problem().await["code"] == "not_approved" }).await;
    assert!(problem().await["message"].as_str().unwrap().contains("approve"));
    assert_eq!(status(&sale).await["status"], "NOT_STARTED");

    let admin = app.admin().await;
    let pending = admin.get("/api/admin/verifications/pending").await.expect(200);
    let id = pending["verifications"][0]["id"].as_str().unwrap();
    admin.post(&format!("/api/admin/verifications/{id}/approve")).await.expect(200);
    eventually("the next reason is shown", || async { problem().await["code"] == "no_products" }).await;
    sale.seller.add_product(&sale.event, "A product", "10", 1).await;
    until_it_is(&sale, "LIVE").await;
    assert_eq!(problem().await, Value::Null);
    app.finish().await;
}

#[tokio::test]
async fn a_sale_whose_end_has_passed_is_opened_by_nobody() {
    let app = idle_app().await;
    let sale = prepared(&app, 1, 1).await;
    let ends = in_ms(&app, 1_000).await;
    plan(&sale, json!({ "scheduledAt": in_ms(&app, 0).await, "endsAt": ends, "autoOpen": true })).await;
    eventually("the end has come", || async { in_ms(&app, 0).await >= ends }).await;
    let (sales, tasks) = (app.app().sale(), app.app().tasks());
    sales.schedule_round(tasks).await.unwrap();
    assert_eq!(status(&sale).await["status"], "NOT_STARTED");
    sale.control("Live").await.refused(409, "ends_at_passed");
    assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft);
    // A new plan, and it opens.
    plan(&sale, json!({ "endsAt": "" })).await;
    sales.schedule_round(tasks).await.unwrap();
    until_it_is(&sale, "LIVE").await;
    app.finish().await;
}

#[tokio::test]
async fn only_what_is_due_is_read() {
    let app = idle_app().await;
    let due = prepared(&app, 1, 1).await;
    let seller = || due.seller.clone();
    let (by_hand, later) = (prepared_by(seller(), 0, 0).await, prepared_by(seller(), 0, 0).await);
    let now = in_ms(&app, 0).await;
    plan(&due, json!({ "scheduledAt": now, "autoOpen": true, "endsAt": in_ms(&app, 600_000).await })).await;
    plan(&by_hand, json!({ "scheduledAt": now })).await;
    plan(&later, json!({ "scheduledAt": in_ms(&app, 600_000).await, "autoOpen": true })).await;
    let events = &app.app().mongo().events;
    let ids = |events: Vec<orbit::domain::event::Event>| events.into_iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(events.due_to_open(now, 10).await.unwrap()), [event_id(&due)]);
    assert_eq!(ids(events.due_to_open(now + chrono::Duration::days(8), 10).await.unwrap()), []);
    due.control("Live").await.expect(200);
    assert_eq!(ids(events.due_to_open(now, 10).await.unwrap()), []);
    assert_eq!(ids(events.due_to_end(now, 10).await.unwrap()), []);
    let then = in_ms(&app, 600_001).await;
    assert_eq!(ids(events.due_to_end(then, 10).await.unwrap()), [event_id(&due)]);
    app.finish().await;
}
