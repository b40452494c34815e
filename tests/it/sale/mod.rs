//! The live sale.

mod cancellation;
mod check;
mod counters;
mod crashes;
mod durability;
mod durable_orders;
mod faults;
mod first;
mod hang_ups;
mod holds;
mod large;
mod lifecycle;
mod load;
mod opening;
mod outages;
mod races;
mod recovery;
mod restocking;
mod schedule;
mod scripts;
mod settlement;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use orbit::app::App;
use orbit::config::{Config, ExposeSecret};
use orbit::domain::event::{Event, SalePhase};
use orbit::domain::ids::{EventId, ProductId, UserId};
use orbit::domain::money::{self, Money};
use orbit::domain::product::Product;
use orbit::domain::reservation::{ReserveOutcome, ReserveRequest};
use orbit::store::mongo::events::{EventChange, PlanChange};
use orbit::store::mongo::new_id;

use crate::harness::{self, Actor, LiveSale, Reply, TestApp};

/// Deadlines that a busy machine does not use up, for tests of decisions rather than of time.
pub fn without_hurry(mut config: Config) -> Config {
    config.server.header_timeout_ms = 30_000;
    config.live.purchase_deadline_ms = 10_000;
    config.live.deadline_ms = 10_000;
    config.mongo.deadline_ms = 30_000;
    config.sale.end_answer_ms = 120_000;
    config.sale.opening_ttl_ms = 20_000;
    config
}

/// An application that is not in a hurry.
async fn calm_app() -> TestApp {
    TestApp::with(without_hurry(harness::config().await)).await
}

/// An application in which nothing but the request itself finishes an opening or an ending.
async fn app_without_recovery() -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.sale.recovery_interval_ms = 600_000;
    TestApp::with(config).await
}

/// An application that reads no journal before its sale ends.
async fn app_without_drains() -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.sale.drain_interval_ms = 600_000;
    TestApp::with(config).await
}

/// A sale that is ready to be opened.
async fn prepared(app: &TestApp, products: usize, units: u32) -> LiveSale {
    prepared_by(app.approved_seller().await, products, units).await
}

/// As [`prepared`], by a seller who exists.
async fn prepared_by(seller: Actor, products: usize, units: u32) -> LiveSale {
    let event = seller.create_event("Spring drop").await;
    let mut ids = Vec::new();
    for number in 0..products {
        ids.push(seller.add_product(&event, &format!("Product {number}"), "199.99", units).await);
    }
    LiveSale { seller, event, products: ids }
}

/// A sale of many products that were written straight into the catalogue.
pub async fn prepared_large(app: &TestApp, products: usize, units: u32) -> LiveSale {
    let mut sale = prepared(app, 0, 0).await;
    sale.products = stock_up(app, &sale, products, units).await;
    sale
}

/// Writes products straight into the catalogue, and returns their ids.
async fn stock_up(app: &TestApp, sale: &LiveSale, count: usize, units: u32) -> Vec<String> {
    let (event, seller) = (sale.event.parse().unwrap(), sale.seller.id.parse().unwrap());
    let now = app.app().clock().now();
    let products: Vec<Product> = (0..count)
        .map(|number| Product {
            voucher: None,
            id: ProductId::from_bytes(new_id()),
            seller,
            event,
            title: format!("Product {number}"),
            description: "A product of a large catalogue. ".repeat(10),
            price: Money { minor: 19_999, currency: money::currency("INR").unwrap() },
            units,
            per_buyer_limit: 1,
            image_url: "https://images.example/p.jpg".to_owned(),
            image_key: "p.jpg".to_owned(),
            created_at: now,
            updated_at: now,
        })
        .collect();
    let ids = products.iter().map(|product| product.id.to_string()).collect();
    let catalogue = &app.app().mongo().products;
    futures::stream::iter(&products)
        .map(|product| async move { catalogue.insert(product).await.unwrap() })
        .buffer_unordered(16)
        .collect::<Vec<()>>()
        .await;
    ids
}

/// Lets the event's sale open on these terms.
async fn agree(app: &App, sale: &LiveSale, plan: PlanChange) {
    let change = EventChange { plan, ..EventChange::default() };
    app.mongo().events.update(event_id(sale), &change).await.unwrap().unwrap();
}

/// A live sale whose reservations are to be paid within so many seconds.
async fn unpaid_sale(app: &TestApp, products: usize, units: u32, window_s: u32) -> LiveSale {
    let sale = prepared_large(app, products, units).await;
    agree(app.app(), &sale, PlanChange { payment_window_s: Some(window_s), ..PlanChange::default() }).await;
    sale.control("Live").await.expect(200);
    sale
}

/// The same sale, its seller speaking to another process.
fn seen_from(sale: &LiveSale, app: &TestApp) -> LiveSale {
    LiveSale { seller: app.here(&sale.seller), event: sale.event.clone(), products: sale.products.clone() }
}

