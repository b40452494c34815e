//! Cancelling: the units go back to stock exactly once, and the buyer's place with them, whoever cancels and when.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use orbit::store::mongo::events::PlanChange;
use reqwest::Method;
use serde_json::{Value, json};

use super::{agree, calm_app, command, prepared, stock, tally, without_hurry};
use crate::harness::{self, Actor, LiveSale, Reply, TestApp, eventually};

/// A live sale of a product of which one buyer may have three.
async fn sale_of_three(app: &TestApp, plan: PlanChange) -> LiveSale {
    let mut sale = prepared(app, 0, 0).await;
    let text = [
        ("title", "Tickets"),
        ("description", "Several for one buyer"),
        ("price", "10.50"),
        ("frequency", "10"),
        ("perBuyerLimit", "3"),
    ];
    let file = Some(("image", crate::harness::pictures::jpeg(64, 64)));
    let path = format!("/api/seller/events/{}/registerProducts", sale.event);
    let added = sale.seller.form(Method::POST, &path, &text, file).await.expect(201);
    sale.products.push(added["productId"].as_str().unwrap().to_owned());
    agree(app.app(), &sale, plan).await;
    sale.control("Live").await.expect(200);
    sale
}

fn own(sale: &LiveSale) -> String {
    format!("/api/buyer/event/{}/reservation/{}", sale.event, sale.products[0])
}

async fn buy(sale: &LiveSale, buyer: &Actor, quantity: u32) -> String {
    let bought = buyer.post_json(&sale.purchase(0), json!({ "quantity": quantity })).await.expect(201);
    bought["reservationId"].as_str().unwrap().to_owned()
}

async fn cancel(sale: &LiveSale, buyer: &Actor) -> Reply {
    buyer.post(&format!("{}/cancel", own(sale))).await
}

/// Cancels a part, under a key.
async fn give_back(sale: &LiveSale, buyer: &Actor, quantity: Value, key: &str) -> Reply {
    let request = buyer.request(Method::POST, &format!("{}/cancel", own(sale)));
    Actor::send(request.header("idempotency-key", key).json(&json!({ "quantity": quantity }))).await
}

