//! Paying in the sandbox: the whole way, over HTTP.

use std::collections::BTreeSet;

use bson::{Document, doc};
use orbit::config::{ExposeSecret, Gateway};
use orbit::domain::money::Money;
use orbit::domain::payment::{Payment, PaymentState};

use super::{
    LONG_S, PRICE, SHORT_S, ask, assert_balanced, at_rest, cancel, ended, intent, order, payment, prepared, reserve,
    sale_to_be_paid, status, until,
};
use crate::harness::{Actor, Reply, TestApp, config, eventually};

async fn press(app: &TestApp, intent: &str, outcome: &str) -> Reply {
    app.anonymous().post(&format!("/api/sandbox/pay/{intent}?outcome={outcome}")).await
}

async fn refunded(app: &TestApp, intent: &str) -> i64 {
    app.app().mongo().sandbox_intents.by_id(intent).await.unwrap().unwrap().refunded_minor
}

#[tokio::test]
async fn a_buyer_pays_and_the_reservation_is_confirmed_and_becomes_an_order() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 2).await;

    let asked = ask(&buyer, &sale).await.expect(200);
    assert_eq!((&asked["amountMinor"], &asked["currency"]), (&(2 * PRICE).into(), &"INR".into()));
    assert!(asked["expiresAt"].is_string() && asked["clientSecret"].is_null(), "{asked}");
    assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT", "asking confirms nothing");
    let page = app.anonymous().get(asked["payUrl"].as_str().unwrap()).await;
    let html = page.body.as_str().unwrap();
    assert!(page.status == 200 && html.contains("200 INR") && html.contains("CREATED"), "{html}");
    assert!(page.headers["content-security-policy"].contains("default-src 'none'"));

    let paid = app.anonymous().post(asked["payUrl"].as_str().unwrap()).await.expect(200);
    assert_eq!(paid["outcome"], "applied");
    assert_eq!(status(&buyer, &sale).await, "CONFIRMED");
    ask(&buyer, &sale).await.refused(409, "nothing_to_pay");
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    assert_balanced(app.app(), &reservation).await;
    sale.control("End").await.expect(200);
    assert_eq!(sale.orders().await[0]["status"], "CONFIRMED");
    sale.assert_sound(app.app()).await;
    let metrics = format!("http://{}/metrics", app.running.metrics_address.unwrap());
    let text = reqwest::get(&metrics).await.unwrap().text().await.unwrap();
    for metric in [
        "orbit_payments_total{outcome=\"CONFIRMED\"}",
        "orbit_payment_callbacks_total{outcome=\"applied\"}",
        "orbit_payments_unapplied",
        "orbit_refunds_stuck",
    ] {
        assert!(text.contains(metric), "{metric}: {text}");
    }
    app.finish().await;
}

#[tokio::test]
async fn asking_to_pay_from_two_processes_at_once_makes_one_payment() {
    let app = TestApp::start().await;
    let second = app.second().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 1).await;
    let elsewhere = second.here(&buyer);

    let asked = (0..20).map(|number| ask(if number % 2 == 0 { &buyer } else { &elsewhere }, &sale));
    let replies = futures::future::join_all(asked).await;

    let intents: BTreeSet<String> =
        replies.into_iter().map(|reply| reply.expect(200)["intentId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(intents.len(), 1, "{intents:?}");
    assert_eq!(payment(app.app(), &reservation).await.amount_minor, PRICE);
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn only_ones_own_reservation_is_paid_and_only_while_it_is_held() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 5, SHORT_S).await;
    let (buyer, other) = (app.buyer().await, app.buyer().await);
    reserve(&buyer, &sale, 1).await;
    ask(&other, &sale).await.refused(404, "not_found");
    sale.seller.post(&format!("{}/pay", super::reservation_path(&sale))).await.refused(403, "role_required");
    until(&buyer, &sale, "EXPIRED").await;
    ask(&buyer, &sale).await.refused(409, "reservation_expired");
    press(&app, "sandbox_of_nothing", "succeeded").await.refused(404, "not_found");
    let odd = press(&app, "sandbox_of_nothing", "maybe").await;
    odd.refused(400, "validation_failed");
    let malformed = "/api/buyer/event/x/reservation/y/pay";
    buyer.post(malformed).await.refused(404, "not_found");
    app.finish().await;
}

#[tokio::test]
async fn a_failed_attempt_changes_nothing_and_the_buyer_may_try_again() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 1).await;
    let intent = intent(&buyer, &sale).await;

    press(&app, &intent, "failed").await.expect(200);
    assert_eq!(payment(app.app(), &reservation).await.state, PaymentState::Failed);
    assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT");
    ask(&buyer, &sale).await.expect(200);
    press(&app, &intent, "succeeded").await.expect(200);
    assert_eq!(status(&buyer, &sale).await, "CONFIRMED");
    // Paid is paid: pressing Fail tells once more that it is.
    assert_eq!(press(&app, &intent, "failed").await.expect(200)["outcome"], "before");
    assert_eq!(payment(app.app(), &reservation).await.state, PaymentState::Succeeded);
    app.finish().await;
}

