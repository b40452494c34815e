//! A live store that lost a sale, or a part of one: it is noticed, nobody can buy meanwhile, what is durable is given back,
//! and the seller resumes.

use std::time::Duration;

use futures::future::join_all;
use orbit::domain::event::SalePhase;
use orbit::domain::sale::SaleStatus;
use orbit::supervisor::RedisServer;
use serde_json::json;

use super::{
    assert_only_the_status_is_left, command, counts, event_id, ordered, phase, product_id, reservation_of,
    reserve_directly, sorted, stock, tally, without_hurry,
};
use crate::harness::proxy::Proxy;
use crate::harness::{self, Actor, LiveSale, TestApp, eventually};

async fn calm_app_on(url: String) -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.live.url = url.into();
    TestApp::with(config).await
}

async fn status(app: &TestApp, sale: &LiveSale) -> SaleStatus {
    app.app().live().status(event_id(sale)).await.unwrap()
}

async fn orders_are(app: &TestApp, sale: &LiveSale, count: u64) {
    eventually("the orders are durable", || async {
        app.app().mongo().orders.count_of_event(event_id(sale)).await.unwrap() == count
    })
    .await;
}

/// The kinds of repair that were recorded for a sale, the newest first.
async fn repairs(app: &TestApp, sale: &LiveSale) -> Vec<String> {
    let entries = app.app().mongo().audit.of_event(event_id(sale), 10).await.unwrap();
    assert!(entries.iter().all(|entry| !entry.detail.is_empty() && !entry.process.is_empty()));
    entries.into_iter().map(|entry| entry.kind).collect()
}