#[tokio::test]
async fn fifty_cancellations_of_three_units_bring_three_units_back() {
    let app = calm_app().await;
    let sale = sale_of_three(&app, PlanChange::default()).await;
    let buyer = app.buyer().await;
    buy(&sale, &buyer, 3).await;
    assert_eq!(stock(&app, &sale, 0).await, 7);
    let replies = join_all((0..50).map(|_| cancel(&sale, &buyer))).await;
    assert_eq!(tally(&replies)["200"], 50);
    assert_eq!(stock(&app, &sale, 0).await, 10);
    sale.assert_sound(app.app()).await;
    // The place is free again, and the units are on sale.
    buy(&sale, &buyer, 2).await;
    assert_eq!(stock(&app, &sale, 0).await, 8);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    let orders = sale.orders().await;
    let mut states: Vec<_> = orders.iter().map(|order| order["status"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["CANCELLED", "CONFIRMED"]);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_part_is_returned_once_for_each_key_and_the_rest_with_the_whole() {
    let app = calm_app().await;
    let sale = sale_of_three(&app, PlanChange::default()).await;
    let buyer = app.buyer().await;
    buy(&sale, &buyer, 3).await;
    let replies = join_all((0..10).map(|_| give_back(&sale, &buyer, json!(1), "first"))).await;
    // The same answer for each of them, or that the first one is still at work.
    let told = tally(&replies);
    let in_progress = told.get("idempotency_in_progress").copied().unwrap_or_default();
    assert_eq!(told["200"] + in_progress, 10, "{told:?}");
    assert_eq!(stock(&app, &sale, 0).await, 8);
    give_back(&sale, &buyer, json!(3), "too-many").await.refused(409, "nothing_to_return");
    let path = format!("{}/cancel", own(&sale));
    buyer.post_json(&path, json!({ "quantity": 1 })).await.refused(400, "validation_failed");
    let rubbish = [json!(0), json!(-1), json!(1.5), json!("1"), json!(9_007_199_254_740_992_u64)];
    for (number, quantity) in rubbish.into_iter().enumerate() {
        let refused = give_back(&sale, &buyer, quantity.clone(), &format!("rubbish-{number}")).await;
        assert_eq!(refused.status, 400, "{quantity}: {}", refused.body);
    }
    give_back(&sale, &buyer, json!(1), "second").await.expect(200);
    // A part, another part, the first one again, and the whole: three units in all.
    give_back(&sale, &buyer, json!(1), "first").await.expect(200);
    cancel(&sale, &buyer).await.expect(200);
    cancel(&sale, &buyer).await.expect(200);
    assert_eq!(stock(&app, &sale, 0).await, 10);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn buyer_seller_and_administrator_cancel_the_same_order_and_nobody_elses() {
    let app = calm_app().await;
    let sale = sale_of_three(&app, PlanChange::default()).await;
    let (buyer, other, admin) = (app.buyer().await, app.buyer().await, app.admin().await);
    let (stranger, id) = (app.approved_seller().await, buy(&sale, &buyer, 2).await);
    let by_seller = format!("/api/seller/events/{}/orders/{id}/cancel", sale.event);
    let by_admin = format!("/api/admin/orders/{id}/cancel");
    cancel(&sale, &other).await.refused(404, "not_found");
    stranger.post(&by_seller).await.refused(404, "not_found");
    let theirs = stranger.create_event("Theirs").await;
    eventually("the order is known", || async { !sale.orders().await.is_empty() }).await;
    stranger.post(&format!("/api/seller/events/{theirs}/orders/{id}/cancel")).await.refused(404, "not_found");
    assert_eq!(stock(&app, &sale, 0).await, 8);

    let part = admin.request(Method::POST, &by_admin).header("idempotency-key", "a").json(&json!({ "quantity": 1 }));
    Actor::send(part).await.expect(200);
    let replies =
        join_all([sale.seller.post(&by_seller), admin.post(&by_admin), buyer.post(&format!("{}/cancel", own(&sale)))])
            .await;
    assert_eq!(tally(&replies)["200"], 3);
    assert_eq!(stock(&app, &sale, 0).await, 10);
    sale.assert_sound(app.app()).await;
    let audit = app.app().mongo().audit.of_event(super::event_id(&sale), 10).await.unwrap();
    assert_eq!(audit.iter().filter(|entry| entry.kind == "cancelled_by_administrator").count(), 2);
    app.finish().await;
}

#[tokio::test]
async fn after_settlement_a_cancellation_changes_the_order_and_nothing_else() {
    let app = calm_app().await;
    let sale = sale_of_three(&app, PlanChange::default()).await;
    let buyer = app.buyer().await;
    buy(&sale, &buyer, 3).await;
    sale.control("End").await.expect(200);
    give_back(&sale, &buyer, json!(1), "part").await.expect(200);
    give_back(&sale, &buyer, json!(1), "part").await.expect(200);
    let sums = |body: Value| (body["analytics"]["unitsSold"].clone(), body["analytics"]["totalRevenueMinor"].clone());
    let analytics = format!("/api/seller/events/booking/analytics/{}", sale.event);
    assert_eq!(sums(sale.seller.get(&analytics).await.expect(200)), (json!(2), json!(2_100)));
    let replies = join_all((0..20).map(|_| cancel(&sale, &buyer))).await;
    assert_eq!(tally(&replies)["200"], 20);
    let orders = sale.orders().await;
    assert_eq!((orders.len(), &orders[0]["status"]), (1, &json!("CANCELLED")));
    assert_eq!(sums(sale.seller.get(&analytics).await.expect(200)), (json!(0), json!(0)));
    super::assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_cancels_until_the_agreed_moment_and_the_seller_after_it() {
    let app = calm_app().await;
    let past: DateTime<Utc> = "2020-01-01T00:00:00Z".parse().unwrap();
    let sale = sale_of_three(&app, PlanChange { cancel_until: Some(Some(past)), ..PlanChange::default() }).await;
    let buyer = app.buyer().await;
    let id = buy(&sale, &buyer, 1).await;
    cancel(&sale, &buyer).await.refused(409, "cancellation_closed");
    assert_eq!(stock(&app, &sale, 0).await, 9);
    eventually("the seller can", || async {
        sale.seller.post(&format!("/api/seller/events/{}/orders/{id}/cancel", sale.event)).await.status == 200
    })
    .await;
    assert_eq!(stock(&app, &sale, 0).await, 10);
    app.finish().await;
}

#[tokio::test]
async fn where_a_refund_keeps_the_place_the_buyer_does_not_reserve_again() {
    let app = calm_app().await;
    let sale = sale_of_three(&app, PlanChange { refund_keeps_slot: Some(true), ..PlanChange::default() }).await;
    let buyer = app.buyer().await;
    buy(&sale, &buyer, 1).await;
    cancel(&sale, &buyer).await.expect(200);
    assert_eq!(stock(&app, &sale, 0).await, 10);
    buyer.post(&sale.purchase(0)).await.refused(409, "already_booked");
    sale.assert_sound(app.app()).await;

    // What was never paid is no refund: its place comes back.
    let plan = PlanChange { refund_keeps_slot: Some(true), payment_window_s: Some(600), ..PlanChange::default() };
    let sale = sale_of_three(&app, plan).await;
    buy(&sale, &buyer, 1).await;
    cancel(&sale, &buyer).await.expect(200);
    buy(&sale, &buyer, 1).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_key_that_made_a_reservation_makes_no_other_one() {
    let app = calm_app().await;
    let sale = sale_of_three(&app, PlanChange::default()).await;
    let buyer = app.buyer().await;
    let ask = |quantity: u32| {
        let request = buyer.request(Method::POST, &sale.purchase(0)).header("idempotency-key", "one");
        Actor::send(request.json(&json!({ "quantity": quantity })))
    };
    let made = ask(2).await.expect(201);
    assert_eq!(ask(2).await.expect(201)["reservationId"], made["reservationId"]);
    ask(1).await.refused(422, "idempotency_key_reused");
    assert_eq!(stock(&app, &sale, 0).await, 8);
    app.finish().await;
}

#[tokio::test]
async fn while_redis_has_no_memory_nothing_is_released_and_all_of_it_is_when_there_is_some_again() {
    let (redis, mut config) = (harness::own_redis().await, without_hurry(harness::config().await));
    config.live.url = redis.url().into();
    let app = TestApp::with(config).await;
    let sale = sale_of_three(&app, PlanChange::default()).await;
    let buyer = app.buyer().await;
    buy(&sale, &buyer, 3).await;
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "1mb"]).await;
    cancel(&sale, &buyer).await.refused(503, "live_store_unavailable");
    assert_eq!(stock(&app, &sale, 0).await, 7);
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "0"]).await;
    cancel(&sale, &buyer).await.expect(200);
    assert_eq!(stock(&app, &sale, 0).await, 10);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
