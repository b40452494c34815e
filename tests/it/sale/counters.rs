//! What a seller sees of a running sale.

use serde_json::{Value, json};

use super::{calm_app, prepared_large, stock_up};
use crate::harness::{Actor, LiveSale, TestApp, eventually};

async fn numbers(sale: &LiveSale, query: &str) -> Value {
    sale.seller.get(&format!("/api/seller/events/{}/saleStatus{query}", sale.event)).await.expect(200)
}

fn counted(body: &Value) -> Vec<Value> {
    body["counters"].as_array().unwrap().clone()
}

/// A running sale in which reservations are to be paid, of products at 199.99.
async fn sale_with_payment(app: &TestApp, window_s: u32) -> LiveSale {
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    let plan = json!({ "paymentWindow": window_s });
    seller.put_json(&format!("/api/seller/events/update/{event}"), plan).await.expect(200);
    let mut products = Vec::new();
    for number in 0..2 {
        products.push(seller.add_product(&event, &format!("Product {number}"), "199.99", 5).await);
    }
    let sale = LiveSale { seller, event, products };
    sale.control("Live").await.expect(200);
    sale
}

#[tokio::test]
async fn a_seller_sees_what_is_sold_and_what_only_waits_for_payment() {
    let app = calm_app().await;
    let (first, second): (Actor, Actor) = (app.buyer().await, app.buyer().await);
    let paid_at_once = app.live_sale(1, 5).await;
    first.post(&paid_at_once.purchase(0)).await.expect(201);
    second.post(&paid_at_once.purchase(0)).await.expect(201);
    let body = numbers(&paid_at_once, "").await;
    let expected = json!({
        "productId": paid_at_once.products[0], "units": 5, "stock": 3, "held": 0, "confirmed": 2,
        "priceMinor": 19_999, "revenueMinor": 39_998, "currency": "INR",
    });
    assert_eq!(counted(&body), [expected]);
    let totals = json!({
        "units": 5, "stock": 3, "held": 0, "confirmed": 2, "revenueByCurrency": { "INR": 39_998 },
    });
    assert_eq!(body["totals"], totals);
    // What was there before is there still.
    assert_eq!((&body["status"], &body["reservations"], &body["products"]), (&json!("LIVE"), &json!(2), &json!(1)));

    let held = sale_with_payment(&app, 2).await;
    first.post(&held.purchase(0)).await.expect(201);
    let body = numbers(&held, "").await;
    let of_first = &counted(&body)[0];
    assert_eq!((&of_first["stock"], &of_first["held"], &of_first["confirmed"]), (&json!(4), &json!(1), &json!(0)));
    assert_eq!((&of_first["revenueMinor"], &body["totals"]["revenueByCurrency"]["INR"]), (&json!(0), &json!(0)));
    eventually("the hold has run out", || async { numbers(&held, "").await["totals"]["stock"] == 10 }).await;
    assert_eq!(numbers(&held, "").await["totals"]["held"], 0);

    held.control("Pause").await.expect(200);
    assert_eq!(counted(&numbers(&held, "").await).len(), 2);
    held.control("End").await.expect(200);
    let over = numbers(&held, "").await;
    assert!(counted(&over).is_empty() && over.get("totals").is_none(), "{over}");
    app.finish().await;
}

#[tokio::test]
async fn the_counters_come_in_pages_and_the_sums_are_of_all() {
    let app = calm_app().await;
    let sale = prepared_large(&app, 25, 3).await;
    assert!(counted(&numbers(&sale, "").await).is_empty(), "nothing runs yet");
    sale.control("Live").await.expect(200);
    let buyer = app.buyer().await;
    buyer.post(&sale.purchase(24)).await.expect(201);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let body = numbers(&sale, &format!("?limit=10{cursor}")).await;
        seen.extend(counted(&body).iter().map(|one| one["productId"].as_str().unwrap().to_owned()));
        assert_eq!((&body["totals"]["units"], &body["totals"]["confirmed"]), (&json!(75), &json!(1)));
        match body["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let mut all = sale.products.clone();
    all.sort_unstable();
    assert_eq!(seen, all);
    let path = format!("/api/seller/events/{}/saleStatus?limit=0", sale.event);
    sale.seller.get(&path).await.refused(400, "validation_failed");
    app.finish().await;
}

#[tokio::test]
async fn a_very_large_sale_is_summed_for_those_who_ask() {
    let app = calm_app().await;
    let mut sale = prepared_large(&app, 1, 2).await;
    sale.products.extend(stock_up(&app, &sale, 2_000, 2).await);
    sale.control("Live").await.expect(200);
    let body = numbers(&sale, "?limit=1").await;
    assert_eq!((counted(&body).len(), body.get("totals")), (1, None));
    assert_eq!(numbers(&sale, "?limit=1&totals=true").await["totals"]["units"], 4_002);
    app.finish().await;
}
