//! After the end nobody is offered anything: not to reserve, not to pay for what has run out, not what came back.

use chrono::{DateTime, Utc};
use orbit::store::mongo::events::{EventChange, PlanChange};
use serde_json::Value;

use super::gateway::{StripeServer, deliver, paid};
use super::{
    LONG_S, PRICE, ask, assert_money_sound, at_rest, ended, intent, order, prepared, reservation_path, reserve, status,
    until,
};
use crate::harness::{Actor, LiveSale, TestApp, eventually};

async fn in_ms(app: &TestApp, ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(app.app().live().now_ms().await.unwrap() + ms).unwrap()
}

/// A live sale of two units that ends by itself in so many milliseconds.
async fn ending_sale(app: &TestApp, window_s: u32, ends_in_ms: i64) -> LiveSale {
    let sale = prepared(app, 2, window_s).await;
    let plan = PlanChange { ends_at: Some(Some(in_ms(app, ends_in_ms).await)), ..PlanChange::default() };
    let change = EventChange { plan, ..EventChange::default() };
    app.app().mongo().events.update(sale.event.parse().unwrap(), &change).await.unwrap().unwrap();
    sale.control("Live").await.expect(200);
    sale
}

async fn next(buyer: &Actor, sale: &LiveSale) -> Value {
    buyer.get(&reservation_path(sale)).await.expect(200)["reservation"]["next"]["action"].clone()
}

async fn until_settled(app: &TestApp, sale: &LiveSale) {
    eventually("the sale has ended by itself", || async {
        let event = app.app().catalogue().event(sale.event.parse().unwrap()).await.unwrap();
        event.phase == orbit::domain::event::SalePhase::Settled
    })
    .await;
}

#[tokio::test]
async fn what_runs_out_after_the_end_is_offered_to_nobody_and_late_money_for_it_goes_back() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = ending_sale(&app, 6, 4_000).await;
    let (late, waits) = (app.buyer().await, app.buyer().await);
    let reservation = reserve(&late, &sale, 2).await;
    let name = intent(&late, &sale).await;
    waits.post(&sale.purchase(0)).await.refused(409, "sold_out");
    until_settled(&app, &sale).await;

    until(&late, &sale, "EXPIRED").await;

    // Both units are free, and the sale is over: for who waited, and for who let them run out.
    for buyer in [&waits, &late] {
        buyer.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        assert_eq!(sale.available(buyer, 0).await, 0);
        let listed = buyer.get("/api/buyer/events").await.expect(200);
        assert!(!listed.to_string().contains(&sale.event), "{listed}");
        let upcoming = buyer.get("/api/buyer/events?upcoming=true").await.expect(200);
        assert!(!upcoming.to_string().contains(&sale.event), "{upcoming}");
    }
    ask(&late, &sale).await.refused(409, "reservation_expired");
    assert_ne!(next(&late, &sale).await, "pay");
    // An offer from before is taken up too late: nothing is sold by it.
    let object = stripe.pay(&name);
    deliver(&app.anonymous(), &paid("evt_late", &object)).await.expect(200);
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("PAID_WITHOUT_STOCK", 2 * PRICE));
    assert_eq!(status(&late, &sale).await, "EXPIRED");
    assert_eq!(order(app.app(), &reservation).await.units_held(), 0);
    assert_money_sound(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn what_is_cancelled_after_the_end_is_offered_to_nobody_and_a_hold_from_before_can_still_be_paid() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = ending_sale(&app, LONG_S, 3_000).await;
    let (patient, gives_up, waits) = (app.buyer().await, app.buyer().await, app.buyer().await);
    let reservation = reserve(&patient, &sale, 1).await;
    reserve(&gives_up, &sale, 1).await;
    until_settled(&app, &sale).await;

    // What was promised before the end is kept.
    assert_eq!(next(&patient, &sale).await, "pay");
    gives_up.post(&format!("{}/cancel", reservation_path(&sale))).await.expect(200);
    ask(&gives_up, &sale).await.refused(409, "nothing_to_pay");
    waits.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
    let path = format!("/api/seller/events/{}/products/{}/restock", sale.event, sale.products[0]);
    let more = serde_json::json!({ "units": 5, "operationId": "more" });
    sale.seller.post_json(&path, more).await.refused(409, "sale_not_active");

    let object = stripe.pay(&intent(&patient, &sale).await);
    deliver(&app.anonymous(), &paid("evt_1", &object)).await.expect(200);
    assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0));
    assert_eq!(next(&patient, &sale).await, "none");
    assert_money_sound(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
