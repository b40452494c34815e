//! The load tool against a service that keeps the contract, and against one that breaks it in one way at a time: what
//! the tool is for is to notice.

mod cli;
mod shop;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use orbit::load::client::{Api, Credentials};
use orbit::load::plan::{Plan, Scenario};
use orbit::load::play::{Played, play};
use orbit::load::progress::Progress;

use shop::{Fault, Shop};

fn small(scenario: Scenario) -> Plan {
    Plan {
        scenario,
        buyers: 60,
        products: 8,
        workers: 8,
        connections_max: 60,
        rate_per_s: 300,
        duration: Duration::from_millis(500),
        ..Plan::default()
    }
}

async fn played(shop: &Shop, plan: &Plan) -> Played {
    let api = Api::new(&shop.address(), Duration::from_secs(5)).unwrap();
    let admin = Credentials { email: shop::ADMIN.to_owned(), password: "x".to_owned() };
    play(&api, &admin, plan, &Progress::new(true), async |_: &str| None).await.unwrap()
}

/// What breaks when the service has this fault.
async fn broken_by(fault: Fault) -> BTreeSet<&'static str> {
    let shop = Shop::open(Some(fault)).await;
    let report = played(&shop, &small(Scenario::Rush)).await.report;
    let broken: BTreeSet<_> = report.invariants.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    assert_eq!(report.ok, broken.is_empty());
    broken
}

#[tokio::test]
async fn a_sound_service_passes_a_rush() {
    let shop = Shop::open(None).await;
    let report = played(&shop, &small(Scenario::Rush)).await.report;
    assert!(report.ok, "{}", report.table());
    assert_eq!((report.accepted, report.sold_out, report.errors, report.orders), (8, 52, 0, 8));
    assert!(report.latency.p50_ms > 0.0 && report.purchases_per_s > 0.0);
    assert_eq!(report.timeline.1.iter().map(|slice| slice.accepted + slice.refused).sum::<u64>(), 60);
}

#[tokio::test]
async fn the_same_seed_tries_the_same_products() {
    let wishes = async |seed| {
        let shop = Shop::open(None).await;
        played(&shop, &Plan { seed, ..small(Scenario::Rush) }).await;
        shop.wishes()
    };
    let first = wishes(5).await;
    assert_eq!(first.iter().sum::<usize>(), 61, "60 buyers, and one who comes after the end");
    assert_eq!(first, wishes(5).await);
    assert_ne!(first, wishes(6).await);
}

#[tokio::test]
async fn stock_lasts_through_a_steady_sale() {
    let shop = Shop::open(None).await;
    let report = played(&shop, &small(Scenario::Steady)).await.report;
    assert!(report.ok, "{}", report.table());
    assert_eq!((report.attempts, report.accepted, report.orders), (150, 150, 150));
    assert!(report.duration_ms >= 495.0, "{}", report.duration_ms);
}

#[tokio::test]
async fn nothing_is_left_when_a_sold_out_sale_is_measured() {
    let shop = Shop::open(None).await;
    let report = played(&shop, &small(Scenario::SoldOut)).await.report;
    assert!(report.ok, "{}", report.table());
    let counts = (report.attempts, report.accepted, report.sold_out, report.accepted_before, report.orders);
    assert_eq!(counts, (150, 0, 150, 8, 8));
}

#[tokio::test]
async fn a_stall_shows_in_the_latency_of_those_who_came_meanwhile() {
    let shop = Shop::open(Some(Fault::StallsOnce(Duration::from_millis(200)))).await;
    let report = played(&shop, &small(Scenario::Steady)).await.report;
    // Sixty buyers come in those 200 ms. Had they waited to come, one slow purchase would have been seen.
    assert!(report.latency.p95_ms > 100.0, "{}", report.table());
}

#[tokio::test]
async fn an_oversold_unit_is_noticed() {
    assert!(broken_by(Fault::Oversells).await.contains("no product sold beyond its units"));
}

#[tokio::test]
async fn a_lost_order_is_noticed() {
    let broken = broken_by(Fault::LosesAnOrder).await;
    assert!(broken.contains("every accepted reservation is exactly one order"), "{broken:?}");
    assert!(broken.contains("accepted purchases equal settled orders"), "{broken:?}");
}

#[tokio::test]
async fn an_order_that_nobody_made_is_noticed() {
    assert!(broken_by(Fault::InventsAnOrder).await.contains("no order without an accepted purchase"));
}

#[tokio::test]
async fn a_rounded_price_is_noticed() {
    assert_eq!(broken_by(Fault::RoundsPrices).await, BTreeSet::from(["one price in catalogue, answer and order"]));
}

#[tokio::test]
async fn a_lost_unit_is_noticed() {
    assert_eq!(broken_by(Fault::LosesAUnit).await, BTreeSet::from(["no unit left over while a buyer was refused"]));
}

#[tokio::test]
async fn a_sale_that_goes_on_after_its_end_is_noticed() {
    assert!(broken_by(Fault::SellsAfterTheEnd).await.contains("a purchase after the end is refused"));
}

#[tokio::test]
async fn revenue_that_is_a_paisa_off_is_noticed() {
    assert_eq!(broken_by(Fault::MiscountsRevenue).await, BTreeSet::from(["analytics agree with the orders"]));
}

#[tokio::test]
async fn purchases_that_fail_are_noticed_counted_and_tolerated_if_asked_to() {
    let shop = Shop::open(Some(Fault::RefusesEveryTenth)).await;
    let report = played(&shop, &small(Scenario::Rush)).await.report;
    assert!(!report.ok);
    assert_eq!(report.errors_by_code, [("rate_limited".to_owned(), 6)].into());
    let shop = Shop::open(Some(Fault::RefusesEveryTenth)).await;
    let report = played(&shop, &Plan { errors_max: 6, ..small(Scenario::Rush) }).await.report;
    assert!(report.ok, "{}", report.table());
}

#[tokio::test]
async fn a_buyer_whose_answer_was_lost_asks_again_and_learns_it() {
    let shop = Shop::open(Some(Fault::LosesAnswers)).await;
    let report = played(&shop, &small(Scenario::Rush)).await.report;
    assert!(report.ok, "{}", report.table());
    assert_eq!((report.accepted, report.orders, report.errors), (8, 8, 0));
    assert_eq!(report.asked_again, shop.lost_answers.load(Ordering::Relaxed));
    assert!(report.asked_again > 0);
}

#[tokio::test]
async fn a_server_without_error_codes_can_be_measured_too() {
    let shop = Shop::open(Some(Fault::HasNoCodes)).await;
    let report = played(&shop, &small(Scenario::Rush)).await.report;
    assert!(report.ok, "{}", report.table());
    assert_eq!((report.accepted, report.sold_out), (8, 52));
}

#[tokio::test]
async fn a_refused_preparation_stops_the_run_and_says_which() {
    let shop = Shop::open(None).await;
    let api = Api::new(&shop.address(), Duration::from_secs(5)).unwrap();
    let admin = Credentials { email: "stranger@example.com".to_owned(), password: "x".to_owned() };
    let (plan, progress) = (small(Scenario::Rush), Progress::new(true));
    let error = play(&api, &admin, &plan, &progress, async |_: &str| None).await.unwrap_err().to_string();
    assert!(error.contains("signing in") && error.contains("HTTP 401"), "{error}");
}
