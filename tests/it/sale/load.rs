//! Reservations under load, straight at the live store, while it dies.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use futures::StreamExt;
use futures::future::{join, join_all};
use orbit::domain::ids::UserId;
use orbit::domain::page::Page;
use orbit::domain::reservation::{ReserveOutcome, ReserveRequest};
use orbit::domain::sale::SaleStatus;
use orbit::store::live::BookingRead;
use orbit::store::mongo::new_id;
use orbit::supervisor::RedisServer;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{event_id, product_id, stock};
use crate::harness::{LiveSale, TestApp, eventually};

/// Buyers that ask at the same time.
const BUYERS: usize = 64;

/// A reservation that its buyer was told of.
pub struct Acknowledged {
    pub reservation: String,
    pub at: Instant,
}

fn request(sale: &LiveSale) -> ReserveRequest {
    ReserveRequest {
        user: UserId::from_bytes(new_id()),
        product: product_id(sale, 0),
        event: event_id(sale),
        quantity: 1,
        reservation_id: uuid::Uuid::now_v7().to_string(),
        idempotency_key: String::new(),
    }
}

/// New buyers reserve, many at once, until the server is killed in the middle of it: as soon as so many have been told of
/// their reservations. Returns all that were.
pub async fn until_the_server_dies(
    app: &TestApp,
    sale: &LiveSale,
    count: usize,
    redis: &mut RedisServer,
) -> Vec<Acknowledged> {
    let (acknowledged, enough, dead) = (RefCell::new(Vec::new()), Notify::new(), Cell::new(false));
    let buyer = || async {
        while !dead.get() {
            match app.app().sale().reserve(&request(sale)).await {
                Ok(ReserveOutcome::Reserved(made)) => {
                    let mut all = acknowledged.borrow_mut();
                    all.push(Acknowledged { reservation: made.id, at: Instant::now() });
                    if all.len() >= count {
                        enough.notify_one();
                    }
                }
                Ok(other) => panic!("{other:?}"),
                Err(_) => return,
            }
        }
    };
    let killing = async {
        enough.notified().await;
        redis.kill().await;
        dead.set(true);
    };
    join(join_all((0..BUYERS).map(|_| buyer())), killing).await;
    acknowledged.into_inner()
}

/// Waits until a server that came back is recognised and sells again. If it had lost what is in the database, the sale was
/// held and repaired, and its seller resumes it.
pub async fn until_it_sells_again(app: &TestApp, sale: &LiveSale) {
    eventually("the sale goes on", || async {
        match app.app().sale().reserve(&request(sale)).await {
            Ok(ReserveOutcome::Reserved(_)) => true,
            Ok(ReserveOutcome::NotLive(SaleStatus::Paused)) => {
                sale.control("Resume").await;
                false
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => false,
        }
    })
    .await;
}

/// The reservations of the sale that the live store holds or that are orders.
pub async fn reservations(app: &TestApp, sale: &LiveSale) -> HashSet<String> {
    let (live, event) = (app.app().live(), event_id(sale));
    let (mut found, mut cursor) = (HashSet::new(), 0);
    loop {
        let (next, keys) = live.booking_keys_page(event, cursor, 500).await.unwrap();
        for stored in live.read_bookings(event, keys).await.unwrap() {
            match stored.read {
                BookingRead::Whole(reservation) => found.insert(reservation.id),
                other => panic!("{}: {other:?}", stored.key),
            };
        }
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    let orders = app.app().mongo().orders.of_event(event, Page { limit: 100_000, after: None }).await.unwrap();
    found.extend(orders.items.into_iter().map(|order| order.reservation_id));
    found
}

/// Buyers come until nothing is left: exactly the units of the sale are sold, each one becomes one order, and every
/// invariant holds.
pub async fn sell_out(app: &TestApp, sale: &LiveSale, units: usize) {
    let left = usize::try_from(stock(app, sale, 0).await).unwrap();
    let outcomes: Vec<ReserveOutcome> = futures::stream::iter(0..left + BUYERS)
        .map(|_| async { app.app().sale().reserve(&request(sale)).await.unwrap() })
        .buffer_unordered(BUYERS)
        .collect()
        .await;
    let refused = outcomes.iter().filter(|outcome| **outcome == ReserveOutcome::SoldOut).count();
    assert_eq!(refused, BUYERS, "{left} units were left");
    assert_eq!(stock(app, sale, 0).await, 0);
    assert_eq!(reservations(app, sale).await.len(), units);
    eventually("every reservation is an order", || async {
        app.app().mongo().orders.count_of_event(event_id(sale)).await.unwrap() == units as u64
    })
    .await;
    sale.assert_sound(app.app()).await;
}
