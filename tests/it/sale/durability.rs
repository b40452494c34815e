//! `live.durability`: no sale opens on a server that does not keep it, and a reservation that too few replicas have is not
//! given as made.

use std::collections::HashSet;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use orbit::config::Durability;
use orbit::domain::event::SalePhase;
use orbit::store::live::scripts::SOURCES;
use orbit::supervisor::{AppendFsync, RedisServer};
use serde_json::json;

use super::{
    command, contents, event_id, live_store, load, phase, prepared_by, product_id, reservation_of, reserve_directly,
    stock, without_hurry,
};
use crate::harness::{self, Actor, LiveSale, TestApp, eventually};

/// An application at this level on the Redis behind this address.
async fn app_at(level: Durability, url: String) -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.live.url = url.into();
    config.live.durability = level;
    // A busy machine's replica is slow, and a purchase that should fail still does so soon.
    config.live.replicas_wait_ms = 1_000;
    TestApp::with(config).await
}

/// No sale opens; the seller and an operator learn why, and the process stays in the load balancer.
async fn assert_unsafe(app: &TestApp, sale: &LiveSale, why: &str) {
    let refused = sale.control("Live").await;
    refused.refused(503, "live_store_unsafe");
    assert!(refused.headers.contains_key("retry-after"));
    let ready = app.anonymous().get("/health/ready").await.expect(200);
    assert_eq!((&ready["status"], &ready["durabilityKept"]), (&json!("ready"), &json!(false)));
    for text in [&refused.body["error"], &ready["durabilityProblem"]] {
        assert!(text.as_str().unwrap().contains(why), "{text} does not say {why}");
    }
    assert_eq!(phase(app.app(), sale).await, SalePhase::Draft);
    assert_eq!(app.app().live().scan_event_keys(event_id(sale)).await.unwrap(), Vec::<String>::new());
}

async fn assert_opens(app: &TestApp, sale: &LiveSale) {
    sale.control("Live").await.expect(200);
    buy(&app.buyer().await, sale, 0).await;
    let ready = app.anonymous().get("/health/ready").await.expect(200);
    assert_eq!((&ready["durabilityKept"], &ready["durabilityProblem"]), (&json!(true), &json!(null)));
    sale.assert_sound(app.app()).await;
}

#[tokio::test]
async fn no_sale_opens_while_the_append_only_file_is_not_what_the_level_rests_on() {
    let redis = harness::own_redis().await;
    let breaks = [
        (Durability::Everysec, ["appendonly", "no", "yes"]),
        (Durability::Everysec, ["appendfsync", "no", "everysec"]),
        (Durability::Everysec, ["no-appendfsync-on-rewrite", "yes", "no"]),
        (Durability::Always, ["appendfsync", "everysec", "always"]),
        (Durability::Always, ["maxmemory-policy", "allkeys-lru", "noeviction"]),
        (Durability::None, ["maxmemory-policy", "volatile-ttl", "noeviction"]),
    ];
    for (level, [setting, broken, mended]) in breaks {
        let app = app_at(level, redis.url()).await;
        let sale = prepared_by(app.approved_seller().await, 1, 3).await;
        let _: () = command(app.config(), &["CONFIG", "SET", setting, broken]).await;
        assert_unsafe(&app, &sale, &format!("its {setting} to {mended}")).await;

        let _: () = command(app.config(), &["CONFIG", "SET", setting, mended]).await;
        assert_opens(&app, &sale).await;
        app.finish().await;
    }
}

