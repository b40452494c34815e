//! Live stock by server-sent events.
//!
//! The suite opens a few streams. `ORBIT_TEST_STREAMS=5000 cargo test --test it many_streams` opens as many as that on one
//! process, and then also holds it to its memory.

use std::time::{Duration, Instant};

use futures::StreamExt;
use orbit::config::Config;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::read_until;
use crate::harness::process::OrbitProcess;
use crate::harness::{self, Actor, LiveSale, TestApp, eventually};
use crate::sale::{command, prepared_large, without_hurry};

const MEMORY_MIB_MAX: u64 = 256;

/// An event of a stream.
#[derive(Debug)]
struct Heard {
    name: String,
    id: Option<String>,
    data: Value,
}

/// An open stream.
struct Stream {
    response: reqwest::Response,
    text: String,
    signs_of_life: usize,
}

impl Stream {
    async fn open(buyer: &Actor, path: &str, last: Option<&str>) -> Self {
        let mut request = buyer.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self { response, text: String::new(), signs_of_life: 0 }
    }

    /// The next block: an event, or `None` for a comment.
    async fn block(&mut self) -> Option<Option<Heard>> {
        while !self.text.contains("\n\n") {
            let piece = tokio::time::timeout(Duration::from_secs(30), self.response.chunk());
            let piece = piece.await.expect("nothing is heard for thirty seconds").unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").unwrap();
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(ToOwned::to_owned);
        let heard = field("event: ").map(|name| Heard {
            name,
            id: field("id: "),
            data: serde_json::from_str(&field("data: ").unwrap()).unwrap(),
        });
        self.text = rest.to_owned();
        Some(heard)
    }

    /// The next event, or the end.
    async fn next(&mut self) -> Option<Heard> {
        loop {
            match self.block().await? {
                Some(heard) => return Some(heard),
                None => self.signs_of_life += 1,
            }
        }
    }

    async fn expect(&mut self, name: &str) -> Heard {
        let heard = self.next().await.unwrap_or_else(|| panic!("the stream ended before a {name}"));
        assert_eq!(heard.name, name, "{heard:?}");
        heard
    }
}

fn stream(sale: &LiveSale) -> String {
    format!("/api/buyer/event/{}/stream", sale.event)
}

/// What an event says of each product: its id, what is available, what is held.
fn levels(heard: &Heard) -> Vec<(&str, u64, u64)> {
    let number = |product: &Value, name: &str| product[name].as_u64().unwrap();
    let products = heard.data["products"].as_array().unwrap().iter();
    products
        .map(|one| (one["productId"].as_str().unwrap(), number(one, "availableStock"), number(one, "heldUnits")))
        .collect()
}

async fn planned_sale(app: &TestApp, plan: Value, products: usize) -> LiveSale {
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    seller.put_json(&format!("/api/seller/events/update/{event}"), plan).await.expect(200);
    let mut ids = Vec::new();
    for number in 0..products {
        ids.push(seller.add_product(&event, &format!("Product {number}"), "199.99", 5).await);
    }
    LiveSale { seller, event, products: ids }
}

#[tokio::test]
async fn a_listener_is_told_everything_first_and_then_only_what_changes() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let sale = planned_sale(&app, json!({ "paymentWindow": 600 }), 3).await;
    sale.control("Live").await.expect(200);
    let mut listener = Stream::open(&buyer, &stream(&sale), None).await;
    let first = listener.expect("snapshot").await;
    assert_eq!(first.data["status"], "LIVE");
    assert_eq!(levels(&first), sale.products.iter().map(|id| (id.as_str(), 5, 0)).collect::<Vec<_>>());

