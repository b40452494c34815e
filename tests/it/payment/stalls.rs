//! A process that stalls with a payment in hand for longer than it may: another one decides meanwhile, and that stands.
//!
//! The live store remembers whose money it has refused, so that a process which stalled does not confirm afterwards; it
//! could die right then, and nobody would know. Should the live store have lost that, the units are taken back.

use std::sync::Arc;

use orbit::config::{Config, ExposeSecret};
use orbit::domain::order::OrderStatus;
use serde_json::Value;

use super::gateway::{StripeServer, paid, try_deliver};
use super::{PRICE, ask, assert_money_sound, ended, order, payment, reserve, sale_to_be_paid, status, until};
use crate::harness::proxy::{Mode, Proxy};
use crate::harness::{Actor, LiveSale, Reply, TestApp, TestClock, eventually, own_redis};
use crate::sale::command;

/// Long enough to ask for a payment on a busy machine, and short enough to wait for.
const WINDOW_S: u32 = 3;
/// Whoever has taken a payment has it for half a minute; the other process' clock is moved so far.
const TAKEN_FOR_S: i64 = 31;

/// Two processes of which nobody reconciles but the test: the one that stalls is behind a proxy.
struct Stage {
    stripe: StripeServer,
    proxy: Proxy,
    stalls: TestApp,
    decides: TestApp,
    clock: Arc<TestClock>,
    sale: LiveSale,
    late: Actor,
    rival: Actor,
    reservation: String,
    intent: Value,
}

async fn config(stripe: &StripeServer, url: String) -> Config {
    let mut config = stripe.config().await;
    config.live.url = url.into();
    config.live.deadline_ms = 60_000;
    config.payment.reconcile_interval_ms = 3_600_000;
    config
}

impl Stage {
    async fn new(url: String, port: u16) -> Self {
        let (stripe, proxy, clock) =
            (StripeServer::start().await, Proxy::to(port).await, Arc::new(TestClock::default()));
        let direct = config(&stripe, url).await;
        let mut proxied = direct.clone();
        proxied.live.url = proxy.instead_of(direct.live.url.expose_secret()).into();
        let decides = TestApp::with_clock(direct, Arc::clone(&clock) as _).await;
        let stalls = TestApp::with(proxied).await;
        let sale = sale_to_be_paid(&decides, 1, WINDOW_S).await;
        let (late, rival) = (decides.buyer().await, decides.buyer().await);
        let reservation = reserve(&late, &sale, 1).await;
        let intent = ask(&late, &sale).await.expect(200)["intentId"].as_str().unwrap().to_owned();
        let intent = stripe.pay(&intent);
        Self { stripe, proxy, stalls, decides, clock, sale, late, rival, reservation, intent }
    }

    /// Tells the process that stalls, which comes as far as confirming; and while it stalls, plays `meanwhile`.
    async fn play(&self, meanwhile: impl Future<Output = ()>) -> reqwest::Result<Reply> {
        self.proxy.hold(&self.reservation);
        let (gateway, event) = (self.stalls.anonymous(), paid("evt_1", &self.intent));
        let playing = async {
            eventually("it confirms", || async { self.proxy.holds() == 1 }).await;
            meanwhile.await;
        };
        tokio::join!(try_deliver(&gateway, &event), playing).0
    }

    /// The hold runs out, a rival takes its unit, the money buys nothing and goes back; and then the unit comes back.
    async fn decide_otherwise(&self) {
        until(&self.late, &self.sale, "EXPIRED").await;
        reserve(&self.rival, &self.sale, 1).await;
        self.clock.advance(TAKEN_FOR_S);
        let payments = self.decides.app().payments();
        eventually("the other process has decided and refunded", || async {
            payments.reconcile().await.unwrap();
            payment(self.decides.app(), &self.reservation).await.refunded_minor == PRICE
        })
        .await;
        self.rival.post(&format!("{}/cancel", super::reservation_path(&self.sale))).await.expect(200);
        assert_eq!(self.sale.available(&self.rival, 0).await, 1);
    }

