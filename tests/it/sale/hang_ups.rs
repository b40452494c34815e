//! A client hangs up in the middle of a purchase, a cancellation or a restocking, in each step of it: the work is brought to
//! its end, or nothing has happened; never half of it.

use serde_json::{Value, json};

use super::{event_id, stock, without_hurry};
use crate::harness::proxy::Proxy;
use crate::harness::{self, LiveSale, Pending, TestApp, eventually};

const UNITS: u32 = 50;

/// Both servers behind proxies.
struct Stage {
    redis: Proxy,
    mongo: Proxy,
    app: TestApp,
    sale: LiveSale,
    _servers: (orbit::supervisor::RedisServer, orbit::supervisor::MongoServer),
}

impl Stage {
    async fn new() -> Self {
        let servers = (harness::own_redis().await, harness::own_mongo().await);
        let (redis, mongo) = (Proxy::to(servers.0.port()).await, Proxy::to(servers.1.port()).await);
        let mut config = without_hurry(harness::config().await);
        config.live.url = redis.url().into();
        config.mongo.uri = mongo.instead_of(&servers.1.uri()).into();
        // What is held belongs to the request, and to no work in the background.
        config.sale.drain_interval_ms = 3_600_000;
        config.sale.recovery_interval_ms = 3_600_000;
        let app = TestApp::with(config).await;
        let sale = app.live_sale(1, UNITS).await;
        Self { redis, mongo, app, sale, _servers: servers }
    }

    /// Sends a request whose traffic has this mark, and hangs up in its `step`-th request to a store. False if it has no
    /// such step.
    async fn hang_up(&self, who: &harness::Actor, (path, body): (&str, &Value), mark: &str, step: usize) -> bool {
        let proxies = [&self.redis, &self.mongo];
        proxies.iter().for_each(|proxy| proxy.hold(mark));
        let mut pending = Pending::send(who, path, body).await;
        let held = pending.until_held(&proxies, step).await;
        pending.hang_up().await;
        proxies.iter().for_each(|proxy| proxy.pass_all());
        held
    }

    async fn stock(&self) -> i64 {
        stock(&self.app, &self.sale, 0).await
    }
}

#[tokio::test]
async fn a_buyer_who_hangs_up_while_buying_has_one_reservation_or_none() {
    let stage = Stage::new().await;
    for step in 1.. {
        let (buyer, before) = (stage.app.buyer().await, stage.stock().await);
        let path = stage.sale.purchase(0);
        let held = stage.hang_up(&buyer, (&path, &Value::Null), &buyer.id, step).await;

        let again = buyer.post(&path).await;
        assert!(again.status == 201 || again.body["code"] == "already_booked", "{again:?}");
        assert_eq!(stage.stock().await, before - 1, "step {step}");
        if !held {
            assert!(step > 1, "a purchase asks the live store");
            break;
        }
    }
    stage.sale.assert_sound(stage.app.app()).await;
    stage.app.finish().await;
}

#[tokio::test]
async fn a_buyer_who_hangs_up_while_cancelling_has_cancelled_or_not() {
    let stage = Stage::new().await;
    let own = format!("/api/buyer/event/{}/reservation/{}", stage.sale.event, stage.sale.products[0]);
    let path = format!("{own}/cancel");
    let initial = stage.stock().await;
    for step in 1.. {
        let buyer = stage.app.buyer().await;
        buyer.post(&stage.sale.purchase(0)).await.expect(201);
        assert_eq!(stage.stock().await, initial - 1);
        let held = stage.hang_up(&buyer, (&path, &Value::Null), &buyer.id, step).await;

        // The first step reads; from the second on it is being done.
        if step > 1 {
            eventually("it is cancelled", || async {
                buyer.get(&own).await.expect(200)["reservation"]["status"] == "CANCELLED"
            })
            .await;
            assert_eq!(stage.stock().await, initial, "step {step}");
        }
        stage.sale.assert_sound(stage.app.app()).await;
        buyer.post(&path).await.expect(200);
        assert_eq!(stage.stock().await, initial, "step {step}");
        if !held {
            assert!(step > 2, "cancelling reads the reservation and releases it: {step}");
            break;
        }
    }
    stage.sale.assert_sound(stage.app.app()).await;
    stage.app.finish().await;
}

#[tokio::test]
async fn a_seller_who_hangs_up_while_restocking_has_restocked_once() {
    let stage = Stage::new().await;
    let path = format!("/api/seller/events/{}/products/{}/restock", stage.sale.event, stage.sale.products[0]);
    for step in 1.. {
        let (before, operation) = (stage.stock().await, format!("delivery-{step}"));
        let body = json!({ "units": 3, "operationId": operation });
        let held = stage.hang_up(&stage.sale.seller, (&path, &body), &operation, step).await;

        eventually("the units are there", || async { stage.stock().await == before + 3 }).await;
        let restocks = &stage.app.app().mongo().restocks;
        eventually("and it is known that they are", || async {
            restocks
                .in_state(event_id(&stage.sale), orbit::domain::restock::RestockState::Pending)
                .await
                .unwrap()
                .is_empty()
        })
        .await;
        let again = stage.sale.seller.post_json(&path, body).await.expect(200);
        assert_eq!(again["availableStock"], before + 3, "step {step}");
        if !held {
            assert!(step > 3, "it is recorded, decided, and recorded again: {step}");
            break;
        }
    }
    stage.sale.assert_sound(stage.app.app()).await;
    stage.app.finish().await;
}
