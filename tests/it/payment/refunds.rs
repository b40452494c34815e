//! Refunds: what is too much goes back, exactly once.

use bson::{Document, doc};
use orbit::config::ExposeSecret;
use orbit::domain::payment::Payment;
use serde_json::json;

use super::gateway::{Fault, PASSING, StripeServer, deliver, event, paid};
use super::{LONG_S, PRICE, assert_balanced, at_rest, cancel, ended, intent, payment, reserve, sale_to_be_paid};
use crate::harness::{LiveSale, TestApp, eventually};

/// A reservation of three units that is paid and confirmed: its id and the intent's.
async fn paid_for_three(app: &TestApp, stripe: &StripeServer, sale: &LiveSale) -> (String, String) {
    let buyer = app.buyer().await;
    let (reservation, intent) = (reserve(&buyer, sale, 3).await, intent(&buyer, sale).await);
    let object = stripe.pay(&intent);
    deliver(&app.anonymous(), &paid(&format!("evt_{reservation}"), &object)).await.expect(200);
    at_rest(app.app(), &reservation).await;
    (reservation, intent)
}

/// Awaits that so much is recorded as having gone back.
async fn until_back(app: &TestApp, reservation: &str, minor: i64) -> Payment {
    eventually("the money is back", || async { payment(app.app(), reservation).await.refunded_minor == minor }).await;
    at_rest(app.app(), reservation).await
}

#[tokio::test]
async fn however_often_two_processes_reconcile_a_refund_is_made_once() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let second = app.second().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (reservation, intent) = paid_for_three(&app, &stripe, &sale).await;

    cancel(app.app(), &reservation, None, "all").await;
    let (here, there) = (app.app().payments(), second.app().payments());
    for _ in 0..20 {
        let (one, other) = tokio::join!(here.reconcile(), there.reconcile());
        assert!(!one.unwrap() && !other.unwrap());
    }

    until_back(&app, &reservation, 3 * PRICE).await;
    assert_eq!(stripe.refunds(&intent), [3 * PRICE]);
    assert_balanced(app.app(), &reservation).await;
    sale.assert_sound(app.app()).await;
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn whatever_the_gateway_does_to_a_refund_it_is_made_once() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 30, LONG_S).await;
    for fault in PASSING {
        let (reservation, intent) = paid_for_three(&app, &stripe, &sale).await;
        // The refund, the question that follows, and what follows that.
        stripe.meet([fault, fault, fault]);
        cancel(app.app(), &reservation, Some(1), "one").await;
        until_back(&app, &reservation, PRICE).await;
        assert_eq!(stripe.refunds(&intent), [PRICE], "{fault:?}");
        stripe.meet([fault]);
        cancel(app.app(), &reservation, Some(1), "another").await;
        until_back(&app, &reservation, 2 * PRICE).await;
        assert_eq!(stripe.refunds(&intent), [PRICE, PRICE], "{fault:?}");
        stripe.meet([]);
        assert_balanced(app.app(), &reservation).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn units_that_go_back_while_a_refund_is_under_way_are_refunded_after_it() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (reservation, intent) = paid_for_three(&app, &stripe, &sale).await;
    stripe.meet([Fault::AnswerLost]);
    cancel(app.app(), &reservation, Some(1), "one").await;
    eventually("the first is under way", || async {
        payment(app.app(), &reservation).await.refunding_minor == Some(PRICE)
    })
    .await;

    cancel(app.app(), &reservation, Some(2), "the rest").await;

    until_back(&app, &reservation, 3 * PRICE).await;
    assert_eq!(stripe.refunds(&intent), [PRICE, 2 * PRICE]);
    assert_balanced(app.app(), &reservation).await;
    app.finish().await;
}

#[tokio::test]
async fn a_refund_that_is_refused_again_and_again_waits_for_a_person() {
    let stripe = StripeServer::start().await;
    let mut config = stripe.config().await;
    config.payment.refund_attempts_max = 3;
    let app = TestApp::with(config).await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (reservation, intent) = paid_for_three(&app, &stripe, &sale).await;
    // The refund, and then twice the question.
    stripe.meet([Fault::Refused; 3]);

    cancel(app.app(), &reservation, None, "all").await;
    let backlog = async || app.app().mongo().payments.backlog().await.unwrap();
    eventually("it is given up", || async { backlog().await == (0, 1) }).await;
    assert_eq!(payment(app.app(), &reservation).await.due_at, None);
    assert!(stripe.refunds(&intent).is_empty());

    // What the runbook says.
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    let payments = client.database(&app.config().mongo.database).collection::<Document>("payments");
    let again = doc! { "$set": { "attempts": 0_i64 }, "$currentDate": { "dueAt": true } };
    payments.update_one(doc! { "_id": &reservation }, again).await.unwrap();
    until_back(&app, &reservation, 3 * PRICE).await;
    assert_eq!(stripe.refunds(&intent), [3 * PRICE]);
    assert_eq!(backlog().await, (0, 0));
    app.finish().await;
}

#[tokio::test]
async fn what_somebody_gave_back_at_the_gateway_is_not_given_back_again() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 9, LONG_S).await;
    let (reservation, intent) = paid_for_three(&app, &stripe, &sale).await;
    let other = paid_for_three(&app, &stripe, &sale).await;
    stripe.refund_by_hand(&intent, 3 * PRICE);
    stripe.refund_by_hand(&other.1, PRICE);
    let told = event("evt_refunded", "charge.refunded", &json!({ "payment_intent": intent }));
    assert_eq!(deliver(&app.anonymous(), &told).await.expect(200)["outcome"], "applied");

    cancel(app.app(), &reservation, None, "all").await;

    let payment = until_back(&app, &reservation, 3 * PRICE).await;
    assert_eq!(ended(&payment), ("CONFIRMED", 3 * PRICE));
    assert_eq!(stripe.refunds(&intent), [3 * PRICE], "the one that was made by hand");
    cancel(app.app(), &other.0, None, "all").await;
    until_back(&app, &other.0, 3 * PRICE).await;
    assert_eq!(stripe.refunds(&other.1), [PRICE, 2 * PRICE], "one by hand, and the rest");
    app.finish().await;
}

#[tokio::test]
async fn a_refund_that_the_gateway_has_refused_is_made_when_there_is_money_again_and_made_once() {
    let stripe = StripeServer::start().await;
    let mut config = stripe.config().await;
    config.payment.refund_attempts_max = 100;
    let app = TestApp::with(config).await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (reservation, intent) = paid_for_three(&app, &stripe, &sale).await;
    stripe.go_broke(true);
    cancel(app.app(), &reservation, Some(2), "two").await;
    eventually("it was refused twice", || async { payment(app.app(), &reservation).await.refusals >= 2 }).await;
    assert!(stripe.refunds(&intent).is_empty());

    stripe.go_broke(false);

    until_back(&app, &reservation, 2 * PRICE).await;
    assert_eq!(stripe.refunds(&intent), [2 * PRICE]);
    // The next one begins with a clean sheet, and whatever happens to its answer it is one.
    stripe.meet([Fault::AnswerLost]);
    cancel(app.app(), &reservation, Some(1), "the rest").await;
    let whole = until_back(&app, &reservation, 3 * PRICE).await;
    assert_eq!((stripe.refunds(&intent), whole.refusals), (vec![2 * PRICE, PRICE], 0));
    assert_balanced(app.app(), &reservation).await;
    app.finish().await;
}
