//! Payment: money arrives, reservations are confirmed, and what is kept is the price of the units held.

mod after_the_end;
mod asking;
mod callbacks;
mod check;
mod currencies;
mod gateway;
mod hang_ups;
mod kills;
mod refunds;
mod returns;
mod sandbox;
mod stalls;

use bson::Document;
use orbit::app::App;
use orbit::config::ExposeSecret;
use orbit::domain::ids::EventId;
use orbit::domain::order::{Order, OrderStatus};
use orbit::domain::payment::Payment;
use orbit::sale::ReservationRef;
use orbit::sale::check::{Check, Verdict};
use orbit::store::mongo::events::{EventChange, PlanChange};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, LiveSale, Reply, TestApp, eventually, pictures};

/// Of one unit, in minor units.
const PRICE: i64 = 10_000;
/// A payment window that no test sits out.
const LONG_S: u32 = 600;
/// The shortest one.
const SHORT_S: u32 = 1;

/// A live sale of one product, of which a buyer may have three units, and pays for them in a window.
async fn sale_to_be_paid(app: &TestApp, units: u32, window_s: u32) -> LiveSale {
    let sale = prepared(app, units, window_s).await;
    sale.control("Live").await.expect(200);
    sale
}

async fn prepared(app: &TestApp, units: u32, window_s: u32) -> LiveSale {
    prepared_at(app, (units, window_s), ("100", "INR")).await
}

/// As [`prepared`], at this price, with units and time enough.
async fn prepared_in(app: &TestApp, price: &str, currency: &str) -> LiveSale {
    prepared_at(app, (5, LONG_S), (price, currency)).await
}

async fn prepared_at(app: &TestApp, (units, window_s): (u32, u32), (price, currency): (&str, &str)) -> LiveSale {
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    let units = units.to_string();
    let text = [
        ("title", "A product"),
        ("description", "A product of a test"),
        ("price", price),
        ("currency", currency),
        ("frequency", units.as_str()),
        ("perBuyerLimit", "3"),
    ];
    let file = Some(("image", pictures::jpeg(64, 64)));
    let path = format!("/api/seller/events/{event}/registerProducts");
    let product = seller.form(Method::POST, &path, &text, file).await.expect(201);
    let plan = PlanChange { payment_window_s: Some(window_s), ..PlanChange::default() };
    let change = EventChange { plan, ..EventChange::default() };
    let id: EventId = event.parse().unwrap();
    app.app().mongo().events.update(id, &change).await.unwrap().unwrap();
    LiveSale { seller, event, products: vec![product["productId"].as_str().unwrap().to_owned()] }
}

/// Reserves units that are to be paid, and returns the reservation's id.
async fn reserve(buyer: &Actor, sale: &LiveSale, quantity: u32) -> String {
    let made = buyer.post_json(&sale.purchase(0), json!({ "quantity": quantity })).await.expect(201);
    assert_eq!(made["status"], "PENDING_PAYMENT");
    made["reservationId"].as_str().unwrap().to_owned()
}

fn reservation_path(sale: &LiveSale) -> String {
    format!("/api/buyer/event/{}/reservation/{}", sale.event, sale.products[0])
}

/// Asks to pay.
async fn ask(buyer: &Actor, sale: &LiveSale) -> Reply {
    buyer.post(&format!("{}/pay", reservation_path(sale))).await
}

/// Asks to pay, and returns the intent's id.
async fn intent(buyer: &Actor, sale: &LiveSale) -> String {
    ask(buyer, sale).await.expect(200)["intentId"].as_str().unwrap().to_owned()
}

async fn status(buyer: &Actor, sale: &LiveSale) -> Value {
    buyer.get(&reservation_path(sale)).await.expect(200)["reservation"]["status"].clone()
}

async fn until(buyer: &Actor, sale: &LiveSale, wanted: &str) {
    eventually(&format!("the reservation is {wanted}"), || async { status(buyer, sale).await == wanted }).await;
}

async fn payment(app: &App, reservation: &str) -> Payment {
    app.mongo().payments.by_reservation(reservation).await.unwrap().unwrap()
}

async fn order(app: &App, reservation: &str) -> Order {
    app.mongo().orders.by_reservation(reservation).await.unwrap().unwrap()
}

/// Awaits that there is nothing left to be done about a payment, and returns it.
async fn at_rest(app: &App, reservation: &str) -> Payment {
    eventually("nothing is left to be done", || async {
        // The marks first: one is taken off only after the payment was made due.
        let returned = app.mongo().returns.open(1_000).await.unwrap();
        let payment = payment(app, reservation).await;
        payment.applied.is_some() && payment.due_at.is_none() && returned.is_empty()
    })
    .await;
    payment(app, reservation).await
}

/// How the money of a payment ended: the outcome, and what went back.
fn ended(payment: &Payment) -> (&'static str, i64) {
    (payment.applied.unwrap().outcome.as_str(), payment.refunded_minor)
}

/// Cancels a reservation, or some of its units, under an operation of its own.
async fn cancel(app: &App, reservation: &str, units: Option<u32>, operation: &str) {
    eventually("the order is there", || async {
        app.mongo().orders.by_reservation(reservation).await.unwrap().is_some()
    })
    .await;
    let of = ReservationRef::from(&order(app, reservation).await);
    // An operation's name is good for a whole event.
    let operation = format!("{operation} of {reservation}");
    app.sale().cancel(&of, units, Some(operation)).await.unwrap();
}

/// Awaits the one rule: what is kept is the price of what is held. The order is written a moment after the decision.
async fn assert_balanced(app: &App, reservation: &str) {
    eventually("money kept is price x units held", || async {
        let (payment, order) = (payment(app, reservation).await, order(app, reservation).await);
        let kept = payment.paid.as_ref().map_or(0, |paid| paid.minor) - payment.refunded_minor;
        let held = if order.status == OrderStatus::Confirmed { i64::from(order.units_held()) } else { 0 };
        kept == PRICE * held
    })
    .await;
}

/// The invariants about a sale's money, checked.
async fn money_checks(app: &App, sale: &LiveSale) -> Vec<Check> {
    let event = app.catalogue().event(sale.event.parse().unwrap()).await.unwrap();
    app.payments().check(&event).await.unwrap()
}

/// Awaits that every invariant about a sale's money holds: money moves a moment after units do. None is ever violated.
async fn assert_money_sound(app: &App, sale: &LiveSale) {
    eventually("the money adds up", || async {
        let checks = money_checks(app, sale).await;
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|check| check.verdict != Verdict::Violated), "{checks:?}");
        checks.iter().all(|check| check.verdict == Verdict::Holds)
    })
    .await;
}

/// A collection of the test's database, without its repository.
async fn documents(app: &TestApp, collection: &str) -> mongodb::Collection<Document> {
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    client.database(&app.config().mongo.database).collection(collection)
}
