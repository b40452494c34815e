//! Settlement: every reservation becomes one order, and nothing leaves the live store before.

use std::collections::{BTreeMap, HashMap, HashSet};

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::future::{join, join_all};
use orbit::domain::event::SalePhase;
use orbit::domain::ids::EventId;
use orbit::domain::sale::SaleStatus;
use orbit::error::Code;
use serde_json::json;

use super::{
    acknowledged, app_without_drains, assert_only_the_status_is_left, calm_app, command, contents, counts, database,
    event, event_id, live_store, ordered, phase, prepared_by, reserve_directly, seen_from, sorted, stock, tally,
    without_hurry,
};
use crate::harness::{self, LiveSale, TestApp, eventually};

const ENDED: &str = "sale ended \u{2014} all orders synced to database";
const KEPT: &str = "sale ended \u{2014} 1 reservations could not be settled and are kept for an operator";
const THIRTY_DAYS_S: i64 = 2_592_000;

/// Every booking of a sale, by its key.
async fn bookings(app: &TestApp, event: EventId) -> BTreeMap<String, HashMap<String, String>> {
    let mut connection = live_store(app.config()).await;
    let index = app.app().live().keys().bookings(event);
    let keys: Vec<String> = redis::cmd("SMEMBERS").arg(index).query_async(&mut connection).await.unwrap();
    let mut bookings = BTreeMap::new();
    for key in keys {
        let fields = redis::cmd("HGETALL").arg(&key).query_async(&mut connection).await.unwrap();
        bookings.insert(key, fields);
    }
    bookings
}

async fn status_ttl_s(app: &TestApp, sale: &LiveSale) -> i64 {
    let status = app.app().live().keys().status(event_id(sale));
    command(app.config(), &["TTL", &status]).await
}

async fn dead_letters(app: &TestApp, sale: &LiveSale) -> Vec<Document> {
    use futures::TryStreamExt;
    let letters = database(app).await.collection::<Document>("deadLetters");
    let which = doc! { "eventId": ObjectId::parse_str(&sale.event).unwrap() };
    letters.find(which).await.unwrap().try_collect().await.unwrap()
}

/// Takes the journal away: only the bookings know what was reserved.
async fn cut_journal(app: &TestApp, sale: &LiveSale) {
    let journal = app.app().live().keys().journal(event_id(sale));
    let _: u64 = command(app.config(), &["XTRIM", &journal, "MAXLEN", "0"]).await;
}

#[tokio::test]
async fn a_booking_that_was_damaged_costs_nothing_as_long_as_the_journal_knows_it() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 100).await;
    let made = reserve_directly(&app, &sale, 30).await;
    let keys: Vec<String> = bookings(&app, event_id(&sale)).await.into_keys().collect();
    let index = app.app().live().keys().bookings(event_id(&sale));
    let _: i64 = command(app.config(), &["HSET", &keys[0], "quantity", "many", "price", "-1"]).await;
    let _: i64 = command(app.config(), &["DEL", &keys[1]]).await;
    let _: () = command(app.config(), &["SET", &keys[2], "no hash at all"]).await;
    let _: i64 = command(app.config(), &["SREM", &index, &keys[3]]).await;

    assert_eq!(sale.control("End").await.expect(200), json!({ "message": ENDED, "orders": 30, "deadLetters": 0 }));

    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn one_booking_that_cannot_be_read_is_kept_and_the_others_become_orders() {
    let app = app_without_drains().await;
    let seller = app.approved_seller().await;
    /// What is done to the key, and what the record of it must still show.
    type Poison = (&'static [&'static str], Option<(&'static str, &'static str)>);
    let poisons: [Poison; 4] = [
        (&["HSET", "KEY", "quantity", "many"], Some(("quantity", "many"))),
        (&["HSET", "KEY", "price", "-5"], Some(("price", "-5"))),
        (&["HDEL", "KEY", "price"], Some(("status", "CONFIRMED"))),
        (&["SET", "KEY", "no hash at all"], None),
    ];
    for (poison, shown) in poisons {
        let sale = prepared_by(seller.clone(), 1, 1000).await;
        sale.control("Live").await.expect(200);
        let made = reserve_directly(&app, &sale, 200).await;
        cut_journal(&app, &sale).await;
        let all = bookings(&app, event_id(&sale)).await;
        let (key, fields) = all.iter().nth(77).unwrap();
        let words: Vec<&str> = poison.iter().map(|word| if *word == "KEY" { key.as_str() } else { word }).collect();
        let _: redis::Value = command(app.config(), &words).await;

        let ended = sale.control("End").await.expect(200);

        assert_eq!(ended, json!({ "message": KEPT, "orders": 199, "deadLetters": 1 }));
        let mut expected = sorted(made.clone());
        expected.retain(|id| *id != fields["reservationId"]);
        assert_eq!(ordered(app.app(), &sale).await, expected);
        let letters = dead_letters(&app, &sale).await;
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].get_str("key").unwrap(), key);
        assert!(!letters[0].get_str("reason").unwrap().is_empty());
        if let Some((field, value)) = shown {
            let raw = letters[0].get_document("raw").unwrap();
            assert_eq!(raw.get_str(field).unwrap(), value);
            assert_eq!(raw.get_str("userId").unwrap(), fields["userId"]);
        }
        assert_kept_for_an_operator(&app, &sale, key).await;
        repair_and_end_again(&app, &sale, key, fields, &made).await;
    }
    app.finish().await;
}

