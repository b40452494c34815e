//! Restocking a running sale: once for each operation, and never below what is sold or held.

use futures::future::join_all;
use serde_json::json;

use super::{calm_app, event_id, reserve_directly, stock, tally, unpaid_sale, without_hurry};
use crate::harness::{self, LiveSale, Reply, TestApp, eventually};

async fn restock(sale: &LiveSale, units: i64, operation: &str) -> Reply {
    let path = format!("/api/seller/events/{}/products/{}/restock", sale.event, sale.products[0]);
    sale.seller.post_json(&path, json!({ "units": units, "operationId": operation })).await
}

#[tokio::test]
async fn a_sold_out_product_is_bought_again_as_soon_as_it_is_restocked_and_each_operation_counts_once() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = app.live_sale(1, 1).await;
    let (first, other) = (app.buyer().await, app.buyer().await);
    first.post(&sale.purchase(0)).await.expect(201);
    other.post(&sale.purchase(0)).await.refused(409, "sold_out");

    let there = super::seen_from(&sale, &second);
    let replies =
        join_all((0..20).map(|number| restock(if number % 2 == 0 { &sale } else { &there }, 3, "delivery-1"))).await;
    assert_eq!(tally(&replies)["200"], 20);
    assert_eq!(stock(&app, &sale, 0).await, 3);
    other.post(&sale.purchase(0)).await.expect(201);
    restock(&sale, 4, "delivery-1").await.refused(422, "idempotency_key_reused");
    sale.assert_sound(app.app()).await;

    assert_eq!(restock(&sale, -1, "breakage").await.expect(200)["availableStock"], 1);
    restock(&sale, -2, "too much").await.refused(400, "validation_failed");
    restock(&sale, -2, "too-much").await.refused(409, "restock_refused");
    restock(&sale, 0, "nothing").await.refused(400, "validation_failed");
    restock(&sale, 100_000_000, "too-many").await.refused(409, "restock_refused");
    // What was refused was not done, and can be done when it is possible.
    restock(&sale, 1, "delivery-2").await.expect(200);
    restock(&sale, -2, "too-much").await.expect(200);
    assert_eq!(stock(&app, &sale, 0).await, 0);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    restock(&sale, 1, "after").await.refused(409, "sale_not_active");
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn what_is_held_for_a_payment_is_not_withdrawn() {
    let app = calm_app().await;
    let sale = unpaid_sale(&app, 1, 5, 600).await;
    reserve_directly(&app, &sale, 3).await;
    restock(&sale, -3, "a").await.refused(409, "restock_refused");
    restock(&sale, -2, "b").await.expect(200);
    assert_eq!(stock(&app, &sale, 0).await, 0);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_sale_that_redis_lost_is_rebuilt_with_every_unit_that_was_added_and_none_that_was_withdrawn() {
    let (redis, mut config) = (harness::own_redis().await, without_hurry(harness::config().await));
    config.live.url = redis.url().into();
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, 5).await;
    reserve_directly(&app, &sale, 4).await;
    restock(&sale, 10, "more").await.expect(200);
    restock(&sale, -3, "less").await.expect(200);
    eventually("every order is durable", || async {
        app.app().mongo().orders.count_of_event(event_id(&sale)).await.unwrap() == 4
    })
    .await;
    let () = super::command(app.config(), &["FLUSHALL"]).await;
    eventually("the sale is rebuilt and can be resumed", || async { sale.control("Resume").await.status == 200 }).await;
    assert_eq!(stock(&app, &sale, 0).await, 5 - 4 + 10 - 3);
    // The operations are known still.
    restock(&sale, 10, "more").await.expect(200);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
