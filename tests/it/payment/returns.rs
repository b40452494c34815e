//! Units that come back by several ways come back once, whatever the order of the ways; and what was not paid for in time is
//! nobody's.

use std::collections::BTreeSet;

use bson::{Document, doc};
use futures::TryStreamExt;
use serde_json::json;

use super::gateway::{StripeServer, deliver, event, paid};
use super::{
    LONG_S, PRICE, assert_money_sound, at_rest, documents, ended, intent, order, reservation_path, reserve,
    sale_to_be_paid, status, until,
};
use crate::harness::{Actor, LiveSale, TestApp, eventually};

/// The ways in which units, or their money, come back.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// The seller cancels one unit, under a key.
    Part,
    /// The buyer cancels.
    Whole,
    /// Somebody gives the rest of the money back on the gateway's own pages, and we are told.
    ByHand,
}

const ORDERS: [[Way; 3]; 6] = [
    [Way::Part, Way::Whole, Way::ByHand],
    [Way::Part, Way::ByHand, Way::Whole],
    [Way::Whole, Way::Part, Way::ByHand],
    [Way::Whole, Way::ByHand, Way::Part],
    [Way::ByHand, Way::Part, Way::Whole],
    [Way::ByHand, Way::Whole, Way::Part],
];

/// A reservation of three units that is paid for.
struct Paid<'a> {
    stripe: &'a StripeServer,
    app: &'a TestApp,
    sale: &'a LiveSale,
    buyer: Actor,
    reservation: String,
    intent: String,
}

impl Paid<'_> {
    /// Goes a way twice: what is repeated changes nothing.
    async fn go(&self, way: Way) {
        for _ in 0..2 {
            match way {
                Way::Part => {
                    let path = format!("/api/seller/events/{}/orders/{}/cancel", self.sale.event, self.reservation);
                    let part = self.sale.seller.request(reqwest::Method::POST, &path).header("idempotency-key", "part");
                    // What is cancelled as a whole has no part left to return.
                    let reply = Actor::send(part.json(&json!({ "quantity": 1 }))).await;
                    assert!([200, 409].contains(&reply.status), "{reply:?}");
                }
                Way::Whole => {
                    self.buyer.post(&format!("{}/cancel", reservation_path(self.sale))).await.expect(200);
                }
                Way::ByHand => {
                    let back: i64 = self.stripe.refunds(&self.intent).iter().sum();
                    if back < 3 * PRICE {
                        self.stripe.refund_by_hand(&self.intent, 3 * PRICE - back);
                    }
                    let told = json!({ "payment_intent": self.intent });
                    let told = event(&format!("evt_back_{}", self.reservation), "charge.refunded", &told);
                    deliver(&self.app.anonymous(), &told).await.expect(200);
                }
            }
            self.until_returned(match way {
                Way::Part => 1,
                Way::Whole => 3,
                Way::ByHand => 0,
            })
            .await;
        }
    }

    /// Awaits that the order tells of so many returned units, and that their money was seen to.
    async fn until_returned(&self, units: u32) {
        eventually("the order tells of what came back", || async {
            let order = self.app.app().mongo().orders.by_reservation(&self.reservation).await.unwrap();
            order.is_some_and(|order| order.returned >= units)
        })
        .await;
        at_rest(self.app.app(), &self.reservation).await;
    }
}

#[tokio::test]
async fn whatever_the_order_of_refunds_and_cancellations_each_unit_and_its_money_come_back_once() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    for ways in ORDERS {
        let buyer = app.buyer().await;
        let (reservation, intent) = (reserve(&buyer, &sale, 3).await, intent(&buyer, &sale).await);
        let object = stripe.pay(&intent);
        deliver(&app.anonymous(), &paid(&format!("evt_{reservation}"), &object)).await.expect(200);
        at_rest(app.app(), &reservation).await;
        assert_eq!(sale.available(&buyer, 0).await, 2);
        let bought = Paid { stripe: &stripe, app: &app, sale: &sale, buyer, reservation, intent };
        for way in ways {
            bought.go(way).await;
        }

        assert_eq!(sale.available(&bought.buyer, 0).await, 5, "{ways:?}");
        assert_eq!(stripe.refunds(&bought.intent).iter().sum::<i64>(), 3 * PRICE, "{ways:?}");
        assert_eq!(ended(&at_rest(app.app(), &bought.reservation).await), ("CONFIRMED", 3 * PRICE), "{ways:?}");
        assert_eq!(order(app.app(), &bought.reservation).await.returned, 3);
    }
    assert_money_sound(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

/// What the seller was told of a reservation.
async fn told(app: &TestApp, reservation: &str) -> BTreeSet<String> {
    let messages = documents(app, "webhookMessages").await.find(doc! {}).await.unwrap();
    let messages: Vec<Document> = messages.try_collect().await.unwrap();
    let about = messages.iter().filter(|message| message.get_str("body").unwrap().contains(reservation));
    about.map(|message| message.get_str("kind").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn money_that_came_too_late_fulfils_nothing() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 1, 3).await;
    // Nobody listens there; what would be told is written down all the same.
    let endpoint = json!({ "url": "http://127.0.0.1:9/", "eventTypes": [] });
    let registered = sale.seller.post_json("/api/seller/webhooks", endpoint).await;
    assert_eq!(registered.status, 201, "{registered:?}");
    let (late, quick) = (app.buyer().await, app.buyer().await);
    let (unpaid, late_intent) = (reserve(&late, &sale, 1).await, intent(&late, &sale).await);
    until(&late, &sale, "EXPIRED").await;
    let (bought, quick_intent) = (reserve(&quick, &sale, 1).await, intent(&quick, &sale).await);
    for (id, intent) in [("evt_quick", &quick_intent), ("evt_late", &late_intent)] {
        deliver(&app.anonymous(), &paid(id, &stripe.pay(intent))).await.expect(200);
    }
    assert_eq!(ended(&at_rest(app.app(), &unpaid).await), ("PAID_WITHOUT_STOCK", PRICE));
    sale.control("End").await.expect(200);

    let confirmed = told(&app, &bought).await;
    assert!(confirmed.contains("reservation.confirmed") && confirmed.contains("order.settled"), "{confirmed:?}");
    let refused = told(&app, &unpaid).await;
    assert!(!refused.contains("reservation.confirmed") && !refused.contains("order.settled"), "{refused:?}");
    assert_eq!(status(&late, &sale).await, "EXPIRED");
    assert_eq!(order(app.app(), &unpaid).await.units_held(), 0);
    assert_money_sound(app.app(), &sale).await;
    app.finish().await;
}