/// Reservations of the first product by buyers of their own, made without HTTP. Returns their ids.
async fn reserve_directly(app: &TestApp, sale: &LiveSale, count: usize) -> Vec<String> {
    let (event, product) = (event_id(sale), product_id(sale, 0));
    futures::stream::iter(0..count)
        .map(|_| {
            let request = ReserveRequest {
                user: UserId::from_bytes(new_id()),
                product,
                event,
                quantity: 1,
                reservation_id: uuid::Uuid::now_v7().to_string(),
                idempotency_key: String::new(),
            };
            async move {
                match app.app().sale().reserve(&request).await.unwrap() {
                    ReserveOutcome::Reserved(reservation) => reservation.id,
                    other => panic!("{other:?}"),
                }
            }
        })
        .buffer_unordered(32)
        .collect()
        .await
}

fn event_id(sale: &LiveSale) -> EventId {
    sale.event.parse().unwrap()
}

fn product_id(sale: &LiveSale, product: usize) -> ProductId {
    sale.products[product].parse().unwrap()
}

/// The event as the database has it.
async fn event(app: &App, sale: &LiveSale) -> Event {
    app.mongo().events.by_id(event_id(sale)).await.unwrap().unwrap()
}

async fn phase(app: &App, sale: &LiveSale) -> SalePhase {
    event(app, sale).await.phase
}

/// A connection of the test's own to the live store.
async fn live_store(config: &Config) -> redis::aio::MultiplexedConnection {
    let settings = redis::AsyncConnectionConfig::new()
        .set_response_timeout(Some(Duration::from_secs(20)))
        .set_connection_timeout(Some(Duration::from_secs(20)));
    let client = redis::Client::open(config.live.url.expose_secret()).unwrap();
    client.get_multiplexed_async_connection_with_config(&settings).await.unwrap()
}

/// One command to the live store.
pub async fn command<T: redis::FromRedisValue>(config: &Config, words: &[&str]) -> T {
    let mut connection = live_store(config).await;
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(&mut connection).await.unwrap()
}

/// Units of a product that the live store holds.
async fn stock(app: &TestApp, sale: &LiveSale, product: usize) -> i64 {
    let key = app.app().live().keys().product(product_id(sale, product), event_id(sale));
    command(app.config(), &["HGET", &key, "stock"]).await
}

/// The test's database, without the repositories.
async fn database(app: &TestApp) -> mongodb::Database {
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    client.database(&app.config().mongo.database)
}

/// How often each status of success and each code of refusal was answered.
fn tally<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for reply in replies {
        let word = reply.body["code"].as_str().map_or_else(|| reply.status.to_string(), ToOwned::to_owned);
        *tally.entry(word).or_default() += 1;
    }
    tally
}

fn counts(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    pairs.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
}

/// The ids of the reservations that these replies acknowledge, sorted.
fn acknowledged<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> Vec<String> {
    let created = replies.into_iter().filter(|reply| reply.status == 201);
    sorted(created.map(|reply| reply.body["reservationId"].as_str().unwrap().to_owned()))
}

/// The reservation that this answer tells of, whether it made it or found it.
fn reservation_of(reply: &Reply) -> Option<String> {
    let found = match reply.status {
        201 => &reply.body["reservationId"],
        _ => &reply.body["reservation"]["reservationId"],
    };
    found.as_str().map(ToOwned::to_owned)
}

/// The reservations that the sale's orders settle, sorted.
async fn ordered(app: &App, sale: &LiveSale) -> Vec<String> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = orbit::domain::page::Page { limit: 1000, after };
        let listed = app.mongo().orders.of_event(event_id(sale), page).await.unwrap();
        ids.extend(listed.items.into_iter().map(|order| order.reservation_id));
        after = listed.next;
        if after.is_none() {
            return sorted(ids);
        }
    }
}

fn sorted(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut ids: Vec<String> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}

/// Asserts that nothing of a settled sale is left in the live store but its status.
async fn assert_only_the_status_is_left(app: &App, sale: &LiveSale) {
    let left = app.live().scan_event_keys(event_id(sale)).await.unwrap();
    assert_eq!(left, [app.live().keys().status(event_id(sale))]);
}

/// Everything that the live store holds of a sale: each key with its value, sets and hashes in order.
async fn contents(app: &TestApp, sale: &LiveSale) -> BTreeMap<String, String> {
    let mut connection = live_store(app.config()).await;
    let mut contents = BTreeMap::new();
    for key in app.app().live().scan_event_keys(event_id(sale)).await.unwrap() {
        let kind: String = redis::cmd("TYPE").arg(&key).query_async(&mut connection).await.unwrap();
        let words: &[&str] = match kind.as_str() {
            "string" => &["GET", &key],
            "hash" => &["HGETALL", &key],
            "set" => &["SMEMBERS", &key],
            "zset" => &["ZRANGE", &key, "0", "-1"],
            "list" => &["LRANGE", &key, "0", "-1"],
            "stream" => &["XRANGE", &key, "-", "+"],
            other => panic!("{key} is a {other}"),
        };
        let mut read = redis::cmd(words[0]);
        read.arg(&words[1..]);
        let value = match kind.as_str() {
            "hash" => format!("{:?}", read.query_async::<BTreeMap<String, String>>(&mut connection).await.unwrap()),
            "set" => {
                let members: std::collections::BTreeSet<String> = read.query_async(&mut connection).await.unwrap();
                format!("{members:?}")
            }
            _ => format!("{:?}", read.query_async::<redis::Value>(&mut connection).await.unwrap()),
        };
        contents.insert(key, value);
    }
    contents
}