    /// The live store is one that has lost what it did last.
    async fn forget_the_refusal(&self) {
        let keys = self.decides.app().live().keys();
        let (event, product) = (self.sale.event.parse().unwrap(), self.sale.products[0].parse().unwrap());
        let user = order(self.decides.app(), &self.reservation).await.user;
        let booking = keys.booking(user, product, event);
        let removed: u32 = command(self.decides.config(), &["HDEL", &booking, "refused"]).await;
        assert_eq!(removed, 1, "the refusal was not remembered");
    }

    /// The first decision stands: no money is kept, and no unit.
    async fn assert_not_held(self, ended_as: OrderStatus) {
        let app = self.decides.app();
        assert_eq!(self.sale.available(&self.rival, 0).await, 1);
        assert_eq!(status(&self.late, &self.sale).await, ended_as.as_str());
        eventually("nothing is left to be done", || async {
            app.payments().reconcile().await.unwrap();
            // The units that went back are known in MongoDB, and their money was looked at.
            let returned = app.mongo().returns.is_open(&self.reservation).await.unwrap();
            !returned
                && order(app, &self.reservation).await.status == ended_as
                && payment(app, &self.reservation).await.due_at.is_none()
        })
        .await;
        assert_eq!(ended(&payment(app, &self.reservation).await), ("PAID_WITHOUT_STOCK", PRICE));
        assert_eq!(self.stripe.refunds(self.intent["id"].as_str().unwrap()), [PRICE]);
        assert_money_sound(app, &self.sale).await;
        self.sale.assert_sound(app).await;
        assert!(self.stalls.running.stop().await);
        self.decides.finish().await;
    }
}

#[tokio::test]
async fn a_process_that_would_confirm_after_another_has_refused_is_refused_as_well() {
    let redis = own_redis().await;
    let stage = Stage::new(redis.url(), redis.port()).await;

    let told = stage
        .play(async {
            stage.decide_otherwise().await;
            stage.proxy.pass_all();
        })
        .await;

    assert_eq!(told.unwrap().expect(200)["outcome"], "applied");
    stage.assert_not_held(OrderStatus::Expired).await;
}

#[tokio::test]
async fn a_process_that_dies_before_it_hears_the_answer_leaves_no_units_that_nobody_has_paid_for() {
    let redis = own_redis().await;
    let stage = Stage::new(redis.url(), redis.port()).await;

    // Its request is executed, and it never hears of it.
    stage.proxy.drop_answers(&stage.reservation, 1);

    let told = stage
        .play(async {
            stage.decide_otherwise().await;
            stage.proxy.pass_one();
            eventually("the live store has answered", || async { stage.proxy.dropped() == 1 }).await;
            stage.proxy.set(Mode::Cut);
        })
        .await;

    told.unwrap().refused(503, "live_store_unavailable");
    stage.assert_not_held(OrderStatus::Expired).await;
}

#[tokio::test]
async fn a_process_that_confirms_what_was_refused_before_the_live_store_lost_that_gives_the_units_back() {
    let redis = own_redis().await;
    let stage = Stage::new(redis.url(), redis.port()).await;

    let told = stage
        .play(async {
            stage.decide_otherwise().await;
            stage.forget_the_refusal().await;
            stage.proxy.pass_all();
        })
        .await;

    assert_eq!(told.unwrap().expect(200)["outcome"], "applied");
    stage.assert_not_held(OrderStatus::Cancelled).await;
}

#[tokio::test]
async fn units_that_a_stalled_process_could_not_give_back_are_given_back_by_another() {
    let redis = own_redis().await;
    let stage = Stage::new(redis.url(), redis.port()).await;

    let told = stage
        .play(async {
            stage.decide_otherwise().await;
            stage.forget_the_refusal().await;
            stage.proxy.pass_one();
            eventually("it gives the units back", || async { stage.proxy.holds() == 2 }).await;
            assert_eq!(status(&stage.late, &stage.sale).await, "CONFIRMED");
            stage.proxy.set(Mode::Cut);
        })
        .await;

    told.unwrap().refused(503, "live_store_unavailable");
    let app = stage.decides.app();
    eventually("the other process has given them back", || async {
        app.payments().reconcile().await.unwrap();
        status(&stage.late, &stage.sale).await == "CANCELLED"
    })
    .await;
    stage.assert_not_held(OrderStatus::Cancelled).await;
}
