//! What a seller reads of an event's orders: files, sums, and how it went over time.

use std::collections::HashSet;

use orbit::config::ExposeSecret;
use orbit::domain::ids::{EventId, UserId};
use orbit::domain::money::{self, Money};
use orbit::domain::order::OrderStatus;
use orbit::domain::reservation::Reservation;
use orbit::sale::ReservationRef;
use orbit::store::mongo::new_id;
use serde_json::{Value, json};

use crate::harness::process::OrbitProcess;
use crate::harness::{Actor, LiveSale, TestApp, eventually};

/// Midnight, the first of January 2026.
const MIDNIGHT_MS: i64 = 1_767_225_600_000;
const MINUTE_MS: i64 = 60_000;

/// A reservation of the first product by a buyer of its own.
fn reservation(sale: &LiveSale, status: OrderStatus, quantity: u32, returned: u32, minutes: i64) -> Reservation {
    Reservation {
        id: uuid::Uuid::now_v7().to_string(),
        user: UserId::from_bytes(new_id()),
        product: sale.products[0].parse().unwrap(),
        event: sale.event.parse().unwrap(),
        quantity,
        price: Money { minor: 1_050, currency: money::currency("INR").unwrap() },
        status,
        booked_at_ms: MIDNIGHT_MS + minutes * MINUTE_MS,
        expires_at_ms: None,
        returned,
        slot_kept: false,
        revision: 1,
        idempotency_key: String::new(),
        operation: String::new(),
    }
}

async fn prepared(app: &TestApp, title: &str) -> LiveSale {
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    let product = seller.add_product(&event, title, "10.50", 100).await;
    LiveSale { seller, event, products: vec![product] }
}

async fn write(app: &TestApp, reservations: &[Reservation]) {
    for page in reservations.chunks(500) {
        let written = app.app().mongo().orders.upsert(page).await.unwrap();
        assert_eq!(written.confirmed, page.len());
    }
}

fn path(sale: &LiveSale, rest: &str) -> String {
    format!("/api/seller/events/{}/{rest}", sale.event)
}

/// Every kind of order: three confirmed, of one of which a part was given back; one unpaid; one of each that is over.
fn of_every_kind(sale: &LiveSale) -> Vec<Reservation> {
    vec![
        reservation(sale, OrderStatus::Confirmed, 1, 0, 0),
        reservation(sale, OrderStatus::Confirmed, 5, 2, 0),
        reservation(sale, OrderStatus::Confirmed, 2, 0, 61),
        reservation(sale, OrderStatus::PendingPayment, 4, 0, 62),
        reservation(sale, OrderStatus::Cancelled, 7, 7, 63),
        reservation(sale, OrderStatus::Expired, 8, 8, 64),
    ]
}

#[tokio::test]
async fn an_export_is_a_table_of_which_a_spreadsheet_runs_nothing() {
    let app = TestApp::start().await;
    let title = "=HYPERLINK(\"https://evil.example\",\"a, b\")";
    let sale = prepared(&app, title).await;
    write(&app, &of_every_kind(&sale)).await;

    let reply = sale.seller.get(&path(&sale, "orders.csv")).await;

    assert_eq!(reply.headers["content-type"], "text/csv; charset=utf-8; header=present");
    let disposition = format!("attachment; filename=\"orders-{}.csv\"", sale.event);
    assert_eq!(reply.headers["content-disposition"], disposition);
    let text = reply.expect(200).as_str().unwrap().to_owned();
    assert_eq!(text.matches("\r\n").count(), 7);
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = table.headers().unwrap().iter().map(ToOwned::to_owned).collect();
    assert_eq!(&header[..5], ["orderId", "reservationId", "userId", "productId", "productTitle"]);
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row[4] == format!("'{title}")));
    let oldest: Vec<&str> = rows[3].iter().skip(5).collect();
    assert_eq!(&oldest[..6], ["CONFIRMED", "2", "0", "10.5", "1050", "INR"]);
    assert_eq!(oldest[6], "2026-01-01T01:01:00.000Z");

    let reply = sale.seller.get(&path(&sale, "orders.ndjson")).await;
    assert_eq!(reply.headers["content-type"], "application/x-ndjson");
    let text = reply.expect(200).as_str().unwrap().to_owned();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    // For programs a text is what it is.
    assert!(lines.iter().all(|line| line["productTitle"] == title));
    assert_eq!((&lines[0]["status"], &lines[0]["priceMinor"]), (&json!("EXPIRED"), &json!(1_050)));
    app.finish().await;
}

