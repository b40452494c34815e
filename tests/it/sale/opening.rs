//! Openings that go wrong: what is left is an event that can be opened.

use bson::{Document, doc, oid::ObjectId};
use futures::future::join;
use orbit::domain::event::SalePhase;
use orbit::domain::page::Page;
use orbit::store::live::{OpeningToken, Projecting};
use orbit::supervisor::{AppendFsync, RedisServer};

use super::{
    assert_only_the_status_is_left, calm_app, command, counts, database, event_id, live_store, phase, prepared,
    prepared_large, stock, stock_up, tally, without_hurry,
};
use crate::harness::{self, LiveSale, TestApp, eventually};

const UNITS: u32 = 3;

/// An application on a Redis of its own.
async fn app_on(redis: &RedisServer) -> TestApp {
    let mut config = harness::config().await;
    config.live.url = redis.url().into();
    TestApp::with(config).await
}

async fn nothing_is_left(app: &TestApp, sale: &LiveSale) -> bool {
    app.app().live().scan_event_keys(event_id(sale)).await.is_ok_and(|keys| keys.is_empty())
}

/// The sale opens, has all its products, and sells them.
async fn assert_opens_whole(app: &TestApp, sale: &LiveSale) {
    let opened = sale.control("Live").await.expect(200);
    assert_eq!(opened["products"], sale.products.len());
    assert_eq!(app.app().live().product_count(event_id(sale)).await.unwrap(), sale.products.len() as u64);
    let mut ends = vec![0, sale.products.len() - 1];
    ends.dedup();
    for product in ends {
        assert_eq!(stock(app, sale, product).await, i64::from(UNITS));
        app.buyer().await.post(&sale.purchase(product)).await.expect(201);
    }
    sale.assert_sound(app.app()).await;
}

#[tokio::test]
async fn an_opening_that_fills_the_live_store_is_undone_and_succeeds_with_more_memory() {
    let redis = harness::own_redis().await;
    let app = app_on(&redis).await;
    let sale = prepared_large(&app, 1200, UNITS).await;
    let info: String = command(app.config(), &["INFO", "memory"]).await;
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    let limit = used.trim().parse::<u64>().unwrap() + 250_000;
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", &limit.to_string()]).await;

    sale.control("Live").await.refused(503, "live_store_unavailable");

    assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft);
    assert!(nothing_is_left(&app, &sale).await);
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_opens_whole(&app, &sale).await;
    app.finish().await;
}

#[tokio::test]
async fn an_opening_whose_live_store_dies_is_undone_when_it_is_back() {
    let mut redis = harness::own_redis().await;
    let app = app_on(&redis).await;
    let sale = prepared_large(&app, 1500, UNITS).await;

    let kill = async {
        eventually("the sale is opening", || async { phase(app.app(), &sale).await != SalePhase::Draft }).await;
        redis.kill().await;
    };
    let (opened, ()) = join(sale.control("Live"), kill).await;
    opened.refused(503, "live_store_unavailable");
    assert_ne!(phase(app.app(), &sale).await, SalePhase::Live, "half of a catalogue is no sale");
    redis.restart().await.unwrap();

    eventually("it is a draft again", || async { phase(app.app(), &sale).await == SalePhase::Draft }).await;
    eventually("nothing of it is left", || nothing_is_left(&app, &sale)).await;
    assert_opens_whole(&app, &sale).await;
    app.finish().await;
}