    buyer.post(&sale.purchase(1)).await.expect(201);
    let change = listener.expect("stock").await;
    assert_eq!(levels(&change), [(sale.products[1].as_str(), 4, 1)]);
    assert!(change.id.is_some() && change.id != first.id);
    for (action, status) in [("Pause", "PAUSED"), ("Resume", "LIVE"), ("End", "STOPPED")] {
        sale.control(action).await.expect(200);
        assert_eq!(listener.expect("status").await.data["status"], status);
    }
    assert!(listener.next().await.is_none(), "a sale that has stopped has nothing more to say");
    // Who comes afterwards is told, and not kept.
    let mut late = Stream::open(&buyer, &stream(&sale), None).await;
    assert_eq!(late.expect("snapshot").await.data["status"], "STOPPED");
    assert!(late.next().await.is_none());
    app.finish().await;
}

#[tokio::test]
async fn a_listener_who_comes_back_gets_a_snapshot_only_if_it_has_missed_something() {
    let app = TestApp::start().await;
    let second = app.second().await;
    let sale = app.live_sale(2, 5).await;
    let (buyer, there) = (app.buyer().await, app.buyer().await);
    let there = second.here(&there);
    let (all, one) = (stream(&sale), format!("{}?products={}", stream(&sale), sale.products[0]));
    let mut known = Vec::new();
    for path in [&all, &one] {
        known.push(Stream::open(&buyer, path, None).await.expect("snapshot").await.id.unwrap());
    }
    // Nothing has changed: to whichever process it comes, it hears of the next change only.
    let mut back = Stream::open(&there, &all, Some(&known[0])).await;
    let mut back_to_one = Stream::open(&there, &one, Some(&known[1])).await;
    buyer.post(&sale.purchase(0)).await.expect(201);
    for listener in [&mut back, &mut back_to_one] {
        assert_eq!(levels(&listener.expect("stock").await), [(sale.products[0].as_str(), 4, 0)]);
    }
    for (path, known) in [(&all, &known[0]), (&one, &known[1]), (&all, &known[1])] {
        let missed = Stream::open(&there, path, Some(known)).await.expect("snapshot").await;
        assert_eq!(levels(&missed)[0], (sale.products[0].as_str(), 4, 0));
    }
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_listener_may_ask_for_some_products() {
    let app = TestApp::start().await;
    let sale = app.live_sale(3, 5).await;
    let (buyer, path) = (app.buyer().await, stream(&sale));
    let asked = format!("{path}?products={},{},{}", sale.products[2], sale.products[0], sale.products[2]);
    let mut listener = Stream::open(&buyer, &asked, None).await;
    let ids: Vec<_> = levels(&listener.expect("snapshot").await).iter().map(|level| level.0.to_owned()).collect();
    assert_eq!(ids, [sale.products[0].clone(), sale.products[2].clone()]);
    // It hears nothing of the others.
    let mut all = Stream::open(&buyer, &path, None).await;
    all.expect("snapshot").await;
    buyer.post(&sale.purchase(1)).await.expect(201);
    all.expect("stock").await;
    buyer.post(&sale.purchase(2)).await.expect(201);
    assert_eq!(levels(&listener.expect("stock").await), [(sale.products[2].as_str(), 4, 0)]);
    let too_many: Vec<String> = (0..201).map(|number| format!("{number:024x}")).collect();
    let broken = ["x".to_owned(), String::new(), format!("{},", sale.products[0]), too_many.join(",")];
    for products in broken {
        buyer.get(&format!("{path}?products={products}")).await.refused(400, "validation_failed");
    }
    app.finish().await;
}

#[tokio::test]
async fn an_announced_sale_is_followed_from_its_opening_to_its_end() {
    let mut config = harness::config().await;
    config.sale.schedule_interval_ms = 3_600_000;
    let app = TestApp::with(config).await;
    let buyer = app.buyer().await;
    let now = app.app().sale().live_now().await.unwrap();
    let (opens, ends) = (now + chrono::Duration::seconds(60), now + chrono::Duration::seconds(65));
    let plan = json!({ "autoOpen": true, "scheduledAt": opens });
    let sale = planned_sale(&app, plan, 1).await;
    let hidden = planned_sale(&app, json!({ "autoOpen": false }), 1).await;
    buyer.get(&stream(&hidden)).await.refused(404, "not_found");
    buyer.get("/api/buyer/event/nonsense/stream").await.refused(400, "malformed_id");

    let mut listener = Stream::open(&buyer, &stream(&sale), None).await;
    let first = listener.expect("snapshot").await;
    assert_eq!((&first.data["status"], levels(&first).len()), (&json!("NOT_STARTED"), 0));
    // Its end is planned only now, and the listener is told when it has come although no process ends the sale.
    let ends_soon = app.app().sale().live_now().await.unwrap() + chrono::Duration::seconds(4);
    let update = format!("/api/seller/events/update/{}", sale.event);
    let plan = json!({ "autoOpen": false, "scheduledAt": now, "endsAt": ends_soon });
    sale.seller.put_json(&update, plan).await.expect(200);
    sale.control("Live").await.expect(200);
    let opened = listener.expect("stock").await;
    assert_eq!((levels(&opened), &opened.id), (vec![(sale.products[0].as_str(), 5, 0)], &None));
    assert_eq!(listener.expect("status").await.data["status"], "LIVE");
    assert_eq!(listener.expect("status").await.data["status"], "STOPPED");
    assert!(listener.next().await.is_none());
    assert!(app.app().sale().live_now().await.unwrap() >= ends_soon && ends > ends_soon);
    app.finish().await;
}

#[tokio::test]
async fn of_a_sale_of_very_many_products_only_those_are_watched_that_somebody_asks_for() {
    let app = TestApp::with(without_hurry(harness::config().await)).await;
    let buyer = app.buyer().await;
    let sale = prepared_large(&app, 1_001, 3).await;
    sale.control("Live").await.expect(200);
    let mut all = Stream::open(&buyer, &stream(&sale), None).await;
    let first = all.expect("snapshot").await;
    assert_eq!((&first.data["status"], levels(&first).len()), (&json!("LIVE"), 0));
    let mut one = Stream::open(&buyer, &format!("{}?products={}", stream(&sale), sale.products[700]), None).await;
    let first = one.expect("snapshot").await;
    // The watcher may have looked last before somebody asked.
    let told = if levels(&first).is_empty() { one.expect("stock").await } else { first };
    assert_eq!(levels(&told), [(sale.products[700].as_str(), 3, 0)]);
    buyer.post(&sale.purchase(700)).await.expect(201);
    assert_eq!(levels(&one.expect("stock").await), [(sale.products[700].as_str(), 2, 0)]);
    sale.control("Pause").await.expect(200);
    assert_eq!(all.expect("status").await.data["status"], "PAUSED");
    app.finish().await;
}

/// How often the live store was asked for fields of a hash.
async fn looks(config: &Config) -> u64 {
    let stats: String = command(config, &["INFO", "commandstats"]).await;
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_hmget:calls=")).unwrap_or("0,");
    line.split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_live_store_is_asked_once_per_tick_whatever_the_number_of_listeners() {
    let redis = harness::own_redis().await;
    let mut config = without_hurry(harness::config().await);
    config.live.url = redis.url().into();
    // Recovery reads hashes, too.
    config.sale.recovery_interval_ms = 3_600_000;
    let app = TestApp::with(config).await;
    let sale = app.live_sale(3, 5).await;
    let buyer = app.buyer().await;
    let mut listeners = Vec::new();
    for _ in 0..50 {
        let mut listener = Stream::open(&buyer, &stream(&sale), None).await;
        listener.expect("snapshot").await;
        listeners.push(listener);
    }
    let (before, started) = (looks(app.config()).await, Instant::now());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = looks(app.config()).await - before;
    let ticks = started.elapsed().as_millis() as u64 / 250 + 1;
    assert!(asked > 0 && asked <= 3 * ticks, "{asked} products in {ticks} ticks");
    // And not at all when nobody listens.
    drop(listeners);
    eventually("nobody is listening", || async {
        let before = looks(app.config()).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        looks(app.config()).await == before
    })
    .await;
    app.finish().await;
}

#[tokio::test]
async fn beyond_the_cap_a_stream_is_refused_until_another_ends() {
    let mut config = harness::config().await;
    config.server.streams_max = 1;
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, 1).await;
    let buyer = app.buyer().await;
    let mut first = Stream::open(&buyer, &stream(&sale), None).await;
    first.expect("snapshot").await;
    let refused = buyer.get(&stream(&sale)).await;
    refused.refused(503, "overloaded");
    assert!(refused.headers.contains_key("retry-after"));
    drop(first);
    eventually("there is a place", || async {
        buyer.request(Method::GET, &stream(&sale)).send().await.unwrap().status() == 200
    })
    .await;
    app.finish().await;
}

#[tokio::test]
async fn streams_end_when_the_server_stops_and_when_their_session_does() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 1).await;
    let (stays, leaves) = (app.buyer().await, app.buyer().await);
    let mut staying = Stream::open(&stays, &stream(&sale), None).await;
    let mut leaving = Stream::open(&leaves, &stream(&sale), None).await;
    staying.expect("snapshot").await;
    leaving.expect("snapshot").await;
    leaves.post("/api/auth/signout").await.expect(200);
    // The next sign of life is not for whoever has signed out.
    assert!(leaving.next().await.is_none());
    while staying.signs_of_life < 2 {
        assert!(staying.block().await.expect("the stream ended").is_none());
        staying.signs_of_life += 1;
    }
    let started = Instant::now();
    app.finish().await;
    assert!(staying.next().await.is_none());
    assert!(started.elapsed() < Duration::from_secs(5), "the server waited for its listeners");
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answers_is_cut_off() {
    const REQUESTS: usize = 2_000;
    let mut config = harness::config().await;
    config.server.write_timeout_ms = 500;
    let app = TestApp::with(config).await;
    let mut client = TcpStream::connect(app.running.address).await.unwrap();
    let request = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    // More answers than any buffer takes, and nobody reads them.
    client.write_all(request.repeat(REQUESTS).as_bytes()).await.unwrap();
    // Had it not been cut off by now, all answers would come.
    tokio::time::sleep(Duration::from_millis(2_000)).await;
    let mut said = Vec::new();
    drop(client.read_to_end(&mut said).await);
    let answers = said.windows(15).filter(|piece| piece == b"HTTP/1.1 200 OK").count();
    assert!(answers > 0 && answers < REQUESTS, "{answers}");
    app.finish().await;
}

fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_are_served_by_one_process_within_its_memory() {
    let (count, full) = std::env::var("ORBIT_TEST_STREAMS").map_or((40, false), |text| (text.parse().unwrap(), true));
    raise_open_files();
    let app = TestApp::with(without_hurry(harness::config().await)).await;
    let process = OrbitProcess::start(app.config()).await;
    let sale = app.live_sale(20, 5).await;
    let buyer = app.buyer().await;
    let address = process.url.strip_prefix("http://").unwrap();
    let token = buyer.token.clone().unwrap();
    let request = format!("GET {} HTTP/1.1\r\nHost: {address}\r\nCookie: token={token}\r\n\r\n", stream(&sale));
    let started = Instant::now();
    let open = async |_| {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        assert!(read_until(&mut connection, "event: snapshot").await.contains("event: snapshot"));
        connection
    };
    let connections: Vec<TcpStream> = futures::stream::iter(0..count).map(open).buffer_unordered(64).collect().await;
    let opened = started.elapsed();
    let bought = Instant::now();
    buyer.post(&sale.purchase(0)).await.expect(201);
    let heard = connections.into_iter().map(|mut connection| async move {
        let said = read_until(&mut connection, "event: stock").await;
        assert!(said.contains("event: stock"), "{said}");
        connection
    });
    let connections = futures::future::join_all(heard).await;
    let told = bought.elapsed();
    let peak = process.peak_mib();
    eprintln!(
        "{count} streams opened in {opened:?}, all told of a purchase in {told:?}; the service held at most {peak} MiB"
    );
    if full {
        assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    }
    let stopping = Instant::now();
    assert!(process.terminate().await);
    assert!(stopping.elapsed() < Duration::from_secs(10), "the process waited for its listeners");
    drop(connections);
    app.finish().await;
}