#[tokio::test]
async fn an_export_has_every_order_once_however_many_pages_it_takes() {
    let app = TestApp::start().await;
    let sale = prepared(&app, "A product").await;
    // Many in the same millisecond: the pages are told apart by ids.
    let many: Vec<_> = (0..2_345).map(|number| reservation(&sale, OrderStatus::Confirmed, 1, 0, number % 3)).collect();
    write(&app, &many).await;

    let text = sale.seller.get(&path(&sale, "orders.csv")).await.expect(200).as_str().unwrap().to_owned();

    let mut table = csv::Reader::from_reader(text.as_bytes());
    let found: Vec<String> = table.records().map(|row| row.unwrap()[1].to_owned()).collect();
    assert_eq!(found.len(), many.len());
    let found: HashSet<String> = found.into_iter().collect();
    assert_eq!(found, many.into_iter().map(|one| one.id).collect());
    let empty = prepared(&app, "A product").await;
    let text = empty.seller.get(&path(&empty, "orders.csv")).await.expect(200).as_str().unwrap().to_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    app.finish().await;
}

/// The suite plays a small one; `ORBIT_TEST_EXPORT=1000000 cargo test --test it a_large_export` a large one.
#[tokio::test]
async fn a_large_export_takes_no_more_memory_than_a_small_one_and_has_every_order() {
    const MEMORY_MIB_MAX: u64 = 16;
    let count: usize = std::env::var("ORBIT_TEST_EXPORT").map_or(20_000, |text| text.parse().unwrap());
    let app = TestApp::start().await;
    let (sale, small) = (prepared(&app, &"A long title. ".repeat(7)).await, prepared(&app, "A product").await);
    let made = |sale: &LiveSale, minute: i64| reservation(sale, OrderStatus::Confirmed, 1, 0, minute);
    write(&app, &[made(&small, 0)]).await;
    for first in (0..count).step_by(500) {
        let page: Vec<_> = (first..count.min(first + 500)).map(|number| made(&sale, number as i64 / 7)).collect();
        write(&app, &page).await;
    }
    let process = OrbitProcess::start(app.config()).await;
    let there = sale.seller.at(process.url.clone());
    let small_one = small.seller.at(process.url.clone());
    for kind in ["orders.csv", "orders.ndjson"] {
        assert!(streamed(&small_one, &path(&small, kind)).await.0 > 0);
    }
    let before = process.peak_mib();

    for (kind, header) in [("orders.csv", 1), ("orders.ndjson", 0)] {
        let (lines, bytes) = streamed(&there, &path(&sale, kind)).await;
        assert_eq!(lines, count + header, "{kind}");
        assert!(bytes > count * 200, "{kind}: {bytes} bytes");
        eprintln!(
            "{kind}: {bytes} bytes; the service held {before} MiB before, at most {} MiB then",
            process.peak_mib()
        );
    }

    let peak = process.peak_mib();
    assert!(peak < before + MEMORY_MIB_MAX, "{before} MiB before the exports, {peak} MiB after them");
    process.kill().await;
    app.finish().await;
}

/// Reads an export as it comes, and keeps nothing of it: its lines, and its bytes.
async fn streamed(by: &Actor, path: &str) -> (usize, usize) {
    let mut answer = by.request(reqwest::Method::GET, path).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let (mut lines, mut bytes) = (0, 0);
    while let Some(piece) = answer.chunk().await.unwrap() {
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
        bytes += piece.len();
    }
    (lines, bytes)
}

#[tokio::test]
async fn an_export_that_fails_on_its_way_is_cut_off() {
    let app = TestApp::start().await;
    let sale = prepared(&app, "A product").await;
    let many: Vec<_> = (0..1_500).map(|number| reservation(&sale, OrderStatus::Confirmed, 1, 0, number)).collect();
    write(&app, &many).await;
    // The oldest one, which stands on the second page, cannot be read.
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    let orders = client.database(&app.config().mongo.database).collection::<bson::Document>("orders");
    let oldest = bson::doc! { "reservationId": &many[0].id };
    orders.update_one(oldest, bson::doc! { "$set": { "currency": "???" } }).await.unwrap();

    let request = sale.seller.request(reqwest::Method::GET, &path(&sale, "orders.csv"));
    let cut = Actor::try_send(request).await;

    assert!(cut.is_err(), "a part was taken for the whole");
    app.finish().await;
}