#[tokio::test]
async fn without_a_gateway_a_sale_that_is_to_be_paid_does_not_open() {
    let mut config = config().await;
    config.payment.gateway = Gateway::None;
    let app = TestApp::with(config).await;
    let sale = prepared(&app, 5, LONG_S).await;
    sale.control("Live").await.refused(409, "payments_off");
    let buyer = app.buyer().await;
    ask(&buyer, &sale).await.refused(409, "payments_off");
    app.anonymous().post_json("/api/payments/callback", serde_json::json!({})).await.refused(409, "payments_off");
    press(&app, "sandbox_of_nothing", "succeeded").await.refused(404, "route_not_found");
    // One that needs no payment opens.
    let free = prepared(&app, 5, 0).await;
    free.control("Live").await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn a_late_payment_takes_units_again_if_there_are_any() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 5, SHORT_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 3).await;
    let intent = intent(&buyer, &sale).await;
    until(&buyer, &sale, "EXPIRED").await;

    press(&app, &intent, "succeeded").await.expect(200);

    assert_eq!(status(&buyer, &sale).await, "CONFIRMED");
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED_LATE", 0));
    assert_balanced(app.app(), &reservation).await;
    assert_eq!(order(app.app(), &reservation).await.units_held(), 3);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_late_payment_without_stock_is_refunded_and_the_unit_stays_with_whoever_has_it() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 1, SHORT_S).await;
    let (late, quick) = (app.buyer().await, app.buyer().await);
    let reservation = reserve(&late, &sale, 1).await;
    let late_intent = intent(&late, &sale).await;
    until(&late, &sale, "EXPIRED").await;
    reserve(&quick, &sale, 1).await;
    press(&app, &intent(&quick, &sale).await, "succeeded").await.expect(200);

    press(&app, &late_intent, "succeeded").await.expect(200);

    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("PAID_WITHOUT_STOCK", PRICE));
    assert_eq!(refunded(&app, &late_intent).await, PRICE);
    assert_eq!((status(&late, &sale).await, status(&quick, &sale).await), ("EXPIRED".into(), "CONFIRMED".into()));
    assert_balanced(app.app(), &reservation).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_payment_for_what_was_cancelled_or_superseded_is_refunded() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let (first, first_intent) = (reserve(&buyer, &sale, 1).await, intent(&buyer, &sale).await);
    cancel(app.app(), &first, None, "changed my mind").await;
    let (second, second_intent) = (reserve(&buyer, &sale, 2).await, intent(&buyer, &sale).await);

    // Superseded, and its order may not be written as cancelled yet: the gateway repeats it then.
    eventually("it is applied", || async { press(&app, &first_intent, "succeeded").await.status == 200 }).await;
    assert_eq!(ended(&at_rest(app.app(), &first).await), ("PAID_AFTER_CANCEL", PRICE));
    assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT", "the other one is not paid by it");
    cancel(app.app(), &second, None, "again").await;
    press(&app, &second_intent, "succeeded").await.expect(200);
    assert_eq!(ended(&at_rest(app.app(), &second).await), ("PAID_AFTER_CANCEL", 2 * PRICE));
    assert_balanced(app.app(), &first).await;
    assert_balanced(app.app(), &second).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

/// A reservation of three units that is paid.
async fn paid_for_three(app: &TestApp, buyer: &Actor, sale: &super::LiveSale) -> (String, String) {
    let (reservation, intent) = (reserve(buyer, sale, 3).await, intent(buyer, sale).await);
    press(app, &intent, "succeeded").await.expect(200);
    (reservation, intent)
}

#[tokio::test]
async fn what_is_cancelled_in_parts_is_refunded_in_parts() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let (reservation, intent) = paid_for_three(&app, &buyer, &sale).await;

    cancel(app.app(), &reservation, Some(1), "one").await;
    eventually("the part went back", || async { refunded(&app, &intent).await == PRICE }).await;
    at_rest(app.app(), &reservation).await;
    assert_balanced(app.app(), &reservation).await;
    // The same operation again is the same.
    cancel(app.app(), &reservation, Some(1), "one").await;
    cancel(app.app(), &reservation, Some(2), "the rest").await;
    eventually("the rest went back", || async { refunded(&app, &intent).await == 3 * PRICE }).await;
    at_rest(app.app(), &reservation).await;
    assert_balanced(app.app(), &reservation).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn after_the_sale_is_settled_payments_and_refunds_go_on() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 9, LONG_S).await;
    let (early, late) = (app.buyer().await, app.buyer().await);
    let (paid, paid_intent) = paid_for_three(&app, &early, &sale).await;
    let (open, open_intent) = (reserve(&late, &sale, 2).await, intent(&late, &sale).await);
    sale.control("End").await.expect(200);

    press(&app, &open_intent, "succeeded").await.expect(200);
    assert_eq!(ended(&at_rest(app.app(), &open).await), ("CONFIRMED", 0));
    cancel(app.app(), &paid, Some(2), "two of three").await;
    eventually("two went back", || async { refunded(&app, &paid_intent).await == 2 * PRICE }).await;
    assert_balanced(app.app(), &open).await;
    assert_balanced(app.app(), &paid).await;
    app.finish().await;
}

