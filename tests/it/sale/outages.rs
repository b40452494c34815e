//! Outages among purchases, each measured alike: what was acknowledged, what of it was lost, what was sold twice, and how
//! long nobody could buy. `cargo test --test it outages -- --nocapture` prints a line for each.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::{join, select};
use orbit::config::Config;
use orbit::domain::ids::UserId;
use orbit::domain::page::Page;
use orbit::domain::reservation::{ReserveOutcome, ReserveRequest};
use orbit::domain::sale::{SaleAction, SaleStatus};
use orbit::store::mongo::new_id;
use orbit::supervisor::{AppendFsync, RedisServer};
use tokio::sync::Notify;

use super::{command, event_id, product_id, without_hurry};
use crate::harness::proxy::{Mode, Proxy};
use crate::harness::{self, LiveSale, TestApp, eventually};

const UNITS: usize = 5_000;
/// More than there are units: the sale must sell out, and no further.
const BUYERS: usize = 5_500;
const AT_ONCE: usize = 32;
/// Reservations before the fault.
const BEFORE: usize = 1_000;

/// One outage, measured.
#[derive(Debug)]
struct Measured {
    acknowledged: usize,
    lost: usize,
    duplicated: usize,
    oversold: usize,
}

impl Measured {
    /// Nothing that a buyer was told of is gone, and nothing was sold twice.
    fn assert_nothing_lost(&self) {
        assert_eq!((self.acknowledged, self.lost, self.duplicated, self.oversold), (UNITS, 0, 0, 0), "{self:?}");
    }
}

/// What buyers have been told, and when.
#[derive(Default)]
struct Told {
    acknowledged: RefCell<HashSet<String>>,
    enough: Notify,
    fault_began: Cell<Option<Instant>>,
    recovered: Cell<Option<Duration>>,
}

impl Told {
    /// From now on it is waited for the next buyer who is served.
    fn begin(&self) {
        self.fault_began.set(Some(Instant::now()));
        self.recovered.set(None);
    }

    fn hear(&self, reservation: String, asked: Instant) {
        let mut all = self.acknowledged.borrow_mut();
        all.insert(reservation);
        if all.len() == BEFORE {
            self.enough.notify_one();
        }
        if let Some(began) = self.fault_began.get()
            && asked > began
            && self.recovered.get().is_none()
        {
            self.recovered.set(Some(began.elapsed()));
        }
    }
}