async fn assert_kept_for_an_operator(app: &TestApp, sale: &LiveSale, key: &str) {
    let left = app.app().live().scan_event_keys(event_id(sale)).await.unwrap();
    let booked: Vec<&String> = left.iter().filter(|key| key.contains("booking:")).collect();
    assert_eq!(booked, [key], "of the bookings only the broken one is kept");
    assert!(!left.iter().any(|key| key.contains("product:")), "{left:?}");
    assert_eq!(status_ttl_s(app, sale).await, -1, "the status stays as long as something waits");
    assert_eq!(phase(app.app(), sale).await, SalePhase::Stopped);
    sale.control("Live").await.refused(409, "transition_refused");
    let delete = format!("/api/seller/events/delete/{}", sale.event);
    sale.seller.delete(&delete).await.refused(409, "settlement_incomplete");
}

async fn repair_and_end_again(
    app: &TestApp,
    sale: &LiveSale,
    key: &str,
    fields: &HashMap<String, String>,
    made: &[String],
) {
    let _: redis::Value = command(app.config(), &["DEL", key]).await;
    let mut words = vec!["HSET", key];
    words.extend(fields.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
    let _: redis::Value = command(app.config(), &words).await;

    let ended = sale.control("End").await.expect(200);

    assert_eq!(ended, json!({ "message": ENDED, "orders": 200, "deadLetters": 0 }));
    assert_eq!(ordered(app.app(), sale).await, sorted(made.iter().cloned()));
    // A settlement in the background may have read the broken booking and say so late, but takes it back.
    eventually("no dead letter is left", || async { dead_letters(app, sale).await.is_empty() }).await;
    assert_only_the_status_is_left(app.app(), sale).await;
    let ttl = status_ttl_s(app, sale).await;
    assert!((THIRTY_DAYS_S - 600..=THIRTY_DAYS_S).contains(&ttl), "{ttl}");
    assert_eq!(phase(app.app(), sale).await, SalePhase::Settled);
    sale.assert_sound(app.app()).await;
}

#[tokio::test]
async fn a_dead_letter_of_a_booking_that_was_settled_meanwhile_does_not_stay() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 100).await;
    reserve_directly(&app, &sale, 3).await;
    let key = bookings(&app, event_id(&sale)).await.into_keys().next().unwrap();
    sale.control("End").await.expect(200);
    // As a slow settlement writes it, which read the booking before it was repaired.
    let (letters, now) = (&app.app().mongo().dead_letters, app.app().clock().now());
    letters.record(event_id(&sale), &key, "price is missing", &HashMap::new(), now).await.unwrap();
    assert_eq!(dead_letters(&app, &sale).await.len(), 1);

    assert_eq!(sale.control("End").await.expect(200), json!({ "message": ENDED, "orders": 3, "deadLetters": 0 }));

    assert_eq!(dead_letters(&app, &sale).await, Vec::<Document>::new());
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_booking_that_is_listed_but_gone_is_not_passed_over() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 100).await;
    reserve_directly(&app, &sale, 20).await;
    cut_journal(&app, &sale).await;
    let all = bookings(&app, event_id(&sale)).await;
    let (key, _) = all.first_key_value().unwrap();
    let _: i64 = command(app.config(), &["DEL", key]).await;

    let ended = sale.control("End").await.expect(200);

    assert_eq!((&ended["orders"], &ended["deadLetters"]), (&json!(19), &json!(1)));
    assert_eq!(dead_letters(&app, &sale).await.len(), 1);
    app.finish().await;
}

