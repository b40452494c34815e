//! Servers and processes that die, stall, fill up and forget, while buyers buy.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{join, join_all};
use futures::stream::FuturesUnordered;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use orbit::domain::event::SalePhase;
use orbit::domain::sale::SaleStatus;
use orbit::supervisor::{AppendFsync, RedisServer};
use tokio::time::Instant;

use super::{
    acknowledged, assert_only_the_status_is_left, command, contents, counts, event_id, live_store, ordered, phase,
    prepared_large, product_id, reservation_of, reserve_directly, sorted, stock, tally, without_hurry,
};
use crate::harness::process::OrbitProcess;
use crate::harness::proxy::{Mode, Proxy};
use crate::harness::{self, Actor, TestApp, eventually};

/// An application on this Redis, with the deadlines that it has in production.
async fn app_on(url: String) -> TestApp {
    let mut config = harness::config().await;
    config.live.url = url.into();
    TestApp::with(config).await
}

/// As [`app_on`], with time enough for a busy machine.
async fn calm_app_on(url: String) -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.live.url = url.into();
    TestApp::with(config).await
}

/// An application for tests with a second process that is killed: what that one leaves is found soon.
async fn app_with_a_neighbour() -> TestApp {
    let mut config = harness::config().await;
    config.server.header_timeout_ms = 30_000;
    config.live.purchase_deadline_ms = 10_000;
    config.sale.opening_ttl_ms = 4_000;
    TestApp::with(config).await
}

fn redis_pid(redis: &RedisServer) -> Pid {
    Pid::from_raw(i32::try_from(redis.pid().unwrap()).unwrap())
}

