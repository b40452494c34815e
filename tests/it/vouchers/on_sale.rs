//! Products of a sale whose units are codes: as many codes are kept as there are units, each confirmed reservation has its
//! own, and what is not sold goes back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use orbit::domain::voucher::Pool;
use orbit::sale::{CancelledBy, Codes, ReservationRef};
use orbit::store::mongo::events::{EventChange, PlanChange};
use orbit::vouchers::IncomingUnit;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Shop, without_reconciler};
use crate::harness::process::OrbitProcess;
use crate::harness::{self, Actor, LiveSale, Reply, TestApp, TestClock, eventually, pictures};
use crate::sale::command;

/// A shop whose client's vouchers are sold by a seller.
struct Counter {
    shop: Shop,
    seller: Actor,
}

impl Counter {
    async fn open() -> Self {
        Self::with(harness::config().await).await
    }

    async fn with(config: orbit::config::Config) -> Self {
        Self::of(Shop::with(config).await).await
    }

    async fn of(shop: Shop) -> Self {
        let seller = shop.app.approved_seller().await;
        let path = format!("/api/admin/vouchers/clients/{}", shop.client.id);
        shop.app.admin().await.put_json(&path, json!({ "members": [seller.id] })).await.expect(200);
        Self { shop, seller }
    }

    /// So many codes, kept for the seller's client.
    async fn stock(&self, count: usize, name: &str) {
        let unit = |number: usize| IncomingUnit {
            client: Some(self.shop.client.id),
            ..self.shop.unit(number % 2, 100 + i64::try_from(number).unwrap(), &format!("{name}-{number:03}"))
        };
        let units: Vec<_> = (0..count).map(unit).collect();
        assert_eq!(self.shop.app().vouchers().add(&units).await.unwrap().added, count);
    }

    async fn register(&self, event: &str, units: u32, more: &[(&str, &str)]) -> Reply {
        let (units, product) = (units.to_string(), self.shop.product.id.to_string());
        let mut text = vec![
            ("title", "Coffee card"),
            ("description", "A voucher of a test"),
            ("price", "20.00"),
            ("frequency", units.as_str()),
            ("perBuyerLimit", "3"),
            ("voucherProductId", product.as_str()),
            ("voucherDenomination", "25.00"),
        ];
        text.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        text.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        let file = Some(("image", pictures::jpeg(64, 64)));
        self.seller.form(Method::POST, &format!("/api/seller/events/{event}/registerProducts"), &text, file).await
    }

    /// An event with one product of so many codes, not opened.
    async fn prepared(&self, units: u32) -> LiveSale {
        let event = self.seller.create_event("Coffee drop").await;
        let product = self.register(&event, units, &[]).await.expect(201)["productId"].as_str().unwrap().to_owned();
        LiveSale { seller: self.seller.clone(), event, products: vec![product] }
    }

    async fn live(&self, units: u32) -> LiveSale {
        let sale = self.prepared(units).await;
        sale.control("Live").await.expect(200);
        sale
    }

    /// Available codes: those that are kept for the client, and those that are kept for a product on sale.
    async fn kept(&self, sale: &LiveSale) -> (u64, u64) {
        let availability = self.shop.app().vouchers().availability(self.shop.product.id).await.unwrap();
        let of = |client: &str| {
            let is_kept = |pool: &Pool| pool.client.is_some_and(|id| id.to_string() == client);
            availability.pools.iter().filter(|row| is_kept(&row.pool)).map(|row| row.database).sum()
        };
        (of(&self.shop.client.id.to_string()), of(&sale.products[0]))
    }

    async fn finish(self, sale: &LiveSale) {
        sale.assert_sound(self.shop.app()).await;
        self.shop.assert_sound().await;
        self.shop.finish().await;
    }
}

fn reservation(sale: &LiveSale) -> String {
    format!("/api/buyer/event/{}/reservation/{}", sale.event, sale.products[0])
}

async fn codes(buyer: &Actor, sale: &LiveSale) -> Reply {
    buyer.get(&format!("{}/codes", reservation(sale))).await
}

async fn cancel(buyer: &Actor, sale: &LiveSale) -> Reply {
    buyer.post(&format!("{}/cancel", reservation(sale))).await
}

