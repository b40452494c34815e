//! `orbit check` sees each invariant broken by hand, names it, and repairs what has one right answer.

use std::collections::BTreeSet;
use std::process::Output;
use std::time::Duration;

use orbit::domain::sale::SaleStatus;
use orbit::sale::check::Verdict;
use serde_json::Value;

use super::{command, event, event_id, product_id, reserve_directly, stock, without_hurry};
use crate::harness::process::{environment, orbit, text};
use crate::harness::{self, LiveSale, TestApp};

/// An application that neither drains nor repairs: what a test breaks stays broken.
async fn idle_app() -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.sale.drain_interval_ms = 600_000;
    config.sale.recovery_interval_ms = 600_000;
    TestApp::with(config).await
}

async fn run(app: &TestApp, arguments: &[&str]) -> Output {
    let mut process = orbit();
    process.arg("check").args(arguments).envs(environment(app.config(), 0));
    tokio::time::timeout(Duration::from_secs(60), process.output()).await.expect("it does not end").unwrap()
}

/// The numbers of the invariants that are violated now.
async fn violated(app: &TestApp, sale: &LiveSale) -> BTreeSet<u8> {
    let event = event(app.app(), sale).await;
    let checks = app.app().sale().check(&event).await.unwrap();
    checks.into_iter().filter(|check| check.verdict == Verdict::Violated).map(|check| check.number).collect()
}

#[tokio::test]
async fn each_invariant_that_is_broken_by_hand_is_named() {
    let app = idle_app().await;
    let seller = app.approved_seller().await;
    /// Commands in which words in capitals stand for keys, and the invariants that they break.
    type Damage = (&'static [&'static str], &'static [u8]);
    let damages: [Damage; 9] = [
        (&["DEL", "STATUS"], &[1]),
        (&["HSET", "BOOKING", "quantity", "2"], &[2, 4]),
        (&["HDEL", "BOOKING", "currency"], &[3, 4, 6]),
        (&["HINCRBY", "PRODUCT", "stock", "-1"], &[4]),
        (&["HINCRBY", "PRODUCT", "stock", "1"], &[4]),
        (&["HSET", "BOOKING", "price", "1"], &[5]),
        (&["SADD", "WINNERS", "somebody"], &[6]),
        (&["XTRIM", "JOURNAL", "MAXLEN", "0"], &[7, 8]),
        (&["DEL", "PRODUCT"], &[9]),
    ];
    for (damage, expected) in damages {
        let sale = super::prepared_by(seller.clone(), 1, 10).await;
        sale.control("Live").await.expect(200);
        reserve_directly(&app, &sale, 3).await;
        assert_eq!(violated(&app, &sale).await, BTreeSet::new(), "before {damage:?}");
        let (keys, event, product) = (app.app().live().keys(), event_id(&sale), product_id(&sale, 0));
        let bookings: Vec<String> = command(app.config(), &["SMEMBERS", &keys.bookings(event)]).await;
        let word = |word: &&'static str| match *word {
            "STATUS" => keys.status(event),
            "BOOKING" => bookings[0].clone(),
            "PRODUCT" => keys.product(product, event),
            "WINNERS" => keys.winners(event, product),
            "JOURNAL" => keys.journal(event),
            plain => plain.to_owned(),
        };
        let words: Vec<String> = damage.iter().map(word).collect();
        let _: redis::Value = command(app.config(), &words.iter().map(String::as_str).collect::<Vec<_>>()).await;

        assert_eq!(violated(&app, &sale).await, BTreeSet::from_iter(expected.iter().copied()), "{damage:?}");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_key_that_a_settled_sale_left_behind_is_named() {
    let app = idle_app().await;
    let sale = app.live_sale(1, 5).await;
    reserve_directly(&app, &sale, 2).await;
    sale.control("End").await.expect(200);
    assert_eq!(violated(&app, &sale).await, BTreeSet::new());
    let stray = app.app().live().keys().journal(event_id(&sale));
    let _: () = command(app.config(), &["SET", &stray, "left"]).await;

    assert_eq!(violated(&app, &sale).await, BTreeSet::from([10]));
    app.finish().await;
}

#[tokio::test]
async fn the_command_prints_a_line_for_each_invariant_and_its_status_says_whether_all_hold() {
    let app = idle_app().await;
    let sale = app.live_sale(2, 5).await;
    reserve_directly(&app, &sale, 3).await;

    let sound = run(&app, &[]).await;
    assert!(sound.status.success(), "{}", text(&sound));
    let said = String::from_utf8(sound.stdout).unwrap();
    assert!(said.contains(&sale.event) && said.contains("Every invariant that could be looked at holds."), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("  ok  ")).count(), 9, "{said}");

    // A unit disappears without a reservation.
    let product = app.app().live().keys().product(product_id(&sale, 0), event_id(&sale));
    let _: i64 = command(app.config(), &["HINCRBY", &product, "stock", "-1"]).await;
    let broken = run(&app, &[&sale.event]).await;
    assert_eq!(broken.status.code(), Some(1), "{}", text(&broken));
    let said = String::from_utf8(broken.stdout).unwrap();
    assert!(said.contains("  FAIL   4  ") && said.contains("            -> "), "{said}");

    let report: Value = serde_json::from_slice(&run(&app, &[&sale.event, "--json"]).await.stdout).unwrap();
    assert_eq!((&report["ok"], &report["events"][0]["checks"][3]["holds"]), (&false.into(), &false.into()));
    let unknown = run(&app, &["0123456789abcdef01234567"]).await;
    assert!(!unknown.status.success() && text(&unknown).contains("there is no event"), "{}", text(&unknown));
    app.finish().await;
}

#[tokio::test]
async fn a_repair_by_command_rebuilds_a_sale_that_the_live_store_lost() {
    let app = idle_app().await;
    let sale = app.live_sale(1, 5).await;
    reserve_directly(&app, &sale, 3).await;
    app.app().sale().drain(event_id(&sale), 0).await.unwrap();
    for key in app.app().live().scan_event_keys(event_id(&sale)).await.unwrap() {
        let _: i64 = command(app.config(), &["DEL", &key]).await;
    }
    assert_eq!(run(&app, &[&sale.event]).await.status.code(), Some(1));

    let repaired = run(&app, &[&sale.event, "--repair"]).await;

    assert!(repaired.status.success(), "{}", text(&repaired));
    assert_eq!(app.app().live().status(event_id(&sale)).await.unwrap(), SaleStatus::Paused);
    assert_eq!(stock(&app, &sale, 0).await, 2);
    sale.control("Resume").await.expect(200);
    sale.control("End").await.expect(200);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
