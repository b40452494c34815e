//! Currencies without a smaller unit, and those that Stripe counts in another one than everybody else.

use reqwest::Method;
use serde_json::Value;

use super::gateway::{StripeServer, deliver, paid};
use super::{ask, assert_money_sound, at_rest, cancel, ended, payment, prepared_in, reserve};
use crate::harness::{Actor, TestApp, eventually};

/// A buyer reserves two units of something at this price and asks to pay.
async fn asked(app: &TestApp, price: &str, currency: &str) -> (super::LiveSale, Actor, String, crate::harness::Reply) {
    let sale = prepared_in(app, price, currency).await;
    sale.control("Live").await.expect(200);
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, &sale, 2).await;
    let reply = ask(&buyer, &sale).await;
    (sale, buyer, reservation, reply)
}

#[tokio::test]
async fn an_amount_is_asked_for_taken_and_given_back_in_the_units_of_the_gateway() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    // Two units: in our minor units, and in those of Stripe.
    for (price, currency, ours, theirs) in [
        ("1500", "JPY", 3_000, 3_000),
        ("1500", "ISK", 3_000, 300_000),
        ("1500", "UGX", 3_000, 300_000),
        ("1500", "MGA", 300_000, 3_000),
        ("1.230", "KWD", 2_460, 2_460),
        ("15.25", "HUF", 3_050, 3_050),
    ] {
        let (sale, _, reservation, reply) = asked(&app, price, currency).await;
        let body = reply.expect(200);
        assert_eq!((&body["amountMinor"], &body["currency"]), (&ours.into(), &currency.into()));
        let intent = &stripe.intents(&reservation)[0];
        assert_eq!(intent["amount"], Value::from(theirs), "{currency}");
        assert_eq!(intent["currency"], currency.to_lowercase());

        let object = stripe.pay(intent["id"].as_str().unwrap());
        let event = paid(&format!("evt_{currency}"), &object);
        assert_eq!(deliver(&app.anonymous(), &event).await.expect(200)["outcome"], "applied");
        assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0), "{currency}");
        cancel(app.app(), &reservation, Some(1), "one of two").await;
        eventually("one is refunded", || async { payment(app.app(), &reservation).await.refunded_minor == ours / 2 })
            .await;
        assert_eq!(stripe.refunds(intent["id"].as_str().unwrap()), [theirs / 2], "{currency}");
        assert_money_sound(app.app(), &sale).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn a_price_that_the_gateway_has_no_amount_for_is_refused_before_anybody_pays() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    // Two of these would be a whole number; giving one back would not.
    for (price, currency) in [("0.5", "MGA"), ("1.235", "KWD")] {
        let (_, _, reservation, reply) = asked(&app, price, currency).await;
        reply.refused(409, "payments_off");
        assert!(reply.body["error"].as_str().unwrap().contains(currency), "{}", reply.body);
        assert!(stripe.intents(&reservation).is_empty());
    }
    // And a product has no price that is finer than its currency.
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    let path = format!("/api/seller/events/{event}/registerProducts");
    let text =
        [("title", "A"), ("description", "A product"), ("price", "1.5"), ("frequency", "1"), ("currency", "JPY")];
    let file = Some(("image", crate::harness::pictures::jpeg(64, 64)));
    seller.form(Method::POST, &path, &text, file).await.refused(400, "validation_failed");
    app.finish().await;
}