fn texts(body: &Value) -> Vec<String> {
    body["codes"].as_array().unwrap().iter().map(|code| code["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_buyer_reads_a_code_of_their_own_and_the_rest_goes_back() {
    let counter = Counter::open().await;
    counter.stock(8, "A").await;
    let sale = counter.live(6).await;
    assert_eq!(counter.kept(&sale).await, (2, 6));
    let buyers = counter.shop.app.buyers(4).await;
    for buyer in &buyers {
        codes(buyer, &sale).await.refused(404, "not_found");
        buyer.post(&sale.purchase(0)).await.expect(201);
    }
    let shown = codes(&buyers[0], &sale).await;
    assert_eq!(shown.headers["cache-control"], "no-store");
    let first = shown.expect(200);
    // Those that expire first are sold first.
    assert_eq!(texts(&first), ["A-000"]);
    assert_eq!(codes(&buyers[0], &sale).await.expect(200), first);
    let mut all = BTreeSet::new();
    for buyer in &buyers {
        all.extend(texts(&codes(buyer, &sale).await.expect(200)));
    }
    assert_eq!(all.len(), 4, "{all:?}");
    // Whoever has bought nothing sees nothing.
    codes(&counter.shop.app.buyer().await, &sale).await.refused(404, "not_found");
    codes(&sale.seller, &sale).await.refused(403, "role_required");
    assert_eq!(sale.control("End").await.expect(200)["orders"], 4);
    eventually("what was not sold goes back", || async { counter.kept(&sale).await == (4, 0) }).await;
    assert_eq!(codes(&buyers[0], &sale).await.expect(200), first);
    counter.finish(&sale).await;
}

#[tokio::test]
async fn a_sale_opens_only_with_a_code_for_each_unit() {
    let counter = Counter::open().await;
    counter.stock(2, "A").await;
    let sale = counter.prepared(3).await;
    sale.control("Live").await.refused(409, "vouchers_short");
    eventually("they go back", || async { counter.kept(&sale).await == (2, 0) }).await;
    counter.stock(1, "B").await;
    eventually("the sale opens", || async { sale.control("Live").await.status == 200 }).await;
    assert_eq!(counter.kept(&sale).await, (0, 3));
    assert_eq!(sale.available(&counter.shop.app.buyer().await, 0).await, 3);
    sale.control("End").await.expect(200);
    eventually("they go back", || async { counter.kept(&sale).await == (3, 0) }).await;
    counter.finish(&sale).await;
}

#[tokio::test]
async fn only_what_is_kept_for_the_sellers_own_client_is_sold() {
    let counter = Counter::open().await;
    // Nobody's, and another vendor's.
    counter.shop.stock(5).await;
    let sale = counter.prepared(1).await;
    sale.control("Live").await.refused(409, "vouchers_short");
    let event = counter.seller.create_event("Other").await;
    let vendor = counter.shop.product.vendors[1].to_string();
    for (field, value, complaint) in [
        ("voucherProductId", "0123456789abcdef01234567", "voucherProductId"),
        ("voucherProductId", "rubbish", "voucherProductId"),
        ("voucherProductId", "", "voucherProductId"),
        ("voucherDenomination", "", "voucherDenomination"),
        ("voucherDenomination", "7.00", "voucherDenomination"),
        ("voucherDenomination", "ten", "voucherDenomination"),
        ("voucherVendorIds", "0123456789abcdef01234567", "voucherVendorIds"),
        ("perBuyerLimit", "501", "perBuyerLimit"),
    ] {
        let refused = counter.register(&event, 1, &[(field, value)]).await;
        refused.refused(400, "validation_failed");
        assert_eq!(refused.body["fields"][0]["field"], complaint, "{value}: {:?}", refused.body);
    }
    counter.stock(1, "A").await;
    let made = counter.register(&event, 1, &[("voucherVendorIds", &vendor)]).await.expect(201);
    let path = format!("/api/seller/events/{event}/getProduct/{}", made["productId"].as_str().unwrap());
    let shown = counter.seller.get(&path).await.expect(200);
    assert_eq!(shown["product"]["voucher"]["vendorIds"], json!([vendor]));
    // The only one of the client's is of the other vendor.
    counter.seller.post(&format!("/api/seller/events/{event}/Live")).await.refused(409, "vouchers_short");
    let update = path.replace("getProduct", "updateProduct");
    counter
        .seller
        .form(Method::PUT, &update, &[("voucherDenomination", "50.00")], None)
        .await
        .refused(400, "validation_failed");
    counter
        .seller
        .form(Method::PUT, &update, &[("perBuyerLimit", "501")], None)
        .await
        .refused(400, "validation_failed");
    // A seller who orders for nobody sells no vouchers.
    let stranger = Counter { seller: counter.shop.app.approved_seller().await, ..counter };
    let event = stranger.seller.create_event("Mine").await;
    stranger.register(&event, 1, &[]).await.refused(403, "role_required");
    stranger.shop.finish().await;
}

#[tokio::test]
async fn an_unseen_code_comes_back_and_a_code_that_was_seen_does_not() {
    let counter = Counter::open().await;
    counter.stock(2, "A").await;
    let sale = counter.live(2).await;
    let buyers = counter.shop.app.buyers(4).await;
    buyers[0].post(&sale.purchase(0)).await.expect(201);
    buyers[1].post(&sale.purchase(0)).await.expect(201);
    let seen = texts(&codes(&buyers[1], &sale).await.expect(200));
    cancel(&buyers[1], &sale).await.refused(409, "code_shown");
    assert_eq!(texts(&codes(&buyers[1], &sale).await.expect(200)), seen);
    let part = buyers[0].request(Method::POST, &format!("{}/cancel", reservation(&sale)));
    let part = part.header("idempotency-key", "a").json(&json!({ "quantity": 1 }));
    Actor::send(part).await.refused(400, "validation_failed");
    cancel(&buyers[0], &sale).await.expect(200);
    cancel(&buyers[0], &sale).await.expect(200);
    codes(&buyers[0], &sale).await.refused(409, "voucher_state");
    buyers[2].post(&sale.purchase(0)).await.expect(201);
    let sold = texts(&codes(&buyers[2], &sale).await.expect(200));
    assert_ne!(sold, seen);
    // The seller takes back a code that was seen. There is none in its place: its unit is not sold again.
    let orders = || async { sale.orders().await };
    eventually("it is durable", || async { orders().await.len() == 3 }).await;
    let of_buyer = |orders: Vec<Value>, id: &str| {
        let order = orders.into_iter().find(|order| order["userId"] == id).unwrap();
        order["reservationId"].as_str().unwrap().to_owned()
    };
    let cancelled = of_buyer(orders().await, &buyers[1].id);
    let path = format!("/api/seller/events/{}/orders/{cancelled}/cancel", sale.event);
    counter.seller.post(&path).await.expect(200);
    codes(&buyers[1], &sale).await.refused(409, "voucher_state");
    assert_eq!(sale.available(&buyers[3], 0).await, 0);
    buyers[3].post(&sale.purchase(0)).await.refused(409, "sold_out");
    // With another code in the client's stock, it is.
    counter.stock(1, "B").await;
    let cancelled = of_buyer(orders().await, &buyers[2].id);
    counter.seller.post(&format!("/api/seller/events/{}/orders/{cancelled}/cancel", sale.event)).await.expect(200);
    buyers[3].post(&sale.purchase(0)).await.expect(201);
    assert_eq!(texts(&codes(&buyers[3], &sale).await.expect(200)), ["B-000"]);
    sale.control("End").await.expect(200);
    cancel(&buyers[3], &sale).await.refused(409, "code_shown");
    counter.finish(&sale).await;
}

#[tokio::test]
async fn what_is_not_paid_has_no_code() {
    let counter = Counter::open().await;
    counter.stock(3, "A").await;
    let sale = counter.prepared(3).await;
    let plan = PlanChange { payment_window_s: Some(600), ..PlanChange::default() };
    let change = EventChange { plan, ..EventChange::default() };
    let events = &counter.shop.app.app().mongo().events;
    events.update(sale.event.parse().unwrap(), &change).await.unwrap().unwrap();
    sale.control("Live").await.expect(200);
    let (payer, quitter, late) =
        (counter.shop.app.buyer().await, counter.shop.app.buyer().await, counter.shop.app.buyer().await);
    for buyer in [&payer, &quitter, &late] {
        buyer.post(&sale.purchase(0)).await.expect(201);
        codes(buyer, &sale).await.refused(409, "voucher_state");
    }
    cancel(&quitter, &sale).await.expect(200);
    pay(&payer, &sale).await;
    eventually("it is confirmed", || async { codes(&payer, &sale).await.status == 200 }).await;
    sale.control("End").await.expect(200);
    // One waits for its payment still: its code is not given away.
    eventually("the rest goes back", || async { counter.kept(&sale).await == (1, 1) }).await;
    codes(&late, &sale).await.refused(409, "voucher_state");
    pay(&late, &sale).await;
    eventually("it is confirmed", || async { codes(&late, &sale).await.status == 200 }).await;
    eventually("nothing is kept any more", || async { counter.kept(&sale).await == (1, 0) }).await;
    counter.finish(&sale).await;
}

/// Pays at the sandbox.
async fn pay(buyer: &Actor, sale: &LiveSale) {
    let asked = buyer.post(&format!("{}/pay", reservation(sale))).await;
    assert!(asked.status < 300, "{:?}", asked.body);
    let paid = buyer.post(asked.body["payUrl"].as_str().unwrap()).await;
    assert!(paid.status < 400, "{} {:?}", paid.status, paid.body);
}

#[tokio::test]
async fn a_restock_needs_codes() {
    let counter = Counter::open().await;
    counter.stock(2, "A").await;
    let sale = counter.live(1).await;
    let path = format!("/api/seller/events/{}/products/{}/restock", sale.event, sale.products[0]);
    let restock = |units: i64, operation: &'static str| {
        let body = json!({ "units": units, "operationId": operation });
        counter.seller.post_json(&path, body)
    };
    restock(2, "too-many").await.refused(409, "vouchers_short");
    assert_eq!(sale.available(&counter.shop.app.buyer().await, 0).await, 1);
    restock(1, "one").await.expect(200);
    restock(1, "one").await.expect(200);
    for buyer in counter.shop.app.buyers(2).await {
        buyer.post(&sale.purchase(0)).await.expect(201);
        codes(&buyer, &sale).await.expect(200);
    }
    counter.shop.app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sold_out");
    sale.control("End").await.expect(200);
    counter.finish(&sale).await;
}

#[tokio::test]
async fn buyers_who_take_look_and_give_back_all_at_once_never_share_a_code() {
    let counter = Counter::open().await;
    counter.stock(30, "A").await;
    let sale = Arc::new(counter.live(30).await);
    let buyers = counter.shop.app.buyers(60).await;
    let play = |(number, buyer): (usize, Actor)| {
        let sale = Arc::clone(&sale);
        async move {
            let mut seen = Vec::new();
            for _ in 0..4 {
                if buyer.post(&sale.purchase(0)).await.status != 201 {
                    continue;
                }
                if number % 3 == 0 {
                    // Both at once: whoever is second is told so.
                    let (looked, gave) = tokio::join!(codes(&buyer, &sale), cancel(&buyer, &sale));
                    assert!(!(looked.status == 200 && gave.status == 200), "{:?} {:?}", looked.body, gave.body);
                    if looked.status == 200 {
                        seen.extend(texts(&looked.body));
                    }
                } else if number % 3 == 1 {
                    cancel(&buyer, &sale).await.expect(200);
                } else {
                    seen.extend(texts(&codes(&buyer, &sale).await.expect(200)));
                }
            }
            seen
        }
    };
    let seen: Vec<String> = join_all(buyers.into_iter().enumerate().map(play)).await.into_iter().flatten().collect();
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "somebody's code was shown to another buyer");
    sale.control("End").await.expect(200);
    let confirmed = sale.orders().await.iter().filter(|order| order["status"] == "CONFIRMED").count() as u64;
    // Whoever has seen a code has kept it.
    assert!(!seen.is_empty() && seen.len() as u64 <= confirmed, "{} of {confirmed}", seen.len());
    eventually("what was not sold goes back", || async { counter.kept(&sale).await == (30 - confirmed, 0) }).await;
    counter.finish(&sale).await;
}

