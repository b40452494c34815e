//! A large sale: opened, sold, settled and cleaned up page by page, whatever its size.
//!
//! The suite plays a small one. `ORBIT_TEST_PRODUCTS=100000 ORBIT_TEST_RESERVATIONS=1000000 cargo test --test it large`
//! plays the size that Orbit is built for, and then also holds the service to its memory and Redis to its slow log.

use std::time::Instant;

use futures::StreamExt;
use orbit::domain::event::SalePhase;
use orbit::domain::ids::UserId;
use orbit::domain::reservation::{ReserveOutcome, ReserveRequest};
use orbit::store::mongo::new_id;

use super::{assert_only_the_status_is_left, command, event_id, phase, prepared_large, product_id, without_hurry};
use crate::harness::process::OrbitProcess;
use crate::harness::{self, LiveSale, TestApp};

const MEMORY_MIB_MAX: u64 = 256;
const COMMAND_MICROS_MAX: &str = "10000";
/// Waiting falls on any command, even on one of 15 microseconds; work that is too long is done in every call of its kind. The
/// rarest kind that grows with the sale, a batch of an opening, is one in about a thousand.
const CALLS_FOR_EACH_SLOW: u64 = 5_000;

fn size(name: &str, small: usize) -> (usize, bool) {
    std::env::var(name).map_or((small, false), |text| (text.parse().unwrap(), true))
}

/// Reservations by buyers of their own, spread over the products.
async fn sell(app: &TestApp, sale: &LiveSale, count: usize) {
    let event = event_id(sale);
    let products: Vec<_> = (0..sale.products.len()).map(|number| product_id(sale, number)).collect();
    futures::stream::iter(0..count)
        .map(|number| {
            let request = ReserveRequest {
                user: UserId::from_bytes(new_id()),
                product: products[number % products.len()],
                event,
                quantity: 1,
                reservation_id: uuid::Uuid::now_v7().to_string(),
                idempotency_key: String::new(),
            };
            async move {
                let outcome = app.app().sale().reserve(&request).await.unwrap();
                assert!(matches!(outcome, ReserveOutcome::Reserved(_)), "{outcome:?}");
            }
        })
        .buffer_unordered(64)
        .for_each(|()| std::future::ready(()))
        .await;
}

/// How many scripts the server has run.
async fn scripts_run(app: &TestApp) -> u64 {
    let stats: String = command(app.config(), &["INFO", "commandstats"]).await;
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap();
    line.split(',').next().unwrap().parse().unwrap()
}

/// Time for which the host of this machine, if it is a virtual one, let its processors wait.
fn stolen_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    // Hundredths of a second; the eighth of the columns.
    stat.lines().next().unwrap().split_whitespace().nth(8).unwrap().parse::<u64>().unwrap() * 10
}

/// The slow log counts the time on the wall. On a machine that is busier than it has cores, most of that is waiting: for a
/// turn, for pages that a forked child shares, and for a host that runs others too. A real-time priority (which root may give)
/// and no forks take the first two away.
async fn let_the_slow_log_tell_of_commands(app: &TestApp, pid: u32) {
    let _: () = command(app.config(), &["CONFIG", "SET", "auto-aof-rewrite-percentage", "0"]).await;
    let given = std::process::Command::new("chrt").args(["-f", "-p", "50", &pid.to_string()]).status();
    if !given.is_ok_and(|status| status.success()) {
        eprintln!("Redis could not be given a real-time priority: its slow log tells of the machine as well");
    }
}

#[tokio::test]
async fn a_large_sale_is_opened_sold_settled_and_cleaned_up_in_bounded_steps() {
    let (products, _) = size("ORBIT_TEST_PRODUCTS", 1_500);
    let (reservations, full) = size("ORBIT_TEST_RESERVATIONS", 6_000);
    let (redis, mongo) = (harness::own_redis().await, harness::own_mongo().await);
    let mut config = without_hurry(harness::config().await);
    config.live.url = redis.url().into();
    config.mongo.uri = mongo.uri().into();
    let process = OrbitProcess::start(&config).await;
    // This process only prepares and buys; the other one opens, drains and settles.
    config.sale.drain_interval_ms = 3_600_000;
    config.sale.recovery_interval_ms = 3_600_000;
    let app = TestApp::with(config).await;
    let sale = prepared_large(&app, products, u32::try_from(reservations / products + 1).unwrap()).await;
    let there = LiveSale {
        seller: sale.seller.at(process.url.clone()),
        event: sale.event.clone(),
        products: sale.products.clone(),
    };
    let _: () = command(app.config(), &["CONFIG", "SET", "slowlog-log-slower-than", COMMAND_MICROS_MAX]).await;
    let _: () = command(app.config(), &["CONFIG", "SET", "slowlog-max-len", "1024"]).await;
    if full {
        let_the_slow_log_tell_of_commands(&app, redis.pid().unwrap()).await;
    }

    let (started, stolen) = (Instant::now(), stolen_ms());
    there.control("Live").await.expect(200);
    let opened = started.elapsed();
    sell(&app, &sale, reservations).await;
    let sold = started.elapsed() - opened;
    let ending = Instant::now();
    let mut unavailable = 0;
    let ended = loop {
        let answer = there.control("End").await;
        match answer.status {
            202 => {}
            // One server for everything on a machine of two cores may be too slow for a deadline; the seller ends again.
            503 if full => unavailable += 1,
            _ => break answer.expect(200),
        }
    };
    let settled = ending.elapsed();

    assert_eq!((&ended["orders"], &ended["deadLetters"]), (&reservations.into(), &0.into()));
    assert_eq!(phase(app.app(), &sale).await, SalePhase::Settled);
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    let (peak, slow) = (process.peak_mib(), command::<u64>(app.config(), &["SLOWLOG", "LEN"]).await);
    let calls = scripts_run(&app).await;
    let worst: redis::Value = command(app.config(), &["SLOWLOG", "GET", "3"]).await;
    eprintln!(
        "{products} products opened in {opened:?}, {reservations} reservations sold in {sold:?}, the rest settled in \
         {settled:?}; {unavailable} answers were 503; the service held at most {peak} MiB; {slow} slow commands, {calls} calls of scripts, {} ms stolen by \
         the host {worst:?}",
        stolen_ms() - stolen
    );
    if full {
        assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
        assert!(slow * CALLS_FOR_EACH_SLOW <= calls, "{slow} of {calls} calls: {worst:?}");
    }
    process.kill().await;
    app.finish().await;
}
