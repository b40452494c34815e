//! The journal: orders are durable while the sale runs, whoever dies, and nothing is trimmed before they are.

use orbit::domain::ids::UserId;
use orbit::domain::money::{self, Money};
use orbit::domain::order::OrderStatus;
use orbit::domain::page::Page;
use orbit::domain::reservation::Reservation;
use orbit::domain::sale::SaleStatus;
use orbit::store::live::EntryRead;
use orbit::store::mongo::new_id;

use super::{app_without_drains, calm_app, command, event_id, ordered, product_id, reserve_directly, sorted, stock};
use crate::harness::{Actor, LiveSale, TestApp, eventually};

async fn journal_length(app: &TestApp, sale: &LiveSale) -> usize {
    let journal = app.app().live().keys().journal(event_id(sale));
    command(app.config(), &["XLEN", &journal]).await
}

#[tokio::test]
async fn orders_are_in_the_database_while_the_sale_runs_and_the_journal_is_trimmed_behind_them() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 2_000).await;

    let made = reserve_directly(&app, &sale, 1_000).await;

    eventually("every order is there", || async {
        app.app().mongo().orders.count_of_event(event_id(&sale)).await.unwrap() == 1_000
    })
    .await;
    assert_eq!(app.app().live().status(event_id(&sale)).await.unwrap(), SaleStatus::Live);
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    // Trimmed by whole nodes: a part of the last one may stay.
    eventually("the journal is trimmed", || async { journal_length(&app, &sale).await <= 100 }).await;
    sale.assert_sound(app.app()).await;
    let metrics = format!("http://{}/metrics", app.running.metrics_address.unwrap());
    let text = reqwest::get(&metrics).await.unwrap().text().await.unwrap();
    assert!(text.contains("orbit_settle_lag_seconds_bucket"), "{text}");
    sale.control("End").await.expect(200);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn entries_that_a_dead_process_had_in_hand_are_kept_until_another_has_written_them() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 2_000).await;
    let (event, live) = (event_id(&sale), app.app().live());
    let made = reserve_directly(&app, &sale, 600).await;
    let in_hand = live.read_journal(event, "a process that died", 100).await.unwrap();
    assert_eq!(in_hand.entries.len(), 100);

    // Another process drains everything else.
    app.app().sale().drain(event, 600_000).await.unwrap();

    assert_eq!(app.app().mongo().orders.count_of_event(event).await.unwrap(), 500);
    assert_eq!(journal_length(&app, &sale).await, 600, "what nobody has confirmed, and all behind it, stays");
    app.app().sale().drain(event, 0).await.unwrap();
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    assert!(journal_length(&app, &sale).await <= 100);
    // The dead process was only slow, and confirms late: nothing changes.
    let late: Vec<_> = in_hand.entries.iter().map(|entry| entry.id).collect();
    live.acknowledge(event, &late).await.unwrap();
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_journal_that_lost_its_group_is_read_again_from_its_start() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 100).await;
    let event = event_id(&sale);
    let made = reserve_directly(&app, &sale, 30).await;
    let journal = app.app().live().keys().journal(event);
    assert_eq!(command::<u64>(app.config(), &["XGROUP", "DESTROY", &journal, "orbit"]).await, 1);

    app.app().sale().drain(event, 0).await.unwrap();

    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    app.finish().await;
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_does_not_hold_up_the_ten_thousand_behind_it() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 20_000).await;
    let event = event_id(&sale);
    let journal = app.app().live().keys().journal(event);
    let mut made = reserve_directly(&app, &sale, 10).await;
    let poison = ["XADD", journal.as_str(), "*", "reservationId", "", "quantity", "many"];
    let id: String = command(app.config(), &poison).await;
    made.extend(reserve_directly(&app, &sale, 10_000).await);

    app.app().sale().drain(event, 0).await.unwrap();

    assert_eq!(app.app().mongo().orders.count_of_event(event).await.unwrap(), 10_010);
    let letters = app.app().mongo().dead_letters.keys_of_event(event).await.unwrap();
    assert_eq!(letters.into_iter().collect::<Vec<_>>(), [format!("journal entry {id}")]);
    // A change that nobody can read may be anything: End keeps what there is and says so.
    let ended = sale.control("End").await.expect(200);
    assert_eq!((&ended["orders"], &ended["deadLetters"]), (&10_010.into(), &1.into()));
    assert_eq!(ordered(app.app(), &sale).await, sorted(made));
    app.finish().await;
}

#[tokio::test]
async fn an_older_state_of_a_reservation_never_overwrites_a_newer_one() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 10).await;
    let orders = &app.app().mongo().orders;
    let state = |revision, status| Reservation {
        expires_at_ms: None,
        returned: if status == OrderStatus::Cancelled { 1 } else { 0 },
        slot_kept: false,
        operation: String::new(),
        id: "one reservation".to_owned(),
        user: UserId::from_bytes(new_id()),
        product: product_id(&sale, 0),
        event: event_id(&sale),
        quantity: 1,
        price: Money { minor: 19_999, currency: money::currency("INR").unwrap() },
        status,
        booked_at_ms: 1_767_225_600_000,
        revision,
        idempotency_key: String::new(),
    };
    let (held, paid, given_back) = (OrderStatus::PendingPayment, OrderStatus::Confirmed, OrderStatus::Cancelled);
    let deliveries = [(2, paid), (1, held), (2, paid), (3, given_back), (2, paid), (1, held), (3, given_back)];
    let expected = [paid, paid, paid, given_back, given_back, given_back, given_back];

    for ((revision, status), expected) in deliveries.into_iter().zip(expected) {
        let written = orders.upsert(&[state(revision, status)]).await.unwrap();
        assert_eq!((written.confirmed, written.refused), (1, Vec::new()));
        let page = orders.of_event(event_id(&sale), Page { limit: 10, after: None }).await.unwrap();
        assert_eq!(page.items.iter().map(|order| order.status).collect::<Vec<_>>(), [expected]);
    }

    assert_eq!(orders.tally(event_id(&sale)).await.unwrap().changes, 3);
    app.finish().await;
}

#[tokio::test]
async fn a_journal_tells_a_reservation_as_its_booking_does() {
    let app = app_without_drains().await;
    let sale = app.live_sale(1, 10).await;
    let buyer = app.buyer().await;
    let purchase = buyer.request(reqwest::Method::POST, &sale.purchase(0));
    Actor::send(purchase.header("Idempotency-Key", "the-buyers-key")).await.expect(201);
    let live = app.app().live();
    let booked = live.booking(buyer.id.parse().unwrap(), product_id(&sale, 0), event_id(&sale)).await.unwrap().unwrap();

    let batch = live.read_journal(event_id(&sale), "a reader", 10).await.unwrap();

    let told: Vec<&Reservation> = batch
        .entries
        .iter()
        .map(|entry| match &entry.read {
            EntryRead::Whole(reservation) => reservation,
            EntryRead::Unreadable { reason, .. } => panic!("{reason}"),
        })
        .collect();
    assert_eq!(told, [&booked]);
    assert_eq!(booked.idempotency_key, "the-buyers-key");
    assert_eq!(stock(&app, &sale, 0).await, 9);
    app.finish().await;
}