#[tokio::test]
async fn money_for_what_a_settled_sale_knows_nothing_of_goes_back() {
    let app = TestApp::start().await;
    let sale = sale_to_be_paid(&app, 9, LONG_S).await;
    let buyer = app.buyer().await;
    let (known, known_intent) = paid_for_three(&app, &buyer, &sale).await;
    let known_payment = at_rest(app.app(), &known).await;
    sale.control("End").await.expect(200);
    let mongo = app.app().mongo();

    // A reservation that was lost with a live store before it was an order; its buyer had asked to pay.
    let lost = Payment { reservation: "lost".to_owned(), ..known_payment.clone() };
    mongo.payments.begin(&lost).await.unwrap();
    mongo.payments.attach("lost", "sandbox_lost", None).await.unwrap();
    let amount = Money { minor: lost.amount_minor, currency: lost.price.currency };
    mongo.sandbox_intents.create("sandbox_lost", "lost", amount).await.unwrap();
    press(&app, "sandbox_lost", "succeeded").await.expect(200);
    assert_eq!(ended(&at_rest(app.app(), "lost").await), ("NO_RESERVATION", 3 * PRICE));
    assert_eq!(refunded(&app, "sandbox_lost").await, 3 * PRICE);

    // A confirmation that was lost: the order will never be in its revision, and is all that is left.
    let (client, name) = (app.config().mongo.uri.expose_secret(), &app.config().mongo.database);
    let database = mongodb::Client::with_uri_str(client).await.unwrap().database(name);
    let again = doc! { "$set": { "applied.revision": 99_i64 }, "$currentDate": { "dueAt": true } };
    let payments = database.collection::<Document>("payments");
    payments.update_one(doc! { "_id": &known }, again.clone()).await.unwrap();
    assert_eq!(ended(&at_rest(app.app(), &known).await), ("CONFIRMED", 0));
    let orders = database.collection::<Document>("orders");
    orders.delete_one(doc! { "reservationId": &known }).await.unwrap();
    payments.update_one(doc! { "_id": &known }, again).await.unwrap();
    assert_eq!(ended(&at_rest(app.app(), &known).await), ("CONFIRMED", 3 * PRICE));
    assert_eq!(refunded(&app, &known_intent).await, 3 * PRICE);
    app.finish().await;
}

#[tokio::test]
async fn when_everybody_pays_in_the_moment_that_holds_run_out_nobody_loses_money_and_no_unit_is_sold_twice() {
    const UNITS: usize = 12;
    let app = TestApp::start().await;
    let second = app.second().await;
    let sale = sale_to_be_paid(&app, 12, SHORT_S).await;
    let (buyers, rivals) = (app.buyers(UNITS).await, app.buyers(UNITS).await);
    let mut asked = Vec::new();
    for buyer in &buyers {
        let reservation = reserve(buyer, &sale, 1).await;
        // A busy machine may be too slow to ask for some; those run out unpaid.
        let reply = ask(buyer, &sale).await;
        asked.extend(reply.body["intentId"].as_str().map(|intent| (reservation, intent.to_owned())));
    }

    // They pay one after the other, on both processes, while rivals take what has run out.
    let beat = std::time::Duration::from_millis(60);
    let paying = async {
        for (number, (_, intent)) in asked.iter().enumerate() {
            let reply = press(if number % 2 == 0 { &app } else { &second }, intent, "succeeded").await;
            // A 503 is repeated by a real gateway; here the reconciler makes up for it.
            assert!([200, 503].contains(&reply.status), "{reply:?}");
            tokio::time::sleep(beat).await;
        }
    };
    let rivalry = futures::future::join_all(rivals.iter().map(|rival| async {
        for _ in 0..UNITS {
            rival.post(&sale.purchase(0)).await;
            tokio::time::sleep(beat).await;
        }
    }));
    tokio::join!(paying, rivalry);

    for (reservation, _) in &asked {
        at_rest(app.app(), reservation).await;
        assert_balanced(app.app(), reservation).await;
    }
    sale.assert_sound(app.app()).await;
    assert!(second.running.stop().await);
    app.finish().await;
}