#[tokio::test]
async fn a_cancellation_that_stops_half_way_gives_the_codes_again() {
    let clock = Arc::new(TestClock::default());
    let mut config = without_reconciler(harness::config().await);
    config.sale.recovery_interval_ms = 3_600_000;
    let counter = Counter::of(Shop::of(TestApp::with_clock(config, Arc::<TestClock>::clone(&clock)).await).await).await;
    counter.stock(1, "A").await;
    let sale = counter.live(1).await;
    let buyer = counter.shop.app.buyer().await;
    let reserved = buyer.post(&sale.purchase(0)).await.expect(201);
    let of = ReservationRef {
        id: reserved["reservationId"].as_str().unwrap().to_owned(),
        user: buyer.id.parse().unwrap(),
        product: sale.products[0].parse().unwrap(),
        event: sale.event.parse().unwrap(),
    };
    let vouchers = counter.shop.app().vouchers();
    assert_eq!(Codes::take_back(&**vouchers, &of, None, CancelledBy::Buyer).await.unwrap(), 0);
    codes(&buyer, &sale).await.refused(409, "voucher_state");
    vouchers.reconcile().await.unwrap();
    codes(&buyer, &sale).await.refused(409, "voucher_state");
    clock.advance(31);
    vouchers.reconcile().await.unwrap();
    assert_eq!(texts(&codes(&buyer, &sale).await.expect(200)), ["A-000"]);
    sale.control("End").await.expect(200);
    vouchers.reconcile().await.unwrap();
    counter.finish(&sale).await;
}