#[tokio::test]
async fn buyers_who_come_while_a_sale_opens_hear_that_it_is_not_active_never_that_there_is_no_product() {
    let app = calm_app().await;
    let sale = prepared_large(&app, 1500, UNITS).await;
    let buyer = app.buyer().await;

    let asking = async {
        let mut replies = Vec::new();
        for product in (0..sale.products.len()).rev().cycle() {
            replies.push(buyer.post(&sale.purchase(product)).await);
            if replies.last().is_some_and(|reply| reply.status == 201) {
                return replies;
            }
        }
        replies
    };
    let (replies, opened) = join(asking, sale.control("Live")).await;

    opened.expect(200);
    assert!(replies.len() > 2, "nobody came while it opened");
    assert_eq!(tally(&replies), counts(&[("201", 1), ("sale_not_active", replies.len() - 1)]));
    assert!(replies[..replies.len() - 1].iter().all(|reply| reply.body["currentStatus"] == "NOT_STARTED"));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

/// Goes as far as an opener that died: everything loaded, the phase moved, the status not flipped.
async fn die_opening(app: &TestApp, sale: &LiveSale, died_in: SalePhase, ttl_ms: u64) {
    let (event, token) = (event_id(sale), OpeningToken::random());
    let (live, mongo) = (app.app().live(), app.app().mongo());
    assert!(live.take_opening(event, &token, ttl_ms).await.unwrap());
    assert!(
        mongo.events.move_phase(event, &[SalePhase::Draft], SalePhase::Opening, Some(token.as_str())).await.unwrap()
    );
    mongo.products.freeze(event, token.as_str()).await.unwrap();
    let products = mongo.products.of_event(event, Page { limit: 100, after: None }).await.unwrap().items;
    live.project(event, &products, &Projecting::default(), &token, ttl_ms).await.unwrap();
    assert!(mongo.events.move_phase_of_run(event, token.as_str(), &[SalePhase::Opening], died_in).await.unwrap());
}

#[tokio::test]
async fn what_a_dead_opener_left_is_removed_and_the_event_is_a_draft_again() {
    let app = calm_app().await;
    for died_in in [SalePhase::Opening, SalePhase::Live] {
        let sale = prepared(&app, 3, UNITS).await;
        die_opening(&app, &sale, died_in, 2_000).await;

        // As long as the token is good somebody may be at work.
        sale.control("Live").await.refused(409, "opening_in_progress");
        app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        eventually("it is a draft again", || async { phase(app.app(), &sale).await == SalePhase::Draft }).await;
        eventually("nothing of it is left", || nothing_is_left(&app, &sale)).await;

        let edit = format!("/api/seller/events/{}/updateProduct/{}", sale.event, sale.products[0]);
        let edited = sale.seller.form(reqwest::Method::PUT, &edit, &[("price", "7.25")], None).await;
        edited.expect(200);
        assert_opens_whole(&app, &sale).await;
        let paid = app.buyer().await.post(&sale.purchase(0)).await.expect(201);
        assert_eq!(paid["priceMinor"], 725);
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn a_seller_need_not_wait_for_recovery_to_open_again_after_an_opener_died() {
    let mut config = without_hurry(harness::config().await);
    config.sale.recovery_interval_ms = 600_000;
    let app = TestApp::with(config).await;
    for died_in in [SalePhase::Opening, SalePhase::Live] {
        let mut sale = prepared(&app, 2, UNITS).await;
        die_opening(&app, &sale, died_in, 50).await;
        // One more than the dead opener knew of.
        sale.products.extend(stock_up(&app, &sale, 1, UNITS).await);
        eventually("the token has expired", || async {
            !app.app().live().opening_taken(event_id(&sale)).await.unwrap()
        })
        .await;
        assert_opens_whole(&app, &sale).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn a_sale_does_not_open_on_a_server_that_may_evict_it() {
    let mut options = harness::redis_options(AppendFsync::Everysec);
    options.maxmemory_policy = "allkeys-lru";
    let redis = RedisServer::start(options).await.unwrap();
    let app = app_on(&redis).await;
    let sale = prepared(&app, 1, UNITS).await;

    sale.control("Live").await.refused(503, "live_store_unsafe");

    assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft);
    assert!(nothing_is_left(&app, &sale).await);
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    assert_opens_whole(&app, &sale).await;
    app.finish().await;
}

#[tokio::test]
async fn without_the_index_that_settles_once_no_sale_opens_and_the_process_is_not_ready() {
    let app = calm_app().await;
    let sale = prepared(&app, 1, UNITS).await;
    let ready = || async { app.anonymous().get("/health/ready").await };
    assert_eq!(ready().await.status, 200);
    let orders = database(&app).await.collection::<Document>("orders");
    orders.drop_indexes().await.unwrap();

    sale.control("Live").await.refused(503, "database_unsafe");
    assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft);
    assert!(nothing_is_left(&app, &sale).await);
    let body = ready().await.expect(503);
    assert_eq!((&body["status"], &body["liveStore"]), (&"not_ready".into(), &"ok".into()));

    let unique = mongodb::options::IndexOptions::builder().unique(true).build();
    let index = mongodb::IndexModel::builder().keys(doc! { "reservationId": 1 }).options(unique).build();
    orders.create_index(index).await.unwrap();
    assert_eq!(ready().await.status, 200);
    assert_opens_whole(&app, &sale).await;
    app.finish().await;
}

#[tokio::test]
async fn a_product_that_cannot_be_read_keeps_the_whole_sale_closed() {
    let app = calm_app().await;
    let sale = prepared_large(&app, 150, UNITS).await;
    let inventories = database(&app).await.collection::<Document>("inventories");
    let event: ObjectId = ObjectId::parse_str(&sale.event).unwrap();
    let whole = inventories.find_one(doc! { "eventId": event }).await.unwrap().unwrap();
    for (field, broken) in
        [("priceMinor", bson::Bson::from("199.99")), ("currency", "GOLD".into()), ("frequency", (-5_i64).into())]
    {
        let mut document = whole.clone();
        let id = ObjectId::new();
        document.insert("_id", id);
        document.insert(field, broken);
        inventories.insert_one(document).bypass_document_validation(true).await.unwrap();

        let refused = sale.control("Live").await;
        assert!(refused.status >= 500, "{field}: {} {}", refused.status, refused.body);

        assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft, "{field}");
        assert!(nothing_is_left(&app, &sale).await, "{field}");
        app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        inventories.delete_one(doc! { "_id": id }).await.unwrap();
    }
    assert_opens_whole(&app, &sale).await;
    app.finish().await;
}

#[tokio::test]
async fn a_large_catalogue_opens_whole_and_every_key_of_it_is_known_and_removed() {
    let app = calm_app().await;
    let sale = prepared_large(&app, 3_000, UNITS).await;
    assert_opens_whole(&app, &sale).await;

    let (live, event) = (app.app().live(), event_id(&sale));
    let mut known = vec![live.keys().status(event), live.keys().product_keys(event)];
    let (mut cursor, mut connection) = (0, live_store(app.config()).await);
    loop {
        let (next, keys) = live.sale_keys_page(event, cursor, 500).await.unwrap();
        known.extend(keys);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    let booked: Vec<String> =
        redis::cmd("SMEMBERS").arg(live.keys().bookings(event)).query_async(&mut connection).await.unwrap();
    assert_eq!(booked.len(), 2);
    known.extend(booked);
    let stored = live.scan_event_keys(event).await.unwrap();
    assert!(stored.len() >= 6_000, "{}", stored.len());
    let known: std::collections::HashSet<String> = known.into_iter().collect();
    let unknown: Vec<_> = stored.iter().filter(|key| !known.contains(*key)).collect();
    assert_eq!(unknown, Vec::<&String>::new(), "keys that no removal would find");

    sale.control("End").await.expect(200);
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn an_opener_that_lost_its_token_opens_nothing() {
    let app = calm_app().await;
    let sale = prepared_large(&app, 1500, UNITS).await;
    let opening = app.app().live().keys().opening(event_id(&sale));

    let thief = async {
        eventually("the sale is opening", || async { phase(app.app(), &sale).await != SalePhase::Draft }).await;
        command::<()>(app.config(), &["SET", &opening, "somebody else", "PX", "1500"]).await;
    };
    let (opened, ()) = join(sale.control("Live"), thief).await;

    // The thief may have come too late; never is it open without its opener knowing.
    if opened.status == 200 {
        command::<()>(app.config(), &["DEL", &opening]).await;
    } else {
        opened.refused(409, "opening_in_progress");
        app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        eventually("it is a draft again", || async { phase(app.app(), &sale).await == SalePhase::Draft }).await;
        eventually("nothing of it is left", || nothing_is_left(&app, &sale)).await;
        assert_opens_whole(&app, &sale).await;
    }
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
