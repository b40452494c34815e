//! Callbacks: believed only if they are signed, applied once however often they come, and never lost.

use orbit::domain::payment::PaymentState;
use serde_json::{Value, json};

use super::gateway::{OLD_WEBHOOK_SECRET, StripeServer, WEBHOOK_SECRET, deliver, event, now_s, paid, send, signature};
use super::{
    LONG_S, PRICE, assert_balanced, at_rest, ended, intent, order, payment, reserve, sale_to_be_paid, status, until,
};
use crate::harness::{Actor, LiveSale, TestApp, eventually, own_mongo, own_redis};

/// A buyer with a reservation of one unit that is asked to be paid: the buyer, the reservation, and the intent, paid.
async fn paying(app: &TestApp, stripe: &StripeServer, sale: &LiveSale) -> (Actor, String, Value) {
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, sale, 1).await;
    let paid = stripe.pay(&intent(&buyer, sale).await);
    (buyer, reservation, paid)
}

#[tokio::test]
async fn only_what_the_gateway_has_signed_lately_is_believed() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (buyer, reservation, object) = paying(&app, &stripe, &sale).await;
    let (anybody, body, now) = (app.anonymous(), paid("evt_1", &object).to_string(), now_s());

    let tolerance_s = i64::from(app.config().payment.tolerance_s);
    let bad = [
        String::new(),
        "t=1,v1=00".to_owned(),
        signature("whsec_of_somebody_else", now, &body),
        signature(WEBHOOK_SECRET, now - tolerance_s - 60, &body),
        signature(WEBHOOK_SECRET, now + tolerance_s + 60, &body),
        signature(WEBHOOK_SECRET, now, &body.replace("evt_1", "evt_2")),
    ];
    for header in bad {
        send(&anybody, body.clone(), &header).await.refused(400, "bad_signature");
    }
    let rubbish = "not an event".to_owned();
    let signed = signature(WEBHOOK_SECRET, now, &rubbish);
    send(&anybody, rubbish, &signed).await.refused(400, "malformed_body");
    let large = "x".repeat(app.config().payment.callback_bytes_max + 1);
    send(&anybody, large, &signed).await.refused(413, "too_large");
    assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT");
    assert_eq!(payment(app.app(), &reservation).await.state, PaymentState::Created);

    // While the secret is being changed, both are good.
    let old = signature(OLD_WEBHOOK_SECRET, now, &body);
    assert_eq!(send(&anybody, body, &old).await.expect(200)["outcome"], "applied");
    assert_eq!(status(&buyer, &sale).await, "CONFIRMED");
    app.finish().await;
}

#[tokio::test]
async fn an_event_that_comes_again_or_ten_times_at_once_is_applied_once() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let second = app.second().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (_, reservation, object) = paying(&app, &stripe, &sale).await;
    let (here, there, event) = (app.anonymous(), second.anonymous(), paid("evt_1", &object));

    let sent = (0..10).map(|number| deliver(if number % 2 == 0 { &here } else { &there }, &event));
    let replies = futures::future::join_all(sent).await;

    let outcomes: Vec<Value> = replies.into_iter().map(|reply| reply.expect(200)["outcome"].clone()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "applied").count(), 1, "{outcomes:?}");
    assert_eq!(deliver(&there, &event).await.expect(200)["outcome"], "before");
    // The same news under another name.
    assert_eq!(deliver(&here, &paid("evt_2", &object)).await.expect(200)["outcome"], "before");
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    assert_eq!(order(app.app(), &reservation).await.revision, 2, "reserved and confirmed, and nothing else");
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn a_failure_that_comes_after_the_success_changes_nothing() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (buyer, reservation, object) = paying(&app, &stripe, &sale).await;
    let failed = |id: &str| event(id, "payment_intent.payment_failed", &object);
    deliver(&app.anonymous(), &failed("evt_0")).await.expect(200);
    assert_eq!(payment(app.app(), &reservation).await.state, PaymentState::Failed);
    deliver(&app.anonymous(), &paid("evt_1", &object)).await.expect(200);

    deliver(&app.anonymous(), &failed("evt_2")).await.expect(200);

    assert_eq!(payment(app.app(), &reservation).await.state, PaymentState::Succeeded);
    assert_eq!(status(&buyer, &sale).await, "CONFIRMED");
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    app.finish().await;
}