#[tokio::test]
async fn a_process_killed_among_purchases_loses_no_reservation_and_no_unit() {
    let app = app_with_a_neighbour().await;
    let process = OrbitProcess::start(app.config()).await;
    let sale = app.live_sale(1, 1_000).await;
    let buyers = app.buyers(200).await;
    let (path, url) = (sale.purchase(0), process.url.clone());

    let mut asking: FuturesUnordered<_> = buyers
        .iter()
        .enumerate()
        .map(|(number, buyer)| {
            let request = buyer.at(url.clone()).request(reqwest::Method::POST, &path);
            async move { (number, Actor::try_send(request).await.ok()) }
        })
        .collect();
    let (mut process, mut told, mut untold) = (Some(process), Vec::new(), Vec::new());
    while let Some((number, reply)) = asking.next().await {
        match reply {
            Some(reply) if reservation_of(&reply).is_some() => told.push(reply),
            // On a busy machine a buyer may be told that the outcome is unknown: that is no answer either.
            Some(_) | None => untold.push(number),
        }
        if told.len() == 40
            && let Some(process) = process.take()
        {
            process.kill().await;
        }
    }
    assert!(process.is_none() && !untold.is_empty(), "the process was killed in the middle");

    let again = join_all(untold.iter().map(|number| buyers[*number].post(&path))).await;

    let tallied = tally(&again);
    assert!(tallied.keys().all(|word| word == "201" || word == "already_booked"), "{tallied:?}");
    let promised = sorted(again.iter().chain(&told).filter_map(reservation_of));
    assert_eq!(promised.len(), 200);
    assert_eq!(stock(&app, &sale, 0).await, 800);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    assert_eq!(ordered(app.app(), &sale).await, promised);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_process_killed_while_it_opens_a_sale_leaves_an_event_that_opens_whole() {
    let app = app_with_a_neighbour().await;
    let process = OrbitProcess::start(app.config()).await;
    let sale = prepared_large(&app, 3_000, 2).await;
    let there = sale.seller.at(process.url.clone());
    let open = there.request(reqwest::Method::POST, &format!("/api/seller/events/{}/Live", sale.event));

    let killing = async {
        eventually("it is opening", || async { phase(app.app(), &sale).await != SalePhase::Draft }).await;
        process.kill().await;
    };
    let (answer, ()) = join(Actor::try_send(open), killing).await;

    // Killed after its last step it has opened; before, it has not, and another process undoes its work.
    let rest = || async {
        let status = app.app().live().status(event_id(&sale)).await.unwrap();
        status == SaleStatus::Live || phase(app.app(), &sale).await == SalePhase::Draft
    };
    eventually("the sale is open, or the event a draft", rest).await;
    if phase(app.app(), &sale).await == SalePhase::Draft {
        assert!(answer.is_err(), "no answer promised a sale that did not open");
        eventually("nothing of it is left", || async {
            app.app().live().scan_event_keys(event_id(&sale)).await.unwrap().is_empty()
        })
        .await;
        sale.control("Live").await.expect(200);
    }
    assert_eq!(app.app().live().product_count(event_id(&sale)).await.unwrap(), 3_000);
    app.buyer().await.post(&sale.purchase(2_999)).await.expect(201);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn what_a_process_killed_while_it_ends_a_sale_left_is_finished_by_another() {
    let app = app_with_a_neighbour().await;
    let process = OrbitProcess::start(app.config()).await;
    let sale = app.live_sale(1, 1_000).await;
    let made = reserve_directly(&app, &sale, 800).await;
    let there = sale.seller.at(process.url.clone());
    let end = there.request(reqwest::Method::POST, &format!("/api/seller/events/{}/End", sale.event));

    let killing = async {
        eventually("it is ending", || async {
            app.app().live().status(event_id(&sale)).await.unwrap() == SaleStatus::Stopped
        })
        .await;
        process.kill().await;
    };
    join(Actor::try_send(end), killing).await.0.ok();

    eventually("the sale is settled", || async { phase(app.app(), &sale).await == SalePhase::Settled }).await;
    eventually("only the status is left", || async {
        app.app().live().scan_event_keys(event_id(&sale)).await.unwrap().len() == 1
    })
    .await;
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn no_buyer_notices_that_the_server_has_forgotten_the_scripts() {
    let redis = harness::own_redis().await;
    let app = calm_app_on(redis.url()).await;
    let sale = app.live_sale(1, 1_000).await;
    let buyers = app.buyers(150).await;
    let path = sale.purchase(0);

    let mut replies = Vec::new();
    for group in buyers.chunks(15) {
        let flush = command::<()>(app.config(), &["SCRIPT", "FLUSH"]);
        replies.extend(join(flush, join_all(group.iter().map(|buyer| buyer.post(&path)))).await.1);
    }

    assert_eq!(tally(&replies), counts(&[("201", 150)]));
    let _: () = command(app.config(), &["SCRIPT", "FLUSH"]).await;
    sale.control("Pause").await.expect(200);
    sale.assert_sound(app.app()).await;
    let _: () = command(app.config(), &["SCRIPT", "FLUSH"]).await;
    sale.control("End").await.expect(200);
    assert_eq!(ordered(app.app(), &sale).await, acknowledged(&replies));
    app.finish().await;
}

#[tokio::test]
async fn a_stalled_live_store_costs_a_buyer_half_a_second_and_no_second_unit() {
    let redis = harness::own_redis().await;
    let app = app_on(redis.url()).await;
    let sale = app.live_sale(1, 10).await;
    let buyer = app.buyer().await;
    kill(redis_pid(&redis), Signal::SIGSTOP).unwrap();

    let asked = Instant::now();
    let reply = buyer.post(&sale.purchase(0)).await;
    let waited = asked.elapsed();

    kill(redis_pid(&redis), Signal::SIGCONT).unwrap();
    reply.refused(503, "live_store_unavailable");
    assert!(reply.headers["retry-after"].parse::<u64>().unwrap() >= 1);
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    let mut again = buyer.post(&sale.purchase(0)).await;
    eventually("the buyer gets an answer", || async { buyer.post(&sale.purchase(0)).await.status == 409 }).await;
    if again.status == 503 {
        again = buyer.post(&sale.purchase(0)).await;
    }
    assert!(reservation_of(&again).is_some(), "{}", again.body);
    assert_eq!(app.app().live().booking_count(event_id(&sale)).await.unwrap(), 1);
    assert_eq!(stock(&app, &sale, 0).await, 9);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_live_store_that_crashes_under_load_comes_back_with_every_acknowledged_reservation() {
    let mut redis = RedisServer::start(harness::redis_options(AppendFsync::Always)).await.unwrap();
    let app = app_on(redis.url()).await;
    let sale = app.live_sale(1, 10_000).await;
    let buyers = app.buyers(120).await;
    let path = sale.purchase(0);

    let (early, late) = buyers.split_at(60);
    let mut asking: FuturesUnordered<_> = early.iter().map(|buyer| buyer.post(&path)).collect();
    let mut replies = Vec::new();
    while let Some(reply) = asking.next().await {
        replies.push(reply);
        if replies.len() == 20 {
            redis.kill().await;
        }
    }
    redis.restart().await.unwrap();
    // Nobody restarts the service.
    for buyer in late.iter().chain(early) {
        let replies = &std::cell::RefCell::new(&mut replies);
        eventually("the buyer has a reservation", || async {
            let reply = buyer.post(&path).await;
            let answered = reservation_of(&reply).is_some();
            replies.borrow_mut().push(reply);
            answered
        })
        .await;
    }

    let told = acknowledged(&replies);
    let unknown = ["201", "already_booked", "live_store_unavailable"];
    assert!(tally(&replies).keys().all(|word| unknown.contains(&word.as_str())), "{:?}", tally(&replies));
    assert_eq!(stock(&app, &sale, 0).await, 10_000 - 120);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    let ordered: HashSet<String> = ordered(app.app(), &sale).await.into_iter().collect();
    assert_eq!(ordered.len(), 120);
    assert!(told.iter().all(|id| ordered.contains(id)), "an acknowledged reservation has its order");
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_live_store_that_forgot_that_a_sale_was_stopped_is_told_again_and_loses_no_reservation() {
    let app = super::calm_app().await;
    let seller = app.approved_seller().await;
    for action in ["", "Pause"] {
        let sale = super::prepared_by(seller.clone(), 1, 100).await;
        sale.control("Live").await.expect(200);
        let mut made = reserve_directly(&app, &sale, 20).await;
        if !action.is_empty() {
            sale.control(action).await.expect(200);
        }
        let status = app.app().live().keys().status(event_id(&sale));
        // The database knows of the stop, the live store came back from before it.
        let stopped =
            app.app().mongo().events.move_phase(event_id(&sale), &[SalePhase::Live], SalePhase::Stopped, None);
        assert!(stopped.await.unwrap());

        eventually("the sale is settled", || async { phase(app.app(), &sale).await == SalePhase::Settled }).await;

        assert_eq!(command::<String>(app.config(), &["GET", &status]).await, "STOPPED");
        made.sort_unstable();
        assert_eq!(ordered(app.app(), &sale).await, made);
        app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn a_connection_that_broke_while_nobody_used_it_costs_no_buyer_an_answer() {
    let redis = harness::own_redis().await;
    let app = calm_app_on(redis.url()).await;
    let sale = app.live_sale(1, 100).await;
    let buyers = app.buyers(20).await;
    let path = sale.purchase(0);
    let _: i64 = command(app.config(), &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    eventually("every connection is there again", || async {
        let clients: String = command(app.config(), &["CLIENT", "LIST", "TYPE", "normal"]).await;
        // Ours is one more.
        clients.lines().count() > app.config().live.connections
    })
    .await;

    let replies = join_all(buyers.iter().map(|buyer| buyer.post(&path))).await;

    assert_eq!(tally(&replies), counts(&[("201", 20)]));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_stock_counter_that_is_gone_or_broken_is_damage_and_never_an_answer_about_stock() {
    let app = super::calm_app().await;
    let sale = app.live_sale(2, 5).await;
    let buyer = app.buyer().await;
    let key = app.app().live().keys().product(product_id(&sale, 0), event_id(&sale));
    let whole: Vec<u8> = {
        let mut connection = live_store(app.config()).await;
        redis::cmd("DUMP").arg(&key).query_async(&mut connection).await.unwrap()
    };
    let damages: [&[&str]; 8] = [
        &["DEL", &key],
        &["HDEL", &key, "stock"],
        &["HDEL", &key, "price"],
        &["HDEL", &key, "currency"],
        &["HDEL", &key, "limit"],
        &["HSET", &key, "stock", "-1"],
        &["HSET", &key, "stock", "1e18"],
        &["SET", &key, "no hash"],
    ];
    for damage in damages {
        let _: redis::Value = command(app.config(), damage).await;
        let before = contents(&app, &sale).await;
        let reply = buyer.post(&sale.purchase(0)).await;
        assert_eq!((reply.status, &reply.body["code"]), (503, &"live_record_damaged".into()), "{damage:?}");
        assert!(reply.headers.contains_key("retry-after"));
        assert_eq!(contents(&app, &sale).await, before, "{damage:?}");
        // The page says so too, and does not show a stock that nobody counted.
        let page = buyer.get(&format!("/api/buyer/event/{}", sale.event)).await;
        assert_eq!(
            (page.status, &page.body["code"]),
            (503, &"live_record_damaged".into()),
            "{damage:?}: {}",
            page.body
        );

        let mut connection = live_store(app.config()).await;
        let mut restore = redis::cmd("RESTORE");
        restore.arg(&key).arg(0).arg(&whole).arg("REPLACE");
        restore.query_async::<()>(&mut connection).await.unwrap();
    }
    // The other product was for sale all the time, and this one is again.
    buyer.post(&sale.purchase(1)).await.expect(201);
    buyer.post(&sale.purchase(0)).await.expect(201);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_key_of_the_wrong_type_refuses_the_purchase_before_anything_is_written() {
    let app = super::calm_app().await;
    let seller = app.approved_seller().await;
    let keys = app.app().live().keys().clone();
    for which in ["winners", "bookings", "journal", "booking", "status", "productKeys"] {
        let sale = super::prepared_by(seller.clone(), 1, 5).await;
        sale.control("Live").await.expect(200);
        let buyer = app.buyer().await;
        let (event, product) = (event_id(&sale), product_id(&sale, 0));
        let key = match which {
            "winners" => keys.winners(event, product),
            "bookings" => keys.bookings(event),
            "journal" => keys.journal(event),
            "booking" => keys.booking(buyer.id.parse().unwrap(), product, event),
            "status" => keys.status(event),
            _ => keys.product_keys(event),
        };
        // The key set is read only for a product that is not there.
        if which == "productKeys" {
            let _: i64 = command(app.config(), &["DEL", &keys.product(product, event)]).await;
        }
        let _: i64 = command(app.config(), &["DEL", &key]).await;
        let _: i64 = command(app.config(), &["LPUSH", &key, "what is this"]).await;
        let before = contents(&app, &sale).await;

        let reply = buyer.post(&sale.purchase(0)).await;

        assert_eq!(
            (reply.status, &reply.body["code"]),
            (503, &"live_record_damaged".into()),
            "{which}: {}",
            reply.body
        );
        assert_eq!(contents(&app, &sale).await, before, "{which}");
        if ["winners", "bookings", "journal", "booking"].contains(&which) {
            let _: i64 = command(app.config(), &["DEL", &key]).await;
            buyer.post(&sale.purchase(0)).await.expect(201);
            sale.assert_sound(app.app()).await;
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn a_full_live_store_refuses_purchases_whole_and_sells_again_when_it_has_room() {
    let redis = harness::own_redis().await;
    let app = calm_app_on(redis.url()).await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "1mb"]).await;
    let before = contents(&app, &sale).await;

    for _ in 0..3 {
        let reply = buyer.post(&sale.purchase(0)).await;
        reply.refused(503, "live_store_unavailable");
        assert!(reply.headers.contains_key("retry-after"));
    }

    assert_eq!(contents(&app, &sale).await, before);
    assert_eq!(sale.available(&buyer, 0).await, 5);
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "0"]).await;
    buyer.post(&sale.purchase(0)).await.expect(201);
    assert_eq!(stock(&app, &sale, 0).await, 4);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_sale_that_ends_in_a_full_live_store_is_settled_and_makes_room() {
    let redis = harness::own_redis().await;
    let app = calm_app_on(redis.url()).await;
    let sale = app.live_sale(1, 500).await;
    let made = reserve_directly(&app, &sale, 100).await;
    let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "1mb"]).await;

    let first = sale.control("End").await;
    if first.status != 200 {
        first.refused(503, "live_store_unavailable");
        assert_eq!(app.app().live().booking_count(event_id(&sale)).await.unwrap(), 100, "nothing is removed");
        let _: () = command(app.config(), &["CONFIG", "SET", "maxmemory", "0"]).await;
        sale.control("End").await.expect(200);
    }
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert_only_the_status_is_left(app.app(), &sale).await;
    app.finish().await;
}

/// An application that reaches its Redis through a proxy, over one connection and without background work.
async fn app_behind_a_proxy(redis: &RedisServer) -> (Proxy, TestApp) {
    let proxy = Proxy::to(redis.port()).await;
    let mut config = without_hurry(harness::config().await);
    config.live.url = proxy.url().into();
    config.live.connections = 1;
    config.sale.recovery_interval_ms = 600_000;
    (proxy, TestApp::with(config).await)
}

#[tokio::test]
async fn a_reservation_whose_answer_was_lost_is_the_one_that_the_buyer_finds_on_asking_again() {
    let redis = harness::own_redis().await;
    let (proxy, app) = app_behind_a_proxy(&redis).await;
    let sale = app.live_sale(1, 5).await;
    for (number, key) in [None, Some("one-click")].into_iter().enumerate() {
        let buyer = app.buyer().await;
        let ask = || {
            let request = buyer.request(reqwest::Method::POST, &sale.purchase(0));
            key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))
        };
        proxy.drop_answers("EVALSHA", 1);
        let lost = Actor::send(ask()).await;
        lost.refused(503, "live_store_unavailable");
        assert_eq!(lost.headers["retry-after"], "1");
        assert_eq!(proxy.dropped(), number + 1, "the script ran, its answer was dropped");

        let mut found = None;
        for _ in 0..100 {
            let reply = Actor::send(ask()).await;
            if reply.status != 503 {
                found = Some(reply);
                break;
            }
            tokio::task::yield_now().await;
        }

        let found = found.expect("the connection comes back");
        match key {
            // Its own request, answered at last.
            Some(_) => assert_eq!(found.status, 201, "{}", found.body),
            None => found.refused(409, "already_booked"),
        }
        let id = reservation_of(&found).unwrap();
        let booked = app.app().live().booking(buyer.id.parse().unwrap(), product_id(&sale, 0), event_id(&sale)).await;
        assert_eq!(booked.unwrap().unwrap().id, id);
        assert_eq!(stock(&app, &sale, 0).await, 4 - i64::try_from(number).unwrap());
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn an_opening_whose_answers_are_lost_loads_nothing_twice_and_is_reported_as_open() {
    let redis = harness::own_redis().await;
    let (proxy, app) = app_behind_a_proxy(&redis).await;
    let seller = app.approved_seller().await;
    // The loading of products; the flip of the status.
    for marker in ["productmeta:", "\r\nLIVE\r\n"] {
        let sale = super::prepared_by(seller.clone(), 3, 5).await;
        let dropped = proxy.dropped();
        proxy.drop_answers(marker, 1);

        let opened = sale.control("Live").await;

        assert_eq!(proxy.dropped(), dropped + 1);
        assert_eq!(opened.expect(200)["products"], 3);
        assert_eq!(phase(app.app(), &sale).await, SalePhase::Live);
        for product in 0..3 {
            app.buyer().await.post(&sale.purchase(product)).await.expect(201);
            assert_eq!(stock(&app, &sale, product).await, 4);
        }
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn an_action_whose_answer_was_lost_has_happened_and_can_be_repeated() {
    let redis = harness::own_redis().await;
    let (proxy, app) = app_behind_a_proxy(&redis).await;
    let sale = app.live_sale(1, 500).await;
    let made = reserve_directly(&app, &sale, 50).await;

    proxy.drop_answers("\r\nPAUSED\r\n", 1);
    sale.control("Pause").await.refused(503, "live_store_unavailable");
    let again = sale.control("Pause").await;
    again.refused(409, "transition_refused");
    assert_eq!(again.body["currentStatus"], "PAUSED");

    // The stop itself; then a removal, when everything is settled.
    proxy.drop_answers("\r\nSTOPPED\r\n", 1);
    sale.control("End").await.refused(503, "live_store_unavailable");
    assert_eq!(app.app().live().status(event_id(&sale)).await.unwrap(), SaleStatus::Stopped);
    assert_eq!(app.app().live().booking_count(event_id(&sale)).await.unwrap(), 50);
    proxy.drop_answers("bookings\r\n$", 1);
    let removal = sale.control("End").await;
    assert!([200, 503].contains(&removal.status), "{}", removal.body);
    assert_eq!(sale.control("End").await.expect(200)["orders"], 50);

    assert_eq!(proxy.dropped(), 3);
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_cut_connection_costs_a_503_and_the_service_comes_back_by_itself() {
    let redis = harness::own_redis().await;
    let (proxy, app) = app_behind_a_proxy(&redis).await;
    let sale = app.live_sale(1, 50).await;
    let buyers = app.buyers(10).await;
    let path = sale.purchase(0);
    let mut quick = app.config().clone();
    quick.live.purchase_deadline_ms = 500;
    let quick = TestApp::with(quick).await;
    proxy.set(Mode::Cut);

    for reply in join_all(buyers.iter().map(|buyer| quick.here(buyer)).map(|buyer| {
        let path = &path;
        async move { buyer.post(path).await }
    }))
    .await
    {
        reply.refused(503, "live_store_unavailable");
    }
    assert_eq!(app.anonymous().get("/health/live").await.status, 200);
    proxy.set(Mode::Pass);

    for buyer in &buyers {
        eventually("the buyer has a reservation", || async { reservation_of(&buyer.post(&path).await).is_some() })
            .await;
    }
    assert_eq!(stock(&app, &sale, 0).await, 40);
    sale.assert_sound(app.app()).await;
    quick.running.stop().await;
    app.finish().await;
}