/// The address of this Redis for a user who may do everything but one thing.
async fn url_without(redis: &RedisServer, command: &str) -> String {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg(&["orbit", "on", ">secret", "~*", "&*", "+@all", &format!("-{command}")]);
    user.query_async::<()>(&mut connection).await.unwrap();
    format!("redis://orbit:secret@127.0.0.1:{}/0", redis.port())
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_fsync_policy_is_good_for_everysec_and_not_for_always() {
    let redis = RedisServer::start(harness::redis_options(AppendFsync::Always)).await.unwrap();
    let url = url_without(&redis, "config").await;
    let app = app_at(Durability::Always, url.clone()).await;
    let sale = prepared_by(app.approved_seller().await, 1, 3).await;
    assert_unsafe(&app, &sale, "permit CONFIG GET").await;
    app.finish().await;

    let app = app_at(Durability::Everysec, url).await;
    let sale = prepared_by(app.approved_seller().await, 1, 3).await;
    assert_opens(&app, &sale).await;
    app.finish().await;
}

#[tokio::test]
async fn no_sale_opens_on_a_server_that_does_not_let_us_wait_for_its_replicas() {
    let (primary, _replica) = pair().await;
    let app = app_at(Durability::Replicas, url_without(&primary, "wait").await).await;
    let sale = prepared_by(app.approved_seller().await, 1, 3).await;
    assert_unsafe(&app, &sale, "permit WAIT").await;
    app.finish().await;
}

/// A Redis whose replicas need not wait before they may copy it.
async fn primary() -> RedisServer {
    let options = harness::redis_options(AppendFsync::Everysec);
    RedisServer::start_with_arguments(options, &["--repl-diskless-sync-delay", "0"]).await.unwrap()
}

/// A Redis and a replica that receives every write.
async fn pair() -> (RedisServer, RedisServer) {
    let primary = primary().await;
    let replica = replica_of(&primary).await;
    (primary, replica)
}

async fn replica_of(primary: &RedisServer) -> RedisServer {
    let port = primary.port().to_string();
    let options = harness::redis_options(AppendFsync::Everysec);
    let replica = RedisServer::start_with_arguments(options, &["--replicaof", "127.0.0.1", &port]).await.unwrap();
    let client = redis::Client::open(primary.url()).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    eventually("the replica is online", || async {
        let mut connection = connection.clone();
        let info: String = redis::cmd("INFO").arg("replication").query_async(&mut connection).await.unwrap();
        info.contains("state=online")
    })
    .await;
    replica
}

fn signal(redis: &RedisServer, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(redis.pid().unwrap()).unwrap()), signal).unwrap();
}

/// A purchase with an idempotency key.
async fn ask(buyer: &Actor, sale: &LiveSale, product: usize) -> harness::Reply {
    let request = buyer.request(reqwest::Method::POST, &sale.purchase(product));
    Actor::send(request.header("idempotency-key", "one-click")).await
}