#[tokio::test]
async fn only_what_is_confirmed_and_still_held_is_revenue() {
    let app = TestApp::start().await;
    let sale = prepared(&app, "A product").await;
    write(&app, &of_every_kind(&sale)).await;
    let analytics = format!("/api/seller/events/booking/analytics/{}", sale.event);

    let analytics = sale.seller.get(&analytics).await.expect(200)["analytics"].clone();

    assert_eq!((&analytics["totalOrders"], &analytics["unitsSold"]), (&json!(6), &json!(6)));
    assert_eq!(analytics["totalRevenueMinor"], 6 * 1_050);
    let line = |status: &str| {
        let lines = analytics["totalsByStatus"].as_array().unwrap();
        lines.iter().find(|line| line["status"] == status).unwrap().clone()
    };
    let total = |status, orders, units: i64| json!({ "status": status, "currency": "INR", "orders": orders, "units": units, "amountMinor": units * 1_050 });
    assert_eq!(line("CONFIRMED"), total("CONFIRMED", 3, 6));
    assert_eq!(line("PENDING_PAYMENT"), total("PENDING_PAYMENT", 1, 4));
    assert_eq!(line("CANCELLED"), total("CANCELLED", 1, 0));
    assert_eq!(line("EXPIRED"), total("EXPIRED", 1, 0));
    app.finish().await;
}

#[tokio::test]
async fn a_series_counts_what_was_booked_in_each_span() {
    let app = TestApp::start().await;
    let sale = prepared(&app, "A product").await;
    write(&app, &of_every_kind(&sale)).await;
    let series = |query: &'static str| {
        let path = path(&sale, &format!("analytics/series{query}"));
        let seller = sale.seller.clone();
        async move { seller.get(&path).await }
    };
    let span = |at: &str, orders: u64, units: i64| json!({ "at": at, "orders": orders, "units": units, "revenueMinor": units * 1_050, "currency": "INR" });

    let hours = series("").await.expect(200);
    assert_eq!(hours["span"], "hour");
    let expected = [span("2026-01-01T00:00:00Z", 2, 4), span("2026-01-01T01:00:00Z", 1, 2)];
    assert_eq!(hours["series"], json!(expected));
    let minutes = series("?span=minute&from=2026-01-01T01:00:00Z").await.expect(200);
    assert_eq!(minutes["series"], json!([span("2026-01-01T01:01:00Z", 1, 2)]));
    let none = series("?span=minute&before=2026-01-01T00:00:00Z").await.expect(200);
    assert_eq!(none["series"], json!([]));
    for broken in ["?span=second", "?from=yesterday", "?before=2026-01-01"] {
        series(broken).await.refused(400, "validation_failed");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_product_sells_through_what_was_ever_offered() {
    let app = TestApp::start().await;
    let sale = prepared(&app, "A product").await;
    let unsold = sale.seller.add_product(&sale.event, "Unsold", "10", 3).await;
    sale.control("Live").await.expect(200);
    let buyer = app.buyer().await;
    for one in [&buyer, &app.buyer().await] {
        one.post(&sale.purchase(0)).await.expect(201);
    }
    let event = app.app().catalogue().event(sale.event.parse().unwrap()).await.unwrap();
    let sales = app.app().sale();
    sales.restock(&event, sale.products[0].parse().unwrap(), "more".to_owned(), 28).await.unwrap();
    eventually("the orders are there", || async {
        app.app().mongo().orders.count_of_event(sale.event.parse().unwrap()).await.unwrap() == 2
    })
    .await;

    let listed = sale.seller.get(&path(&sale, "analytics/products")).await.expect(200);

    let products = listed["products"].as_array().unwrap();
    assert_eq!(products.len(), 2);
    let first = json!({
        "productId": sale.products[0], "title": "A product", "unitsOffered": 128, "unitsConfirmed": 2, "unitsPending": 0,
        "sellThrough": 0.0156, "revenueByCurrency": { "INR": 2_100 },
    });
    assert_eq!(products[0], first);
    assert_eq!((&products[1]["productId"], &products[1]["sellThrough"]), (&json!(unsold), &json!(0.0)));
    cancel(&app, sale.event.parse().unwrap(), &buyer, &sale).await;
    eventually("what is given back is no revenue", || async {
        let listed = sale.seller.get(&path(&sale, "analytics/products?limit=1")).await.expect(200);
        listed["products"][0]["revenueByCurrency"] == json!({ "INR": 1_050 }) && listed["nextCursor"].is_string()
    })
    .await;
    app.finish().await;
}

async fn cancel(app: &TestApp, event: EventId, buyer: &Actor, sale: &LiveSale) {
    let product = sale.products[0].parse().unwrap();
    let order = app.app().mongo().orders.of_buyer(event, product, buyer.id.parse().unwrap()).await.unwrap().unwrap();
    app.app().sale().cancel(&ReservationRef::from(&order), None, None).await.unwrap();
}
