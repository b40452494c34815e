//! Many buyers at once, at two processes: no unit is sold twice, and none is lost.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{acknowledged, calm_app, counts, ordered, reservation_of, stock, tally};
use crate::harness::{Actor, LiveSale, Reply, TestApp};

/// Everybody asks at once, every second one at the other process.
async fn rush(first: &TestApp, second: &TestApp, buyers: &[Actor], path: &str) -> Vec<Reply> {
    join_all(buyers.iter().enumerate().map(|(number, buyer)| {
        let buyer = if number % 2 == 0 { first.here(buyer) } else { second.here(buyer) };
        async move { buyer.post(path).await }
    }))
    .await
}

/// A live sale of one product with a limit per buyer.
async fn sale_with_limit(app: &TestApp, units: &str, limit: &str) -> LiveSale {
    let mut sale = super::prepared(app, 0, 0).await;
    let text = [
        ("title", "Tickets"),
        ("description", "Several for one buyer"),
        ("price", "10.50"),
        ("frequency", units),
        ("perBuyerLimit", limit),
    ];
    let file = Some(("image", crate::harness::pictures::jpeg(64, 64)));
    let path = format!("/api/seller/events/{}/registerProducts", sale.event);
    let added = sale.seller.form(Method::POST, &path, &text, file).await.expect(201);
    sale.products.push(added["productId"].as_str().unwrap().to_owned());
    sale.control("Live").await.expect(200);
    sale
}

#[tokio::test]
async fn of_five_hundred_buyers_at_two_processes_one_gets_the_last_unit() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = app.live_sale(1, 1).await;
    let buyers = app.buyers(500).await;

    let replies = rush(&app, &second, &buyers, &sale.purchase(0)).await;

    assert_eq!(tally(&replies), counts(&[("201", 1), ("sold_out", 499)]));
    assert_eq!(stock(&app, &sale, 0).await, 0);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    assert_eq!(ordered(app.app(), &sale).await, acknowledged(&replies));
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn one_buyer_who_asks_five_hundred_times_at_two_processes_takes_one_unit() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = app.live_sale(1, 100).await;
    let buyer = app.buyer().await;

    let replies = rush(&app, &second, &vec![buyer; 500], &sale.purchase(0)).await;

    assert_eq!(tally(&replies), counts(&[("201", 1), ("already_booked", 499)]));
    let made = acknowledged(&replies).pop();
    assert!(replies.iter().all(|reply| reservation_of(reply) == made), "every answer tells of the one reservation");
    assert_eq!(stock(&app, &sale, 0).await, 99);
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn requests_with_one_idempotency_key_are_one_purchase_and_all_get_its_answer() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = app.live_sale(1, 100).await;
    let buyer = app.buyer().await;

    let replies = join_all((0..20).map(|number| {
        let buyer = if number % 2 == 0 { buyer.clone() } else { second.here(&buyer) };
        let request = buyer.request(Method::POST, &sale.purchase(0)).header("idempotency-key", "one-click");
        Actor::send(request)
    }))
    .await;

    assert_eq!(tally(&replies), counts(&[("201", 20)]));
    assert!(replies.iter().all(|reply| reply.body == replies[0].body), "{replies:?}");
    assert_eq!(stock(&app, &sale, 0).await, 99);
    // Another key is another purchase, and the buyer has one already. The same key with another quantity is a mistake.
    let other = buyer.request(Method::POST, &sale.purchase(0)).header("idempotency-key", "another-click");
    Actor::send(other).await.refused(409, "already_booked");
    let other = buyer.request(Method::POST, &sale.purchase(0)).header("idempotency-key", "one-click");
    Actor::send(other.json(&json!({ "quantity": 2 }))).await.refused(422, "idempotency_key_reused");
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn an_answer_that_was_lost_can_be_fetched_with_its_key_after_the_sale_has_paused() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    let ask = || buyer.request(Method::POST, &sale.purchase(0)).header("idempotency-key", "one-click");

    let made = Actor::send(ask()).await.expect(201);
    sale.control("Pause").await.expect(200);

    assert_eq!(Actor::send(ask()).await.expect(201), made);
    buyer.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn quantities_that_fit_alone_but_not_together_go_to_one_buyer_whole() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = sale_with_limit(&app, "5", "3").await;
    let buyers = app.buyers(2).await;
    let path = sale.purchase(0);

    let there = second.here(&buyers[1]);
    let (one, other) = tokio::join!(
        buyers[0].post_json(&path, json!({ "quantity": 3 })),
        there.post_json(&path, json!({ "quantity": 3 })),
    );

    let replies = [one, other];
    assert_eq!(tally(&replies), counts(&[("201", 1), ("sold_out", 1)]));
    let won = replies.iter().find(|reply| reply.status == 201).unwrap();
    assert_eq!((&won.body["quantity"], &won.body["priceMinor"]), (&json!(3), &json!(1050)));
    assert_eq!(stock(&app, &sale, 0).await, 2);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    let orders = sale.orders().await;
    assert_eq!((orders.len(), &orders[0]["quantity"]), (1, &json!(3)));
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_quantity_that_is_no_positive_whole_number_is_refused_and_moves_no_stock() {
    let app = calm_app().await;
    let sale = sale_with_limit(&app, "50", "3").await;
    let buyer = app.buyer().await;

    for quantity in ["0", "-1", "-100", "1.5", "\"1\"", "1000000000000000000", "1e18", "null", "[1]", "true"] {
        let body: Value = serde_json::from_str(&format!("{{\"quantity\":{quantity}}}")).unwrap();
        let reply = buyer.post_json(&sale.purchase(0), body).await;
        assert_eq!(reply.status, 400, "{quantity}: {}", reply.body);
    }

    assert_eq!(stock(&app, &sale, 0).await, 50);
    buyer.post_json(&sale.purchase(0), json!({ "quantity": 3 })).await.expect(201);
    assert_eq!(stock(&app, &sale, 0).await, 47);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_gets_no_more_units_than_the_product_allows() {
    let app = calm_app().await;
    let sale = sale_with_limit(&app, "50", "2").await;
    let buyer = app.buyer().await;

    let refused = buyer.post_json(&sale.purchase(0), json!({ "quantity": 3 })).await;
    refused.refused(409, "limit_reached");
    assert_eq!(refused.body["limit"], 2);
    assert_eq!(stock(&app, &sale, 0).await, 50);

    buyer.post_json(&sale.purchase(0), json!({ "quantity": 2 })).await.expect(201);
    // One reservation a buyer: the rest of the limit is not a second one.
    buyer.post_json(&sale.purchase(0), json!({ "quantity": 1 })).await.refused(409, "already_booked");
    assert_eq!(stock(&app, &sale, 0).await, 48);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_rush_for_more_units_than_buyers_serves_every_buyer_of_every_product() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = app.live_sale(3, 30).await;
    let buyers = app.buyers(60).await;

    let mut replies = Vec::new();
    for product in 0..3 {
        replies.extend(rush(&app, &second, &buyers, &sale.purchase(product)).await);
    }

    assert_eq!(tally(&replies), counts(&[("201", 90), ("sold_out", 90)]));
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    assert_eq!(ordered(app.app(), &sale).await, acknowledged(&replies));
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}