/// Asks until the outcome is known: the reservation's id.
async fn buy(buyer: &Actor, sale: &LiveSale, product: usize) -> String {
    let reply = std::cell::RefCell::new(None);
    eventually("the buyer gets an answer", || async {
        let answer = ask(buyer, sale, product).await;
        let known = answer.status != 503;
        *reply.borrow_mut() = Some(answer);
        known
    })
    .await;
    let reply = reply.into_inner().unwrap();
    reply.expect(201)["reservationId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn no_sale_opens_with_fewer_replicas_than_must_acknowledge() {
    let redis = primary().await;
    let app = app_at(Durability::Replicas, redis.url()).await;
    let sale = prepared_by(app.approved_seller().await, 1, 3).await;
    assert_unsafe(&app, &sale, "live.replicas_min is 1, and the live store has 0 replicas online").await;
    let replica = replica_of(&redis).await;
    assert_opens(&app, &sale).await;
    drop(replica);
    app.finish().await;
}

#[tokio::test]
async fn a_reservation_that_no_replica_has_is_an_unknown_outcome_until_one_has_it() {
    let (primary, replica) = pair().await;
    let app = app_at(Durability::Replicas, primary.url()).await;
    let sale = app.live_sale(2, 1).await;
    let [buyer, late] = [app.buyer().await, app.buyer().await];
    buy(&late, &sale, 1).await;
    signal(&replica, Signal::SIGSTOP);

    let unknown = ask(&buyer, &sale, 0).await;

    unknown.refused(503, "live_store_unavailable");
    assert_eq!(unknown.headers["retry-after"], "1");
    let user = buyer.id.parse().unwrap();
    let made = app.app().live().booking(user, product_id(&sale, 0), event_id(&sale)).await.unwrap().unwrap().id;
    // Neither the replay nor the refusal that shows the reservation may pass for the promise that was not given.
    ask(&buyer, &sale, 0).await.refused(503, "live_store_unavailable");
    buyer.post(&sale.purchase(0)).await.refused(503, "live_store_unavailable");
    late.post(&sale.purchase(1)).await.refused(503, "live_store_unavailable");
    // What promises nothing needs no replica.
    late.post(&sale.purchase(0)).await.refused(409, "sold_out");
    buyer.post(&sale.purchase(1)).await.refused(409, "sold_out");

    signal(&replica, Signal::SIGCONT);
    assert_eq!(buy(&buyer, &sale, 0).await, made);
    let again = buyer.post(&sale.purchase(0)).await;
    again.refused(409, "already_booked");
    assert_eq!(reservation_of(&again).unwrap(), made);
    assert_eq!(stock(&app, &sale, 0).await, 0);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_purchase_without_its_replica_gets_the_same_reservation_from_the_next_one() {
    let (primary, mut replica) = pair().await;
    let app = app_at(Durability::Replicas, primary.url()).await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    replica.stop().await;
    let made = async || {
        let booking = app.app().live().booking(buyer.id.parse().unwrap(), product_id(&sale, 0), event_id(&sale)).await;
        booking.unwrap().unwrap().id
    };

    ask(&buyer, &sale, 0).await.refused(503, "live_store_unavailable");
    let first = made().await;
    // A replica that was never there when the reservation was made.
    let _another = replica_of(&primary).await;

    assert_eq!(buy(&buyer, &sale, 0).await, first);
    assert_eq!(made().await, first);
    assert_eq!(stock(&app, &sale, 0).await, 4);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_replica_that_takes_over_has_every_reservation_that_was_acknowledged() {
    let (mut primary, replica) = pair().await;
    let app = app_at(Durability::Replicas, primary.url()).await;
    let sale = app.live_sale(1, 3_000).await;

    let acknowledged = load::until_the_server_dies(&app, &sale, 1_000, &mut primary).await;

    let mut config = app.config().clone();
    config.live.url = replica.url().into();
    config.live.durability = Durability::Everysec;
    let _: () = command(&config, &["REPLICAOF", "NO", "ONE"]).await;
    let successor = TestApp::with(config).await;
    load::until_it_sells_again(&successor, &super::seen_from(&sale, &successor)).await;
    let there: HashSet<String> = load::reservations(&successor, &sale).await;
    let lost = acknowledged.iter().filter(|made| !there.contains(&made.reservation)).count();
    eprintln!("replicas: {lost} of {} acknowledged reservations lost by the one that took over", acknowledged.len());
    assert_eq!(lost, 0);
    load::sell_out(&successor, &sale, 3_000).await;
    assert!(successor.running.stop().await, "some task outlived the application");
    app.finish().await;
}

#[tokio::test]
async fn an_answer_about_an_earlier_reservation_is_a_write_only_for_those_who_wait_for_replicas() {
    let redis = harness::own_redis().await;
    let app = app_at(Durability::None, redis.url()).await;
    let sale = app.live_sale(1, 5).await;
    reserve_directly(&app, &sale, 1).await;
    let live = app.app().live();
    let booking = live.booking_keys_page(event_id(&sale), 0, 10).await.unwrap().1.remove(0);
    let _: i64 = command(app.config(), &["HSET", &booking, "idempotencyKey", "one-click"]).await;
    let before = contents(&app, &sale).await;
    let mut connection = live_store(app.config()).await;
    let mut writes = async || {
        let info: String = redis::cmd("INFO").arg("persistence").query_async(&mut connection).await.unwrap();
        let changes = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        changes.unwrap().trim().parse::<u64>().unwrap()
    };

    for (key, tag) in [("one-click", "REPLAYED"), ("another", "ALREADY_RESERVED")] {
        for (waits, expected) in [("", 0), ("1", 1)] {
            let written = writes().await;
            assert_eq!(reserve_again(&app, &sale, &booking, key, waits).await, tag);
            assert_eq!(writes().await - written, expected, "{tag} {waits:?}");
            assert_eq!(contents(&app, &sale).await, before);
        }
    }
    app.finish().await;
}

/// Runs the text of `reserve` for the buyer of this booking, and returns its tag.
async fn reserve_again(app: &TestApp, sale: &LiveSale, booking: &str, key: &str, waits: &str) -> String {
    let (event, product, keys) = (event_id(sale), product_id(sale, 0), app.app().live().keys());
    let mut call = redis::cmd("EVAL");
    call.arg(SOURCES[0].1).arg(7).arg(keys.status(event)).arg(keys.product(product, event)).arg(booking);
    call.arg(keys.winners(event, product)).arg(keys.bookings(event)).arg(keys.product_keys(event));
    call.arg(keys.journal(event));
    call.arg("nobody").arg(product.to_string()).arg(event.to_string()).arg("new").arg("1").arg(key).arg(waits);
    call.query_async::<Vec<String>>(&mut live_store(app.config()).await).await.unwrap().remove(0)
}