#[tokio::test]
async fn a_booking_that_no_index_lists_stops_the_settlement_before_anything_is_removed() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 100).await;
    let made = reserve_directly(&app, &sale, 20).await;
    cut_journal(&app, &sale).await;
    let (index, all) = (app.app().live().keys().bookings(event_id(&sale)), bookings(&app, event_id(&sale)).await);
    let lost = all.keys().next().unwrap();
    let _: i64 = command(app.config(), &["SREM", &index, lost]).await;

    sale.control("End").await.refused(503, "live_record_damaged");

    assert_eq!(phase(app.app(), &sale).await, SalePhase::Stopped);
    let left = app.app().live().scan_event_keys(event_id(&sale)).await.unwrap();
    assert_eq!(left.iter().filter(|key| key.contains("booking:")).count(), 20);
    let _: i64 = command(app.config(), &["SADD", &index, lost]).await;
    assert_eq!(sale.control("End").await.expect(200)["orders"], 20);
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

/// An application on a MongoDB of its own, whose absence it notices soon.
async fn app_on_own_mongo(recovery_interval_ms: u64) -> (orbit::supervisor::MongoServer, TestApp) {
    let mongo = harness::own_mongo().await;
    let mut config = harness::config().await;
    config.mongo.uri = mongo.uri().into();
    config.mongo.deadline_ms = 2_000;
    config.live.purchase_deadline_ms = 5_000;
    config.sale.recovery_interval_ms = recovery_interval_ms;
    // A batch that is settled while a test looks at the journal would change it.
    config.sale.drain_interval_ms = 600_000;
    (mongo, TestApp::with(config).await)
}