/// Awaits that the sale was repaired and waits for its seller; returns what the seller is told.
async fn repaired(app: &TestApp, sale: &LiveSale) -> String {
    eventually("the sale is repaired and waits", || async {
        let held = app.app().live().held(event_id(sale)).await.unwrap();
        status(app, sale).await == SaleStatus::Paused && held.is_some_and(|held| !held.blocking)
    })
    .await;
    let shown = sale.seller.get(&format!("/api/seller/events/{}/saleStatus", sale.event)).await.expect(200);
    assert_eq!((&shown["status"], &shown["held"]["blocking"]), (&json!("PAUSED"), &json!(false)));
    shown["held"]["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_sale_that_the_live_store_lost_is_rebuilt_paused_and_sells_no_durable_unit_twice() {
    let redis = harness::own_redis().await;
    let app = calm_app_on(redis.url()).await;
    let sale = app.live_sale(2, 3).await;
    let buyers = app.buyers(6).await;
    let first = buyers[0].post(&sale.purchase(0)).await;
    let second = buyers[1].post(&sale.purchase(0)).await;
    let other = buyers[0].post(&sale.purchase(1)).await;
    orders_are(&app, &sale, 3).await;

    let _: () = command(app.config(), &["FLUSHALL"]).await;

    sale.control("Live").await.refused(409, "live_state_lost");
    let told = repaired(&app, &sale).await;
    assert!(told.contains("3 orders given back"), "{told}");
    buyers[2].post(&sale.purchase(0)).await.refused(409, "sale_not_active");
    assert_eq!(phase(app.app(), &sale).await, SalePhase::Live);
    assert_eq!((stock(&app, &sale, 0).await, stock(&app, &sale, 1).await), (1, 2));
    sale.assert_sound(app.app()).await;
    let metrics = format!("http://{}/metrics", app.running.metrics_address.unwrap());
    let gauge = async |line: &str| {
        let text = reqwest::get(&metrics).await.unwrap().text().await.unwrap();
        text.lines().any(|found| found == line)
    };
    eventually("the alarm is raised", || gauge("orbit_sales_held 1")).await;

    sale.control("Resume").await.expect(200);

    let path = sale.purchase(0);
    let replies = join_all(buyers.iter().map(|buyer| buyer.post(&path))).await;
    assert_eq!(tally(&replies), counts(&[("201", 1), ("already_booked", 2), ("sold_out", 3)]));
    assert_eq!(reservation_of(&replies[0]), reservation_of(&first), "a buyer has what they had");
    eventually("the alarm is over", || gauge("orbit_sales_held 0")).await;
    sale.control("End").await.expect(200);
    let promised = [&first, &second, &other].into_iter().chain(&replies).filter_map(reservation_of);
    let mut promised = sorted(promised);
    promised.dedup();
    assert_eq!(ordered(app.app(), &sale).await, promised);
    assert_eq!(repairs(&app, &sale).await, ["rebuilt"]);
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_rebuilding_that_was_cut_short_is_done_again_from_the_start() {
    let app = super::app_without_recovery().await;
    let sale = app.live_sale(1, 10).await;
    reserve_directly(&app, &sale, 4).await;
    orders_are(&app, &sale, 4).await;
    let live = app.app().live();
    let all = live.scan_event_keys(event_id(&sale)).await.unwrap();
    // As a rebuilding leaves it that dies after giving back its orders: everything is there but the status, and half of
    // the stock has not been taken again.
    let status_key = live.keys().status(event_id(&sale));
    assert!(all.contains(&status_key));
    let product = live.keys().product(product_id(&sale, 0), event_id(&sale));
    let _: i64 = command(app.config(), &["DEL", &status_key]).await;
    let _: i64 = command(app.config(), &["HSET", &product, "stock", "8"]).await;

    app.app().sale().recover().await.unwrap();

    assert_eq!(status(&app, &sale).await, SaleStatus::Paused);
    assert_eq!(stock(&app, &sale, 0).await, 6);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_stopped_sale_that_the_live_store_lost_is_settled_with_the_orders_that_are_durable() {
    let redis = harness::own_redis().await;
    let app = calm_app_on(redis.url()).await;
    let sale = app.live_sale(1, 100).await;
    let made = reserve_directly(&app, &sale, 20).await;
    orders_are(&app, &sale, 20).await;
    let events = &app.app().mongo().events;
    assert!(events.move_phase(event_id(&sale), &[SalePhase::Live], SalePhase::Stopped, None).await.unwrap());
    let _: () = command(app.config(), &["FLUSHALL"]).await;

    eventually("the sale is settled", || async { phase(app.app(), &sale).await == SalePhase::Settled }).await;

    sale.control("Live").await.refused(409, "transition_refused");
    let ended = sale.control("End").await.expect(200);
    assert_eq!((&ended["orders"], &ended["deadLetters"]), (&json!(20), &json!(0)));
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    app.finish().await;
}

/// A replica of a server, in step with it.
pub(super) async fn replica_of(master: &RedisServer) -> RedisServer {
    let options = harness::redis_options(orbit::supervisor::AppendFsync::Everysec);
    let port = master.port().to_string();
    let replica = RedisServer::start_with_arguments(options, &["--replicaof", "127.0.0.1", &port]).await.unwrap();
    eventually("the replica is in step", || async {
        said(&replica, &["INFO", "replication"]).await.contains("master_link_status:up")
    })
    .await;
    replica
}

pub(super) async fn said(server: &RedisServer, words: &[&str]) -> String {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(&mut connection).await.unwrap()
}

/// The buyer asks until the answer is a decision.
async fn insists(buyer: &Actor, path: &str) -> crate::harness::Reply {
    let mut reply = buyer.post(path).await;
    while reply.status == 503 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        reply = buyer.post(path).await;
    }
    reply
}

#[tokio::test]
async fn a_replica_that_was_promoted_without_the_last_orders_sells_none_of_their_units_again() {
    let mut master = harness::own_redis().await;
    let replica = replica_of(&master).await;
    let proxy = Proxy::to(master.port()).await;
    let app = calm_app_on(proxy.url()).await;
    let sale = app.live_sale(1, 30).await;
    let buyers = app.buyers(60).await;
    let path = sale.purchase(0);
    let replicated = join_all(buyers[..10].iter().map(|buyer| buyer.post(&path))).await;
    let bookings = app.app().live().keys().bookings(event_id(&sale));
    eventually("the replica has them", || async {
        let client = redis::Client::open(replica.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        redis::cmd("SCARD").arg(&bookings).query_async::<u64>(&mut connection).await.unwrap() == 10
    })
    .await;
    // From here on the replica falls behind; these twenty are acknowledged and durable, and it never sees them.
    said(&replica, &["REPLICAOF", "NO", "ONE"]).await;
    let unseen = join_all(buyers[10..30].iter().map(|buyer| buyer.post(&path))).await;
    assert_eq!(tally(replicated.iter().chain(&unseen)), counts(&[("201", 30)]));
    orders_are(&app, &sale, 30).await;

    // Every unit is sold; thirty more buyers are at the door when the replica takes over.
    master.kill().await;
    proxy.fail_over(replica.port());
    let late = join_all(buyers[30..].iter().map(|buyer| insists(buyer, &path))).await;

    assert_eq!(tally(&late), counts(&[("sale_not_active", 30)]), "not one unit is sold twice");
    let told = repaired(&app, &sale).await;
    assert!(told.contains("20 orders given back, 10 were known"), "{told}");
    sale.assert_sound(app.app()).await;
    sale.control("Resume").await.expect(200);
    let again = join_all(buyers.iter().map(|buyer| insists(buyer, &path))).await;
    assert_eq!(tally(&again), counts(&[("already_booked", 30), ("sold_out", 30)]));
    sale.control("End").await.expect(200);
    let promised = sorted(replicated.iter().chain(&unseen).filter_map(reservation_of));
    assert_eq!(ordered(app.app(), &sale).await, promised);
    assert_eq!(repairs(&app, &sale).await, ["mended"]);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_sale_that_is_being_repaired_cannot_be_resumed() {
    let app = super::app_without_recovery().await;
    let sale = app.live_sale(1, 10).await;
    app.app().live().hold(event_id(&sale), "something is wrong").await.unwrap();

    sale.control("Resume").await.refused(409, "sale_held");
    app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");

    // The process that held it died; the next look finishes the repair.
    app.app().sale().recover().await.unwrap();
    repaired(&app, &sale).await;
    sale.control("Resume").await.expect(200);
    app.buyer().await.post(&sale.purchase(0)).await.expect(201);
    assert_eq!(app.app().live().held(event_id(&sale)).await.unwrap(), None);
    sale.control("End").await.expect(200);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn an_end_that_takes_long_says_how_far_it_is_and_goes_on_without_its_caller() {
    let mut config = without_hurry(harness::config().await);
    config.sale.end_answer_ms = 1;
    config.sale.drain_interval_ms = 600_000;
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, 3_000).await;
    let made = reserve_directly(&app, &sale, 2_000).await;

    let answer = sale.control("End").await;

    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(answer.body["message"], "sale stopped \u{2014} orders are being synced to database");
    assert!(answer.body["remaining"].as_u64().unwrap() <= 2_000);
    app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
    eventually("the sale is settled", || async { phase(app.app(), &sale).await == SalePhase::Settled }).await;
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
