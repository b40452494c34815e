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
        ("175.25", "HUF", 35_050, 35_050),
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
async fn a_sale_at_a_price_that_the_gateway_cannot_charge_does_not_open_until_it_is_changed() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    // Two of the first would be a whole number; giving one back would not. Three of the last are too much for one payment.
    for (price, currency, better) in
        [("0.5", "MGA", "500"), ("1.235", "KWD", "1.230"), ("0.49", "USD", "0.50"), ("333333.34", "EUR", "333333.33")]
    {
        let sale = prepared_in(&app, price, currency).await;
        let reply = sale.control("Live").await;
        reply.refused(409, "price_not_chargeable");
        let why = reply.body["error"].as_str().unwrap();
        assert!(why.contains(currency) && why.contains(&sale.products[0]) && why.contains("A product"), "{why}");

        let path = format!("/api/seller/events/{}/updateProduct/{}", sale.event, sale.products[0]);
        let change = [("price", better), ("currency", currency)];
        sale.seller.form(Method::PUT, &path, &change, None).await.expect(200);
        sale.control("Live").await.expect(200);
    }
    // What is not paid for here may have any price.
    let unpaid = super::prepared_at(&app, (5, 0), ("0.01", "USD")).await;
    unpaid.control("Live").await.expect(200);
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
