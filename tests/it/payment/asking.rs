//! Asking a gateway: for an intent, and for what became of it.

use orbit::domain::payment::PaymentState;

use super::gateway::{Fault, PASSING, StripeServer};
use super::{
    LONG_S, PRICE, ask, assert_balanced, at_rest, ended, intent, payment, reserve, sale_to_be_paid, status, until,
};
use crate::harness::eventually;

#[tokio::test]
async fn whatever_the_gateway_does_a_reservation_has_one_intent() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 20, LONG_S).await;
    for fault in PASSING {
        let buyer = app.buyer().await;
        let reservation = reserve(&buyer, &sale, 2).await;
        stripe.meet([fault]);
        let asked = ask(&buyer, &sale).await.expect(200);
        let made = stripe.intents(&reservation);
        assert_eq!(made.len(), 1, "{fault:?}: {made:?}");
        assert_eq!(asked["intentId"], made[0]["id"]);
        assert_eq!(asked["clientSecret"], made[0]["client_secret"]);
        assert_eq!((&made[0]["amount"], &made[0]["currency"]), (&(2 * PRICE).into(), &"inr".into()));
        assert_eq!(made[0]["metadata"]["event_id"], sale.event.as_str());
        assert_eq!(ask(&buyer, &sale).await.expect(200), asked, "asking again is answered the same");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_gateway_that_stays_away_is_said_to_be_and_the_next_question_finds_what_was_made() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 1).await;
    stripe.meet([Fault::AnswerLost, Fault::ErrorAfter]);

    let away = ask(&buyer, &sale).await;

    away.refused(503, "payment_gateway_unavailable");
    assert!(away.headers.contains_key("retry-after") && !away.body.to_string().contains("sk_test"), "{away:?}");
    assert_eq!(stripe.intents(&reservation).len(), 1);
    assert_eq!(payment(app.app(), &reservation).await.intent, None);
    assert_eq!(ask(&buyer, &sale).await.expect(200)["intentId"], stripe.intents(&reservation)[0]["id"]);
    assert_eq!(stripe.intents(&reservation).len(), 1);
    app.finish().await;
}

#[tokio::test]
async fn a_payment_whose_callback_is_lost_is_found_by_asking_before_the_hold_runs_out() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, 4).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 1).await;
    stripe.pay(&intent(&buyer, &sale).await);

    until(&buyer, &sale, "CONFIRMED").await;

    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    assert_balanced(app.app(), &reservation).await;
    app.finish().await;
}

#[tokio::test]
async fn asking_waits_for_a_gateway_that_is_away_and_asks_again() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 1).await;
    let name = intent(&buyer, &sale).await;
    let ask_now = async || app.app().mongo().payments.ask_at(&reservation, app.app().clock().now()).await.unwrap();

    // Not paid yet: the next question is due before the hold runs out.
    ask_now().await;
    eventually("it was asked", || async { stripe.questions() == 1 }).await;
    eventually("it waits", || async {
        let payment = payment(app.app(), &reservation).await;
        payment.due_at.is_some_and(|due| due > app.app().clock().now()) && payment.state == PaymentState::Created
    })
    .await;
    stripe.pay(&name);
    stripe.meet([Fault::AnswerLost, Fault::ErrorAfter, Fault::Rubbish, Fault::Busy]);
    ask_now().await;
    until(&buyer, &sale, "CONFIRMED").await;
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_who_has_paid_and_asks_again_is_told_so_and_need_not_wait_for_the_callback() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let buyer = app.buyer().await;
    reserve(&buyer, &sale, 1).await;
    stripe.pay(&intent(&buyer, &sale).await);
    assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT");

    ask(&buyer, &sale).await.refused(409, "nothing_to_pay");

    until(&buyer, &sale, "CONFIRMED").await;
    app.finish().await;
}