#[tokio::test]
async fn an_end_without_the_database_stops_the_sale_and_loses_nothing() {
    let (mut mongo, app) = app_on_own_mongo(600_000).await;
    let sale = app.live_sale(1, 1000).await;
    let made = reserve_directly(&app, &sale, 120).await;
    let stranger = app.seller().await;
    let status = app.app().live().keys().status(event_id(&sale));
    let mut before = contents(&app, &sale).await;
    mongo.kill().await;

    // Whose sale it is, the live store knows as well.
    stranger.post(&format!("/api/seller/events/{}/End", sale.event)).await.refused(404, "not_found");
    sale.control("Pause").await.expect(200);
    sale.control("End").await.refused(503, "database_unavailable");

    assert_eq!(app.app().live().status(event_id(&sale)).await.unwrap(), SaleStatus::Stopped);
    let mut after = contents(&app, &sale).await;
    assert!(after.remove(&status) != before.remove(&status) && after == before, "nothing but the status has changed");
    mongo.restart().await.unwrap();
    eventually("the database is back", || async { app.app().mongo().ping().await.is_ok() }).await;

    assert_eq!(sale.control("End").await.expect(200), json!({ "message": ENDED, "orders": 120, "deadLetters": 0 }));
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn an_end_that_the_database_interrupted_is_finished_without_a_second_one() {
    let (mut mongo, app) = app_on_own_mongo(200).await;
    let sale = app.live_sale(1, 1000).await;
    let made = reserve_directly(&app, &sale, 120).await;
    let known = event(app.app(), &sale).await;
    mongo.kill().await;
    assert_eq!(app.app().sale().end(&known).await.unwrap_err().code(), Code::DatabaseUnavailable);
    mongo.restart().await.unwrap();

    eventually("the sale is settled", || async {
        matches!(app.app().mongo().events.by_id(event_id(&sale)).await, Ok(Some(event)) if event.phase == SalePhase::Settled)
    })
    .await;
    eventually("only the status is left", || async {
        app.app().live().scan_event_keys(event_id(&sale)).await.unwrap().len() == 1
    })
    .await;
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn buyers_keep_buying_while_the_database_is_away() {
    let (mut mongo, app) = app_on_own_mongo(200).await;
    let sale = app.live_sale(1, 30).await;
    let buyers = app.buyers(40).await;
    let path = sale.purchase(0);
    let mut replies = join_all(buyers[..10].iter().map(|buyer| buyer.post(&path))).await;
    mongo.kill().await;

    replies.extend(join_all(buyers[10..].iter().map(|buyer| buyer.post(&path))).await);

    assert_eq!(tally(&replies), counts(&[("201", 30), ("sold_out", 10)]));
    mongo.restart().await.unwrap();
    eventually("the database is back", || async { app.app().mongo().ping().await.is_ok() }).await;
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    assert_eq!(ordered(app.app(), &sale).await, acknowledged(&replies));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn two_processes_that_settle_one_sale_page_by_page_do_not_take_each_others_work_for_loss() {
    let mut config = without_hurry(harness::config().await);
    config.sale.settle_page_size_max = 7;
    let app = TestApp::with(config).await;
    let second = app.second().await;
    let seller = app.approved_seller().await;
    for _ in 0..3 {
        let sale = prepared_by(seller.clone(), 1, 1000).await;
        sale.control("Live").await.expect(200);
        let made = reserve_directly(&app, &sale, 250).await;
        let there = seen_from(&sale, &second);

        let (one, other) = join(sale.control("End"), there.control("End")).await;

        for reply in [one, other] {
            assert_eq!(reply.expect(200), json!({ "message": ENDED, "orders": 250, "deadLetters": 0 }));
        }
        assert_eq!(dead_letters(&app, &sale).await, Vec::<Document>::new());
        assert_eq!(ordered(app.app(), &sale).await, sorted(made));
        assert_only_the_status_is_left(app.app(), &sale).await;
        sale.assert_sound(app.app()).await;
    }
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_reservation_id_is_never_used_twice() {
    let app = calm_app().await;
    let seller = app.approved_seller().await;
    let buyers = app.buyers(5).await;
    let mut replies = Vec::new();
    for _ in 0..3 {
        let sale = prepared_by(seller.clone(), 2, 10).await;
        sale.control("Live").await.expect(200);
        for product in 0..2 {
            let path = sale.purchase(product);
            replies.extend(join_all(buyers.iter().map(|buyer| buyer.post(&path))).await);
        }
        sale.control("End").await.expect(200);
        sale.assert_sound(app.app()).await;
    }
    let ids = acknowledged(&replies);
    assert_eq!(ids.len(), 30);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 30);
    let mine = buyers[0].get("/api/buyer/orders").await.expect(200);
    assert_eq!(mine["orders"].as_array().unwrap().len(), 6);
    app.finish().await;
}

#[tokio::test]
async fn a_reservation_can_be_looked_up_during_the_sale_and_after_it() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 10).await;
    let (buyer, other) = (app.buyer().await, app.buyer().await);
    let made = buyer.post(&sale.purchase(0)).await.expect(201);
    let path = format!("/api/buyer/event/{}/reservation/{}", sale.event, sale.products[0]);
    for action in ["Pause", "End"] {
        assert_eq!(buyer.get(&path).await.expect(200)["reservation"], made);
        other.get(&path).await.refused(404, "not_found");
        sale.control(action).await.expect(200);
    }
    assert_eq!(buyer.get(&path).await.expect(200)["reservation"], made);
    app.finish().await;
}

#[tokio::test]
async fn five_thousand_bookings_settle_exactly_in_small_pages() {
    let mut config = without_hurry(harness::config().await);
    config.sale.settle_page_size_max = 100;
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, 6_000).await;
    let made = reserve_directly(&app, &sale, 5_000).await;
    assert_eq!(stock(&app, &sale, 0).await, 1_000);
    sale.assert_sound(app.app()).await;

    assert_eq!(sale.control("End").await.expect(200), json!({ "message": ENDED, "orders": 5_000, "deadLetters": 0 }));

    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn only_confirmed_orders_are_revenue() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 10).await;
    reserve_directly(&app, &sale, 3).await;
    sale.control("End").await.expect(200);
    let id = |text: &str| ObjectId::parse_str(text).unwrap();
    for (status, quantity) in [("PENDING_PAYMENT", 2_i64), ("CANCELLED", 3)] {
        let order = doc! {
            "reservationId": format!("raw-{status}"), "userId": ObjectId::new(), "productId": id(&sale.products[0]),
            "eventId": id(&sale.event), "quantity": quantity, "priceMinor": 19_999_i64, "currency": "INR",
            "status": status, "createdAt": DateTime::now(), "updatedAt": DateTime::now(),
        };
        database(&app).await.collection::<Document>("orders").insert_one(order).await.unwrap();
    }

    let path = format!("/api/seller/events/booking/analytics/{}", sale.event);
    let analytics = sale.seller.get(&path).await.expect(200)["analytics"].clone();

    assert_eq!(analytics["totalRevenueMinor"], 3 * 19_999);
    assert_eq!(analytics["totalRevenue"], 599.97);
    assert_eq!(analytics["unitsSold"], 3);
    assert_eq!(analytics["totalOrders"], 5);
    assert_eq!(analytics["statusBreakdown"], json!({ "CONFIRMED": 3, "PENDING_PAYMENT": 1, "CANCELLED": 1 }));
    app.finish().await;
}
