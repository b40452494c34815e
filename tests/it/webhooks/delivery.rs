//! Messages that arrive: each once for each endpoint, whoever dies.

use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use orbit::config::ExposeSecret;
use orbit::domain::ids::EventId;
use orbit::domain::message::Message;
use orbit::domain::webhook::DeliveryState;
use orbit::sale::ReservationRef;
use reqwest::Method;
use serde_json::json;

use super::receiver::{Behave, Receiver};
use super::{app_with_clock, prepared, register, tell_openings};
use crate::harness::process::OrbitProcess;
use crate::harness::{self, Actor, LiveSale, TestApp, eventually};

async fn order_of(app: &TestApp, reservation: &str) -> ReservationRef {
    eventually("the order is there", || async {
        app.app().mongo().orders.by_reservation(reservation).await.unwrap().is_some()
    })
    .await;
    ReservationRef::from(&app.app().mongo().orders.by_reservation(reservation).await.unwrap().unwrap())
}

async fn buy(sale: &LiveSale, buyer: &Actor) -> String {
    let bought = buyer.post(&sale.purchase(0)).await.expect(201);
    bought["reservationId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_seller_is_told_of_a_whole_sale_signed_and_each_thing_once() {
    let app = TestApp::start().await;
    let seller = app.approved_seller().await;
    let (receiver, endings) = (Receiver::start(Behave::Answer(200)).await, Receiver::start(Behave::Answer(204)).await);
    let webhook = register(&seller, &receiver, &[]).await;
    register(&seller, &endings, &["sale.ended"]).await;
    let sale = prepared(&seller, 10).await;
    let (kept, given_back) = (app.buyer().await, app.buyer().await);

    sale.control("Live").await.expect(200);
    let reservation = buy(&sale, &kept).await;
    let cancelled = order_of(&app, &buy(&sale, &given_back).await).await;
    app.app().sale().cancel(&cancelled, None, None).await.unwrap();
    sale.control("End").await.expect(200);

    eventually("the end is told", || async { !receiver.of_kind("sale.ended").is_empty() }).await;
    receiver.until(6).await;
    assert_eq!(receiver.ids().len(), 6);
    for (kind, count) in [
        ("sale.opened", 1),
        ("reservation.confirmed", 2),
        ("reservation.cancelled", 1),
        ("order.settled", 1),
        ("sale.ended", 1),
    ] {
        assert_eq!(receiver.of_kind(kind).len(), count, "{kind}");
    }
    let settled = receiver.of_kind("order.settled").remove(0).json();
    assert_eq!(settled["data"]["reservationId"], reservation.as_str());
    assert_eq!((&settled["data"]["priceMinor"], &settled["data"]["status"]), (&19_999.into(), &"CONFIRMED".into()));
    let ended = receiver.of_kind("sale.ended").remove(0).json();
    assert_eq!((&ended["data"]["eventId"], &ended["data"]["orders"]), (&sale.event.as_str().into(), &2.into()));
    for received in receiver.received() {
        assert!(received.signed_with(&webhook.secret), "{received:?}");
        assert_eq!(received.headers["content-type"], "application/json");
        assert_eq!(received.path, "/hooks?shop=1");
    }
    endings.until(1).await;

    let listed = seller.get(&webhook.path("/deliveries?limit=4")).await.expect(200);
    assert_eq!(listed["deliveries"].as_array().unwrap().len(), 4);
    let rest = format!("/deliveries?limit=4&cursor={}", listed["nextCursor"].as_str().unwrap());
    let rest = seller.get(&webhook.path(&rest)).await.expect(200);
    assert_eq!(rest["deliveries"].as_array().unwrap().len(), 2);
    eventually("every delivery is recorded", || async {
        webhook.deliveries(&app).await.iter().all(|one| one.state == DeliveryState::Delivered)
    })
    .await;
    app.finish().await;
    assert_eq!((receiver.received().len(), endings.received().len()), (6, 1));
}

#[tokio::test]
async fn what_changes_after_the_settlement_is_told_from_the_order() {
    let app = TestApp::start().await;
    let seller = app.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    register(&seller, &receiver, &["reservation.cancelled"]).await;
    let sale = prepared(&seller, 10).await;
    sale.control("Live").await.expect(200);
    let buyer = app.buyer().await;
    let reservation = buy(&sale, &buyer).await;
    sale.control("End").await.expect(200);
    let order = order_of(&app, &reservation).await;

    app.app().sale().cancel(&order, None, None).await.unwrap();

    let told = receiver.until(1).await.remove(0).json();
    assert_eq!(told["data"]["reservationId"], reservation.as_str());
    assert_eq!((&told["data"]["revision"], &told["data"]["status"]), (&2.into(), &"CANCELLED".into()));
    eventually("no mark is left", || async { app.app().mongo().untold_orders.some(10).await.unwrap().is_empty() })
        .await;
    app.finish().await;
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn a_reservation_that_nobody_paid_is_told_when_it_runs_out_and_not_before() {
    let app = TestApp::start().await;
    let seller = app.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    register(&seller, &receiver, &["reservation.confirmed", "reservation.expired"]).await;
    let sale = prepared(&seller, 10).await;
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    let events = client.database(&app.config().mongo.database).collection::<bson::Document>("events");
    events.update_one(bson::doc! {}, bson::doc! { "$set": { "paymentWindowS": 1_i64 } }).await.unwrap();
    sale.control("Live").await.expect(200);

    let reservation = buy(&sale, &app.buyer().await).await;

    let told = receiver.until(1).await.remove(0).json();
    assert_eq!((&told["type"], &told["data"]["status"]), (&"reservation.expired".into(), &"EXPIRED".into()));
    assert_eq!((&told["data"]["reservationId"], &told["data"]["revision"]), (&reservation.as_str().into(), &2.into()));
    app.finish().await;
}

#[tokio::test]
async fn two_endpoints_get_every_message_and_two_processes_send_each_once() {
    let app = TestApp::start().await;
    let other = app.second().await;
    let seller = app.approved_seller().await;
    let (one, two) = (Receiver::start(Behave::Answer(200)).await, Receiver::start(Behave::Answer(200)).await);
    register(&seller, &one, &["reservation.confirmed"]).await;
    register(&seller, &two, &["reservation.confirmed"]).await;
    let sale = prepared(&seller, 100).await;
    sale.control("Live").await.expect(200);

    for buyer in app.buyers(40).await {
        buy(&sale, &buyer).await;
    }

    one.until(40).await;
    two.until(40).await;
    assert_eq!((one.ids().len(), two.ids().len()), (40, 40));
    assert_eq!(one.ids(), two.ids(), "a message has one id");
    assert!(other.running.stop().await);
    app.finish().await;
    assert_eq!((one.received().len(), two.received().len()), (40, 40));
}

#[tokio::test]
async fn what_a_process_had_not_sent_when_it_was_killed_is_sent_by_another() {
    let mut config = harness::config().await;
    (config.webhooks.attempt_deadline_ms, config.webhooks.claim_ttl_ms) = (1_000, 3_000);
    // This one only watches.
    let mut watching = config.clone();
    watching.webhooks.poll_interval_ms = 600_000;
    let watcher = TestApp::with(watching).await;
    let seller = watcher.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await.first(&[Behave::Hang; 4]);
    register(&seller, &receiver, &["reservation.confirmed"]).await;
    let sale = prepared(&seller, 20).await;
    sale.control("Live").await.expect(200);
    let mut reservations = Vec::new();
    for buyer in watcher.buyers(10).await {
        reservations.push(buy(&sale, &buyer).await);
    }

    // It has four in hand when it dies; six were never taken up.
    let process = OrbitProcess::start(&config).await;
    receiver.until(4).await;
    process.kill().await;
    let successor = TestApp::with(config).await;

    eventually("every message has arrived", || async {
        let answered: Vec<_> = receiver.received().into_iter().skip(4).map(|one| one.json()).collect();
        let told = |id: &String| answered.iter().any(|json| json["data"]["reservationId"] == id.as_str());
        reservations.iter().all(told)
    })
    .await;
    assert_eq!(receiver.ids().len(), 10);
    assert!(successor.running.stop().await);
    watcher.finish().await;
}

#[tokio::test]
async fn what_is_told_twice_is_one_message() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    register(&seller, &receiver, &[]).await;
    let (id, event) = (seller.id.parse().unwrap(), EventId::from_bytes([7; 12]));
    let other = EventId::from_bytes([8; 12]);
    let tell = |event, minutes| {
        Message::of_ending(
            id,
            event,
            1,
            0,
            DateTime::from_timestamp_millis(4_000_000_000_000).unwrap() + TimeDelta::minutes(minutes),
        )
    };
    let messages = &app.app().mongo().webhook_messages;

    messages.store(&[tell(event, 1)]).await.unwrap();
    receiver.until(1).await;
    messages.store(&[tell(event, 2), tell(other, 2)]).await.unwrap();

    let told = receiver.until(2).await;
    assert_ne!(told[0].id(), told[1].id());
    app.finish().await;
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn a_delivery_can_be_made_again() {
    let (app, _clock) = app_with_clock(|_| {}).await;
    let seller = app.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await;
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;
    tell_openings(&seller, 1).await;
    receiver.until(1).await;
    let delivered = || async { webhook.deliveries(&app).await[0].state == DeliveryState::Delivered };
    eventually("it is recorded", delivered).await;
    let listed = seller.get(&webhook.path("/deliveries")).await.expect(200);
    let delivery = &listed["deliveries"][0];
    assert_eq!((&delivery["state"], &delivery["eventType"]), (&json!("DELIVERED"), &json!("sale.opened")));
    assert_eq!(delivery["attempts"][0]["status"], 200);

    let replay = webhook.path(&format!("/deliveries/{}/replays", delivery["id"].as_str().unwrap()));
    let replayed = seller.post(&replay).await.expect(202);
    assert_eq!(replayed["delivery"]["id"], delivery["id"]);

    let received = receiver.until(2).await;
    assert_eq!(received[0].id(), received[1].id());
    assert_eq!(received[0].body, received[1].body);
    let unknown = webhook.path(&format!("/deliveries/{}/replays", webhook.id));
    Actor::send(seller.request(Method::POST, &unknown)).await.refused(404, "not_found");
    // Not before the first answer is recorded: then nothing would be left in hand at the end.
    tokio::time::timeout(Duration::from_secs(10), app.finish()).await.unwrap();
}
