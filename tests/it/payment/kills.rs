//! A process is killed between two steps of a payment, and another one brings it to its end: what is kept is the price of
//! what is held, whatever the moment.

use std::sync::Arc;

use orbit::config::{Config, ExposeSecret};
use orbit::domain::payment::PaymentState;
use orbit::supervisor::{MongoServer, RedisServer};

use super::gateway::{Fault, StripeServer, deliver, paid, try_deliver};
use super::{
    LONG_S, PRICE, assert_balanced, assert_money_sound, at_rest, cancel, ended, intent, order, payment, reserve,
    sale_to_be_paid,
};
use crate::harness::process::OrbitProcess;
use crate::harness::proxy::Proxy;
use crate::harness::{TestApp, TestClock, eventually, own_mongo, own_redis};

/// Whoever has taken a payment has it for half a minute. A process whose clock is so far ahead need not wait.
const TAKEN_FOR_S: i64 = 31;

/// Servers of the test's own, each behind a proxy, and how they are reached directly and through those.
struct Stage {
    stripe: StripeServer,
    direct: Config,
    proxied: Config,
    redis: Proxy,
    mongo: Proxy,
    _servers: (RedisServer, MongoServer),
}

async fn stage() -> Stage {
    let (stripe, redis, mongo) = (StripeServer::start().await, own_redis().await, own_mongo().await);
    let mut direct = stripe.config().await;
    direct.live.url = redis.url().into();
    direct.mongo.uri = mongo.uri().into();
    direct.live.deadline_ms = 20_000;
    direct.mongo.deadline_ms = 20_000;
    direct.payment.deadline_ms = 5_000;
    let (before_redis, before_mongo) = (Proxy::to(redis.port()).await, Proxy::to(mongo.port()).await);
    let mut proxied = direct.clone();
    // What is held is about payments, and nothing else.
    proxied.sale.drain_interval_ms = 3_600_000;
    proxied.live.url = before_redis.instead_of(direct.live.url.expose_secret()).into();
    proxied.mongo.uri = before_mongo.instead_of(direct.mongo.uri.expose_secret()).into();
    Stage { stripe, direct, proxied, redis: before_redis, mongo: before_mongo, _servers: (redis, mongo) }
}

/// The steps of a callback that a process can die before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The money is known, and the live store does not confirm yet.
    Confirming,
    /// The live store has confirmed, and what the money did is not recorded.
    Recording,
}

/// Delivers the news to a process, and kills it before this step.
async fn killed_before(step: Before, stage: &Stage, app: &TestApp, reservation: &str, event: &serde_json::Value) {
    let process = OrbitProcess::start(&stage.proxied).await;
    let there = app.anonymous().at(process.url.clone());
    let proxy = if step == Before::Confirming { &stage.redis } else { &stage.mongo };
    let before = proxy.holds();
    proxy.hold(reservation);
    let killing = async {
        eventually("the first request about it", || async { proxy.holds() == before + 1 }).await;
        if step == Before::Recording {
            // The first one records that the money is there.
            proxy.pass_one();
            eventually("the second request about it", || async { proxy.holds() == before + 2 }).await;
        }
        process.kill().await;
    };
    let (told, ()) = tokio::join!(try_deliver(&there, event), killing);
    assert!(told.is_err(), "the gateway got an answer: {told:?}");
}

#[tokio::test]
async fn money_that_a_killed_process_had_in_hand_is_applied_by_another_and_buys_the_units_once() {
    for step in [Before::Confirming, Before::Recording] {
        let stage = stage().await;
        let clock = Arc::new(TestClock::default());
        let app = TestApp::with_clock(stage.direct.clone(), Arc::clone(&clock) as _).await;
        let sale = sale_to_be_paid(&app, 5, LONG_S).await;
        let buyer = app.buyer().await;
        let reservation = reserve(&buyer, &sale, 2).await;
        let object = stage.stripe.pay(&intent(&buyer, &sale).await);

        killed_before(step, &stage, &app, &reservation, &paid("evt_1", &object)).await;
        let left = payment(app.app(), &reservation).await;
        assert_eq!((left.state, left.applied), (PaymentState::Succeeded, None), "{step:?}");
        let confirmed = super::status(&buyer, &sale).await == "CONFIRMED";
        assert_eq!(confirmed, step == Before::Recording);

        clock.advance(TAKEN_FOR_S);
        assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 0), "{step:?}");
        assert_eq!(super::status(&buyer, &sale).await, "CONFIRMED");
        // The gateway repeats what nobody has acknowledged.
        assert_eq!(deliver(&app.anonymous(), &paid("evt_1", &object)).await.expect(200)["outcome"], "before");
        assert_balanced(app.app(), &reservation).await;
        assert_eq!(order(app.app(), &reservation).await.revision, 2, "reserved and confirmed, once");
        assert_money_sound(app.app(), &sale).await;
        sale.assert_sound(app.app()).await;
        app.finish().await;
    }
}

#[tokio::test]
async fn a_refund_in_whose_middle_its_process_was_killed_is_made_once_by_another() {
    // The gateway has done it, and it has not.
    for fault in [Fault::AnswerLost, Fault::Lost] {
        let stage = stage().await;
        let mut idle = stage.direct.clone();
        idle.payment.reconcile_interval_ms = 3_600_000;
        let app = TestApp::with(idle).await;
        let process = OrbitProcess::start(&stage.proxied).await;
        let sale = sale_to_be_paid(&app, 5, LONG_S).await;
        let buyer = app.buyer().await;
        let reservation = reserve(&buyer, &sale, 3).await;
        let name = intent(&buyer, &sale).await;
        deliver(&app.anonymous(), &paid("evt_1", &stage.stripe.pay(&name))).await.expect(200);
        at_rest(app.app(), &reservation).await;

        stage.stripe.meet([fault]);
        cancel(app.app(), &reservation, Some(2), "two of three").await;
        eventually("the gateway is asked for a refund", || async { stage.stripe.waiting() == 1 }).await;
        process.kill().await;
        let left = payment(app.app(), &reservation).await;
        assert_eq!((left.refunding_minor, left.refunded_minor), (Some(2 * PRICE), 0), "{fault:?}");

        let clock = Arc::new(TestClock::default());
        clock.advance(TAKEN_FOR_S);
        let second = TestApp::with_clock(stage.direct.clone(), clock).await;
        assert_money_sound(second.app(), &sale).await;
        assert_eq!(ended(&at_rest(app.app(), &reservation).await), ("CONFIRMED", 2 * PRICE));
        assert_eq!(stage.stripe.refunds(&name), [2 * PRICE], "{fault:?}");
        assert_balanced(app.app(), &reservation).await;
        sale.assert_sound(app.app()).await;
        assert!(second.running.stop().await);
        app.finish().await;
    }
}