#[tokio::test]
async fn another_amount_or_currency_confirms_nothing_and_goes_back() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 9, LONG_S).await;
    for (number, (minor, currency)) in [(1, "inr"), (PRICE - 1, "inr"), (PRICE, "usd")].into_iter().enumerate() {
        let (buyer, reservation, mut object) = paying(&app, &stripe, &sale).await;
        object["amount_received"] = minor.into();
        object["currency"] = currency.into();
        deliver(&app.anonymous(), &paid(&format!("evt_{number}"), &object)).await.expect(200);

        assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("MISMATCH", minor));
        assert_eq!(stripe.refunds(object["id"].as_str().unwrap()), [minor]);
        assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT");
    }
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn what_is_not_ours_is_acknowledged_and_ignored() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (buyer, reservation, object) = paying(&app, &stripe, &sale).await;
    let mut unknown = object.clone();
    unknown["id"] = "pi_of_somebody_else".into();
    unknown["metadata"]["reservation_id"] = "a-reservation-that-never-was".into();
    let mut nameless = unknown.clone();
    nameless["metadata"] = json!({});
    // The right reservation, and not the intent that its buyer was given.
    let mut other = object.clone();
    other["id"] = "pi_that_was_never_made".into();
    let mut authorised = object.clone();
    authorised["status"] = "requires_capture".into();
    let events = [
        paid("evt_1", &unknown),
        paid("evt_2", &nameless),
        paid("evt_3", &other),
        paid("evt_4", &authorised),
        event("evt_5", "customer.created", &json!({ "id": "cus_1" })),
        event("evt_6", "charge.refunded", &json!({ "payment_intent": "pi_of_somebody_else" })),
    ];
    for event in events {
        assert_eq!(deliver(&app.anonymous(), &event).await.expect(200)["outcome"], "ignored", "{event}");
    }
    assert_eq!(status(&buyer, &sale).await, "PENDING_PAYMENT");
    assert_eq!(payment(app.app(), &reservation).await.state, PaymentState::Created);
    // An event that names its intent and no reservation is found by the intent.
    let mut bare = object.clone();
    bare["metadata"] = json!({});
    assert_eq!(deliver(&app.anonymous(), &paid("evt_7", &bare)).await.expect(200)["outcome"], "applied");
    app.finish().await;
}

#[tokio::test]
async fn while_the_database_is_away_the_gateway_is_told_to_repeat_and_then_it_is_applied_once() {
    let stripe = StripeServer::start().await;
    let mut mongo = own_mongo().await;
    let mut config = stripe.config().await;
    config.mongo.uri = mongo.uri().into();
    config.mongo.deadline_ms = 1000;
    let app = TestApp::with(config).await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (buyer, reservation, object) = paying(&app, &stripe, &sale).await;
    let event = paid("evt_1", &object);

    mongo.kill().await;
    let away = deliver(&app.anonymous(), &event).await;
    away.refused(503, "database_unavailable");
    assert!(away.headers.contains_key("retry-after"));
    mongo.restart().await.unwrap();
    eventually("the repetition is taken", || async { deliver(&app.anonymous(), &event).await.status == 200 }).await;

    assert_eq!(status(&buyer, &sale).await, "CONFIRMED");
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    assert_eq!(order(app.app(), &reservation).await.revision, 2);
    assert_balanced(app.app(), &reservation).await;
    app.finish().await;
}

#[tokio::test]
async fn money_that_comes_while_the_live_store_is_away_is_remembered_and_applied_without_another_callback() {
    let stripe = StripeServer::start().await;
    let mut redis = own_redis().await;
    let mut config = stripe.config().await;
    config.live.url = redis.url().into();
    let app = TestApp::with(config).await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (buyer, reservation, object) = paying(&app, &stripe, &sale).await;

    redis.kill().await;
    deliver(&app.anonymous(), &paid("evt_1", &object)).await.refused(503, "live_store_unavailable");
    let remembered = payment(app.app(), &reservation).await;
    assert_eq!((remembered.state, remembered.applied), (PaymentState::Succeeded, None));
    redis.restart().await.unwrap();

    eventually("it is applied", || async { payment(app.app(), &reservation).await.applied.is_some() }).await;
    until(&buyer, &sale, "CONFIRMED").await;
    app.finish().await;
}

#[tokio::test]
async fn a_payment_that_a_dead_process_had_taken_is_applied_by_another() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let (buyer, reservation, object) = paying(&app, &stripe, &sale).await;
    let payments = &app.app().mongo().payments;
    // It recorded the money, and died before it confirmed. What it had taken is free half a second later.
    let soon = app.app().clock().now() + chrono::TimeDelta::milliseconds(500);
    let name = object["id"].as_str().unwrap();
    let money = orbit::domain::payment::Paid { minor: PRICE, currency: "INR".to_owned() };
    assert!(payments.succeed(&reservation, name, &money, soon).await.unwrap().is_some());
    assert!(payments.succeed(&reservation, name, &money, soon).await.unwrap().is_none());

    until(&buyer, &sale, "CONFIRMED").await;

    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    assert_eq!(deliver(&app.anonymous(), &paid("evt_1", &object)).await.expect(200)["outcome"], "before");
    app.finish().await;
}