/// A new buyer asks until there is a decision. A paused sale is none: its seller resumes it.
async fn buy(app: &TestApp, sale: &LiveSale, told: &Told) {
    let user = UserId::from_bytes(new_id());
    loop {
        let request = ReserveRequest {
            user,
            product: product_id(sale, 0),
            event: event_id(sale),
            quantity: 1,
            reservation_id: uuid::Uuid::now_v7().to_string(),
            idempotency_key: String::new(),
        };
        let asked = Instant::now();
        match app.app().sale().reserve(&request).await {
            Ok(ReserveOutcome::Reserved(made) | ReserveOutcome::AlreadyReserved(made)) => {
                return told.hear(made.id, asked);
            }
            Ok(ReserveOutcome::SoldOut) => return,
            // Paused, lost, unreachable, damaged for the moment.
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// A seller who resumes the sale whenever it waits for them.
async fn watchful_seller(app: &TestApp, sale: &LiveSale) {
    let (live, event) = (app.app().live(), event_id(sale));
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let waits = matches!(live.held(event).await, Ok(Some(held)) if !held.blocking);
        if waits && matches!(live.status(event).await, Ok(SaleStatus::Paused)) {
            drop(live.transition(event, SaleAction::Resume, None).await);
        }
    }
}

/// Buyers buy until the sale is sold out; `fault` happens in the middle. Then the sale is ended, and everything compared.
async fn measure(name: &str, app: TestApp, sale: LiveSale, fault: impl AsyncFnOnce(&Told)) -> Measured {
    let told = Told::default();
    {
        let buyers = futures::stream::iter(0..BUYERS).map(|_| buy(&app, &sale, &told)).buffer_unordered(AT_ONCE);
        let outage = async {
            told.enough.notified().await;
            told.begin();
            fault(&told).await;
        };
        let crowd = std::pin::pin!(join(buyers.collect::<Vec<()>>(), outage));
        let seller = std::pin::pin!(watchful_seller(&app, &sale));
        select(crowd, seller).await;
    }

    eventually("the live store is recognised", || async {
        let live = app.app().live();
        live.ping().await.is_ok_and(|run| run.is_some_and(|run| live.trusts(run)))
    })
    .await;
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    sale.assert_sound(app.app()).await;
    let orders = app.app().mongo().orders.of_event(event_id(&sale), Page { limit: 10_000, after: None }).await.unwrap();
    let (mut ids, mut of_buyer) = (HashSet::new(), BTreeMap::<_, usize>::new());
    for order in orders.items {
        ids.insert(order.reservation_id);
        *of_buyer.entry(order.user.to_string()).or_default() += 1;
    }
    let acknowledged = told.acknowledged.into_inner();
    let measured = Measured {
        acknowledged: acknowledged.len(),
        lost: acknowledged.difference(&ids).count(),
        duplicated: of_buyer.values().filter(|count| **count > 1).count(),
        oversold: ids.len().saturating_sub(UNITS),
    };
    eprintln!(
        "| {name} | {} | {} | {} | {} | {:.0} ms |",
        measured.acknowledged,
        measured.lost,
        measured.duplicated,
        measured.oversold,
        told.recovered.get().unwrap_or_default().as_secs_f64() * 1000.0
    );
    app.finish().await;
    measured
}

async fn config_on(url: String) -> Config {
    let mut config = without_hurry(harness::config().await);
    config.live.url = url.into();
    config.live.purchase_deadline_ms = 500;
    config
}

async fn stage(config: Config) -> (TestApp, LiveSale) {
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, u32::try_from(UNITS).unwrap()).await;
    (app, sale)
}

#[tokio::test]
async fn scripts_that_are_forgotten_cost_nothing() {
    let redis = harness::own_redis().await;
    let (app, sale) = stage(config_on(redis.url()).await).await;
    let config = app.config().clone();
    let fault = async |_: &Told| {
        for _ in 0..50 {
            let _: () = command(&config, &["SCRIPT", "FLUSH"]).await;
        }
    };
    measure("SCRIPT FLUSH, fifty times", app, sale, fault).await.assert_nothing_lost();
}

#[tokio::test]
async fn answers_that_are_lost_cost_nothing() {
    let redis = harness::own_redis().await;
    let proxy = Proxy::to(redis.port()).await;
    let (app, sale) = stage(config_on(proxy.url()).await).await;
    let fault = async |_: &Told| {
        for _ in 0..20 {
            proxy.drop_answers("EVALSHA", 1);
            eventually("an answer was dropped", || async { proxy.settled() }).await;
        }
    };
    measure("executed, the answer lost, twenty times", app, sale, fault).await.assert_nothing_lost();
}

#[tokio::test]
async fn connections_that_are_cut_cost_nothing() {
    let redis = harness::own_redis().await;
    let proxy = Proxy::to(redis.port()).await;
    let (app, sale) = stage(config_on(proxy.url()).await).await;
    let fault = async |_: &Told| {
        proxy.set(Mode::Cut);
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.set(Mode::Pass);
    };
    measure("Redis unreachable for 300 ms", app, sale, fault).await.assert_nothing_lost();
}

async fn redis_killed(name: &str, append_fsync: AppendFsync) -> Measured {
    let mut redis = RedisServer::start(harness::redis_options(append_fsync)).await.unwrap();
    let (app, sale) = stage(config_on(redis.url()).await).await;
    let fault = async |_: &Told| {
        redis.kill().await;
        redis.restart().await.unwrap();
    };
    measure(name, app, sale, fault).await
}

#[tokio::test]
async fn a_redis_that_is_killed_and_fsyncs_always_costs_nothing() {
    redis_killed("Redis kill -9, always", AppendFsync::Always).await.assert_nothing_lost();
}

#[tokio::test]
async fn a_redis_that_is_killed_and_fsyncs_each_second_sells_nothing_twice() {
    let measured = redis_killed("Redis kill -9, everysec", AppendFsync::Everysec).await;
    assert_eq!((measured.duplicated, measured.oversold), (0, 0), "{measured:?}");
}

#[tokio::test]
async fn a_redis_that_is_wiped_loses_what_was_not_durable_yet_and_sells_nothing_twice() {
    let redis = harness::own_redis().await;
    let (app, sale) = stage(config_on(redis.url()).await).await;
    let (config, event) = (app.config().clone(), event_id(&sale));
    let mongo = std::sync::Arc::clone(app.app().mongo());
    let (durable, told_before) = (Cell::new(0), Cell::new(0));
    let fault = async |told: &Told| {
        eventually("some orders are durable", || async {
            durable.set(usize::try_from(mongo.orders.count_of_event(event).await.unwrap()).unwrap());
            durable.get() > 0
        })
        .await;
        let _: () = command(&config, &["FLUSHALL"]).await;
        told.begin();
        told_before.set(told.acknowledged.borrow().len());
    };
    let measured = measure("Redis wiped", app, sale, fault).await;
    assert_eq!((measured.duplicated, measured.oversold), (0, 0), "{measured:?}");
    // Those in flight at that moment are told of it afterwards.
    assert!(measured.lost <= told_before.get() - durable.get() + AT_ONCE, "what was durable is not lost: {measured:?}");
}

#[tokio::test]
async fn a_replica_that_takes_over_late_loses_what_was_not_durable_yet_and_sells_nothing_twice() {
    let mut master = harness::own_redis().await;
    let replica = super::recovery::replica_of(&master).await;
    let proxy = Proxy::to(master.port()).await;
    let (app, sale) = stage(config_on(proxy.url()).await).await;
    let (here, event) = (app.app().live().keys().bookings(event_id(&sale)), event_id(&sale));
    let mongo = std::sync::Arc::clone(app.app().mongo());
    let fault = async |told: &Told| {
        // It stops following, and misses at least what becomes durable from here on until the master dies.
        super::recovery::said(&replica, &["REPLICAOF", "NO", "ONE"]).await;
        let seen: u64 = super::recovery::said(&replica, &["SCARD", &here]).await.parse().unwrap();
        eventually("orders are durable that it has not seen", || async {
            mongo.orders.count_of_event(event).await.unwrap() > seen + 50
        })
        .await;
        master.kill().await;
        told.begin();
        proxy.fail_over(replica.port());
    };
    let measured = measure("replica promoted without the last writes", app, sale, fault).await;
    assert_eq!((measured.duplicated, measured.oversold), (0, 0), "{measured:?}");
}

#[tokio::test]
async fn a_database_that_is_killed_among_purchases_costs_nothing() {
    let (redis, mut mongo) = (harness::own_redis().await, harness::own_lasting_mongo().await);
    let mut config = config_on(redis.url()).await;
    config.mongo.uri = mongo.uri().into();
    let (app, sale) = stage(config).await;
    let fault = async |_: &Told| {
        mongo.kill().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        mongo.restart().await.unwrap();
    };
    measure("MongoDB kill -9, back after 500 ms", app, sale, fault).await.assert_nothing_lost();
}

#[tokio::test]
async fn a_redis_without_memory_costs_nothing_once_it_has_some() {
    let redis = harness::own_redis().await;
    let (app, sale) = stage(config_on(redis.url()).await).await;
    let config = app.config().clone();
    let fault = async |_: &Told| {
        let _: () = command(&config, &["CONFIG", "SET", "maxmemory", "1"]).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _: () = command(&config, &["CONFIG", "SET", "maxmemory", "0"]).await;
    };
    measure("memory limit reached for 300 ms", app, sale, fault).await.assert_nothing_lost();
}

#[tokio::test]
async fn a_key_of_the_wrong_type_costs_nothing_once_it_is_put_right() {
    let redis = harness::own_redis().await;
    let (app, sale) = stage(config_on(redis.url()).await).await;
    let config = app.config().clone();
    let winners = app.app().live().keys().winners(event_id(&sale), product_id(&sale, 0));
    let fault = async |_: &Told| {
        let aside = format!("{winners}:aside");
        // In one step, or a purchase in between makes the key anew.
        let swap = "redis.call('RENAME', KEYS[1], KEYS[2]) redis.call('SET', KEYS[1], 'not a set')";
        let _: () = command(&config, &["EVAL", swap, "2", &winners, &aside]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _: () = command(&config, &["RENAME", &aside, &winners]).await;
    };
    measure("wrong-typed key planted for 100 ms", app, sale, fault).await.assert_nothing_lost();
}
