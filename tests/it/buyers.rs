//! What buyers are told: what is coming, what time it is, and what to do about a reservation.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::harness::{self, Actor, LiveSale, TestApp, eventually};

/// An application that opens and ends nothing by itself.
async fn idle_app() -> TestApp {
    let mut config = harness::config().await;
    config.sale.schedule_interval_ms = 3_600_000;
    TestApp::with(config).await
}

async fn prepared(seller: Actor, plan: Value) -> LiveSale {
    let event = seller.create_event("Spring drop").await;
    seller.put_json(&format!("/api/seller/events/update/{event}"), plan).await.expect(200);
    let products = vec![seller.add_product(&event, "A product", "199.99", 5).await];
    LiveSale { seller, event, products }
}

async fn in_ms(app: &TestApp, ms: i64) -> DateTime<Utc> {
    app.app().sale().live_now().await.unwrap() + chrono::Duration::milliseconds(ms)
}

fn number(body: &Value, field: &str) -> i64 {
    body[field].as_i64().unwrap_or_else(|| panic!("{field} is no number in {body}"))
}

async fn listed(buyer: &Actor, query: &str) -> Vec<String> {
    let body = buyer.get(&format!("/api/buyer/events{query}")).await.expect(200);
    body["events"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_sale_that_is_to_open_by_itself_is_announced_and_nothing_else_is() {
    let app = idle_app().await;
    let (seller, buyer) = (app.approved_seller().await, app.buyer().await);
    let soon = in_ms(&app, 3_600_000).await;
    let sale = prepared(seller.clone(), json!({ "scheduledAt": soon, "autoOpen": true, "paymentWindow": 90 })).await;
    let by_hand = prepared(seller.clone(), json!({ "scheduledAt": soon })).await;
    let unapproved = prepared(app.seller().await, json!({ "scheduledAt": soon, "autoOpen": true })).await;

    let shown = |sale: &LiveSale| format!("/api/buyer/event/{}", sale.event);
    for hidden in [&by_hand, &unapproved] {
        buyer.get(&shown(hidden)).await.refused(404, "not_found");
        buyer.get(&format!("{}/status", shown(hidden))).await.refused(404, "not_found");
    }
    assert_eq!(listed(&buyer, "?upcoming=true").await, [sale.event.clone()]);
    assert!(listed(&buyer, "").await.is_empty());
    buyer.get("/api/buyer/events?upcoming=soon").await.refused(400, "validation_failed");

    let page = buyer.get(&shown(&sale)).await.expect(200);
    let (event, product) = (&page["event"], &page["products"][0]);
    assert_eq!((&event["saleStatus"], &event["phase"]), (&json!("NOT_STARTED"), &json!("DRAFT")));
    assert_eq!((&product["availableStock"], &product["totalStock"]), (&json!(0), &json!(5)));
    assert_eq!((&event["countdownTo"], &event["paymentWindow"]), (&json!("opens"), &json!(90)));
    let left = number(event, "countdownMs");
    assert!((3_500_000..=3_600_000).contains(&left), "{event}");
    let server = DateTime::parse_from_rfc3339(event["serverTime"].as_str().unwrap()).unwrap();
    assert_eq!(number(event, "serverTimeMs"), server.timestamp_millis());
    assert!((soon.timestamp_millis() - number(event, "serverTimeMs") - left).abs() <= 1, "{event}");
    let refused = buyer.post(&sale.purchase(0)).await;
    refused.refused(409, "sale_not_active");
    assert_eq!(refused.body["currentStatus"], "NOT_STARTED");

    sale.control("Live").await.expect(200);
    assert!(listed(&buyer, "?upcoming=true").await.is_empty());
    assert_eq!(listed(&buyer, "?upcoming=false").await, [sale.event.clone()]);
    app.finish().await;
}

#[tokio::test]
async fn a_running_sale_counts_down_to_its_end_and_is_over_then_for_everybody() {
    let app = idle_app().await;
    let (seller, buyer) = (app.approved_seller().await, app.buyer().await);
    let ends = in_ms(&app, 3_000).await;
    let sale = prepared(seller, json!({ "scheduledAt": in_ms(&app, 0).await, "endsAt": ends })).await;
    sale.control("Live").await.expect(200);
    let path = format!("/api/buyer/event/{}", sale.event);
    let status = async || buyer.get(&format!("{path}/status")).await.expect(200);

    let running = status().await;
    assert_eq!((&running["status"], &running["countdownTo"]), (&json!("LIVE"), &json!("ends")));
    assert_eq!((&running["phase"], &running["endsAt"]), (&json!("LIVE"), &json!(ends)));
    assert!((0..=3_000).contains(&number(&running, "countdownMs")), "{running}");
    assert_eq!(sale.available(&buyer, 0).await, 5);

    // No process ends it, and yet it is over.
    eventually("it is over", || async { status().await["status"] == "STOPPED" }).await;
    assert!(in_ms(&app, 0).await >= ends);
    assert!(status().await.get("countdownMs").is_none());
    let page = buyer.get(&path).await.expect(200);
    assert_eq!((&page["event"]["saleStatus"], &page["products"][0]["availableStock"]), (&json!("STOPPED"), &json!(0)));
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_is_told_how_long_a_hold_lasts_and_what_to_do_about_it() {
    let app = idle_app().await;
    let (seller, buyer, patient) = (app.approved_seller().await, app.buyer().await, app.buyer().await);
    let sale = prepared(seller.clone(), json!({ "paymentWindow": 3 })).await;
    sale.control("Live").await.expect(200);
    let held = buyer.post(&sale.purchase(0)).await.expect(201);
    assert_eq!((&held["status"], &held["returned"]), (&json!("PENDING_PAYMENT"), &json!(0)));
    assert_eq!((&held["remainingSeconds"], &held["next"]["action"]), (&json!(3), &json!("pay")));
    assert_eq!(held["next"]["until"], held["expiresAt"]);
    let expires = DateTime::parse_from_rfc3339(held["expiresAt"].as_str().unwrap()).unwrap();
    assert_eq!(expires.timestamp_millis() - number(&held, "bookedAtMs"), 3_000);
    let again = buyer.post(&sale.purchase(0)).await;
    again.refused(409, "already_booked");
    assert_eq!(again.body["reservation"]["expiresAt"], held["expiresAt"]);
    assert!((1..=3).contains(&number(&again.body["reservation"], "remainingSeconds")), "{}", again.body);

    let path = format!("/api/buyer/event/{}/reservation/{}", sale.event, sale.products[0]);
    let own = async || buyer.get(&path).await.expect(200)["reservation"].clone();
    let orders = async || buyer.get("/api/buyer/orders").await.expect(200)["orders"].clone();
    assert_eq!(own().await["next"]["action"], "pay");
    eventually("the hold is an order", || async { orders().await.as_array().unwrap().len() == 1 }).await;
    let order = orders().await[0].clone();
    assert_eq!((&order["status"], &order["expiresAt"]), (&json!("PENDING_PAYMENT"), &held["expiresAt"]));

    eventually("it runs out", || async { own().await["status"] == "EXPIRED" }).await;
    let gone = own().await;
    assert_eq!((&gone["next"]["action"], &gone["returned"]), (&json!("reserve_again"), &json!(1)));
    assert!(gone.get("remainingSeconds").is_none() && gone["next"].get("until").is_none(), "{gone}");
    eventually("the order says so", || async { orders().await[0]["next"]["action"] == "reserve_again" }).await;

    let at_once = prepared(seller, json!({ "paymentWindow": 0 })).await;
    at_once.control("Live").await.expect(200);
    let confirmed = patient.post(&at_once.purchase(0)).await.expect(201);
    assert_eq!((&confirmed["status"], &confirmed["next"]["action"]), (&json!("CONFIRMED"), &json!("none")));
    assert!(confirmed.get("expiresAt").is_none() && confirmed.get("remainingSeconds").is_none(), "{confirmed}");
    app.finish().await;
}