#[tokio::test]
async fn no_code_is_shown_for_a_reservation_that_could_still_be_lost() {
    let mut config = harness::config().await;
    config.sale.drain_interval_ms = 3_600_000;
    config.sale.recovery_interval_ms = 3_600_000;
    let counter = Counter::with(config).await;
    counter.stock(1, "A").await;
    let sale = counter.live(1).await;
    let buyer = counter.shop.app.buyer().await;
    buyer.post(&sale.purchase(0)).await.expect(201);
    codes(&buyer, &sale).await.refused(503, "database_unavailable");
    counter.shop.app.app().sale().drain(sale.event.parse().unwrap(), 0).await.unwrap();
    assert_eq!(texts(&codes(&buyer, &sale).await.expect(200)), ["A-000"]);
    sale.control("End").await.expect(200);
    counter.finish(&sale).await;
}

#[tokio::test]
async fn a_live_store_that_has_lost_everything_in_the_middle_of_the_sale_costs_nobody_a_code() {
    let (redis, mut config) = (harness::own_redis().await, harness::config().await);
    config.live.url = redis.url().into();
    let counter = Counter::with(config).await;
    counter.stock(6, "A").await;
    let sale = counter.live(6).await;
    let buyers = counter.shop.app.buyers(6).await;
    let mut seen = Vec::new();
    for buyer in &buyers[..3] {
        buyer.post(&sale.purchase(0)).await.expect(201);
        seen.extend(texts(&codes(buyer, &sale).await.expect(200)));
    }
    let () = command(counter.shop.app.config(), &["FLUSHALL"]).await;
    eventually("the sale is rebuilt and can be resumed", || async { sale.control("Resume").await.status == 200 }).await;
    for (number, buyer) in buyers.iter().enumerate() {
        if number >= 3 {
            buyer.post(&sale.purchase(0)).await.expect(201);
        }
        let shown = texts(&codes(buyer, &sale).await.expect(200));
        if number < 3 {
            assert_eq!(shown, [seen[number].clone()]);
        } else {
            seen.extend(shown);
        }
    }
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 6);
    sale.control("End").await.expect(200);
    eventually("nothing is kept any more", || async { counter.kept(&sale).await == (0, 0) }).await;
    counter.finish(&sale).await;
}

