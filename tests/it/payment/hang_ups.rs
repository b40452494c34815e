//! A buyer hangs up while asking to pay, in each step of it: one payment and one intent come of it, or nothing has happened.

use serde_json::Value;

use super::gateway::{Fault, StripeServer};
use super::{LONG_S, PRICE, ask, assert_money_sound, payment, reservation_path, reserve, sale_to_be_paid};
use crate::harness::proxy::Proxy;
use crate::harness::{Pending, TestApp, eventually, own_mongo};

#[tokio::test]
async fn a_buyer_who_hangs_up_while_the_gateway_is_asked_finds_the_intent_that_was_made() {
    let stripe = StripeServer::start().await;
    let mut config = stripe.config().await;
    config.payment.deadline_ms = 5_000;
    let app = TestApp::with(config).await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 2).await;
    stripe.meet([Fault::Held]);

    let path = format!("{}/pay", reservation_path(&sale));
    let pending = Pending::send(&buyer, &path, &Value::Null).await;
    eventually("the gateway is asked", || async { stripe.waiting() == 1 }).await;
    pending.hang_up().await;
    assert_eq!(payment(app.app(), &reservation).await.intent, None);
    stripe.release();

    eventually("the intent is recorded", || async { payment(app.app(), &reservation).await.intent.is_some() }).await;
    let made = stripe.intents(&reservation);
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(ask(&buyer, &sale).await.expect(200)["intentId"], made[0]["id"]);
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_who_hangs_up_in_any_step_of_asking_to_pay_has_one_payment() {
    let (stripe, mongo) = (StripeServer::start().await, own_mongo().await);
    let proxy = Proxy::to(mongo.port()).await;
    let mut config = stripe.config().await;
    config.mongo.uri = proxy.instead_of(&mongo.uri()).into();
    config.mongo.deadline_ms = 30_000;
    // What is held is about paying, and nothing else.
    config.sale.drain_interval_ms = 3_600_000;
    config.payment.reconcile_interval_ms = 3_600_000;
    let app = TestApp::with(config).await;
    let sale = sale_to_be_paid(&app, 50, LONG_S).await;
    let path = format!("{}/pay", reservation_path(&sale));
    let mut steps = 0;
    loop {
        let buyer = app.buyer().await;
        let reservation = reserve(&buyer, &sale, 1).await;
        proxy.hold(&reservation);
        let mut pending = Pending::send(&buyer, &path, &Value::Null).await;
        let held = pending.until_held(&[&proxy], steps + 1).await;
        pending.hang_up().await;
        proxy.pass_all();

        eventually("it is brought to its end", || async {
            let found = app.app().mongo().payments.by_reservation(&reservation).await.unwrap();
            found.is_some_and(|payment| payment.intent.is_some())
        })
        .await;
        let made = stripe.intents(&reservation);
        assert_eq!(made.len(), 1, "step {steps}: {made:?}");
        assert_eq!(ask(&buyer, &sale).await.expect(200)["intentId"], made[0]["id"]);
        assert_eq!(payment(app.app(), &reservation).await.amount_minor, PRICE);
        if !held {
            break;
        }
        steps += 1;
    }
    assert!(steps >= 3, "only {steps} steps: recording the payment, reading it, and naming it are three");
    assert_money_sound(app.app(), &sale).await;
    app.finish().await;
}