#[tokio::test]
async fn processes_killed_while_codes_are_sold_lose_no_code_and_sell_none_twice() {
    let mut config = harness::config().await;
    config.vouchers.claim_ttl_ms = config.mongo.deadline_ms;
    let counter = Counter::with(config).await;
    counter.stock(60, "A").await;
    let sale = counter.live(60).await;
    let buyers = counter.shop.app.buyers(60).await;
    let mut seen: Vec<(usize, String)> = Vec::new();
    for round in 0..3 {
        let process = OrbitProcess::start(counter.shop.app.config()).await;
        let (done, sale, url) = (&AtomicUsize::new(0), &sale, process.url.clone());
        let selling = async {
            let buy = |number: usize| {
                let there = buyers[number].at(url.clone());
                async move {
                    let post =
                        there.request(Method::POST, &sale.purchase(0)).header("content-type", "application/json");
                    if Actor::try_send(post).await.ok()?.status != 201 {
                        return None;
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                    let look = there.request(Method::GET, &format!("{}/codes", reservation(sale)));
                    let shown = Actor::try_send(look).await.ok().filter(|shown| shown.status == 200)?;
                    if number.is_multiple_of(4) {
                        Actor::try_send(there.request(Method::POST, &format!("{}/cancel", reservation(sale))))
                            .await
                            .ok();
                    }
                    Some((number, texts(&shown.body).remove(0)))
                }
            };
            join_all((round * 20..round * 20 + 20).map(buy)).await.into_iter().flatten().collect::<Vec<_>>()
        };
        let killing = async {
            eventually("some have bought", || async { done.load(Ordering::SeqCst) >= 8 }).await;
            process.kill().await;
        };
        let (shown, ()) = tokio::join!(selling, killing);
        seen.extend(shown);
    }
    for (number, code) in &seen {
        assert_eq!(&texts(&codes(&buyers[*number], &sale).await.expect(200))[0], code);
    }
    sale.control("End").await.expect(200);
    let orders = sale.orders().await;
    let confirmed = orders.iter().filter(|order| order["status"] == "CONFIRMED").count() as u64;
    eventually("everything is settled, and the rest goes back", || async {
        let check = counter.shop.app().vouchers().check().await.unwrap();
        check.holds() && check.allocated == confirmed && counter.kept(&sale).await == (60 - confirmed, 0)
    })
    .await;
    counter.finish(&sale).await;
}
