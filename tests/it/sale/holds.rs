//! Reservations that wait for payment: their units are nobody else's, and each is confirmed, cancelled or runs out, once.

use std::time::Duration;

use bson::{Document, doc};
use futures::StreamExt;
use futures::future::join_all;
use orbit::domain::ids::UserId;
use orbit::domain::order::{Order, OrderStatus};
use orbit::domain::reservation::{Confirmed, Reservation, ReserveOutcome, ReserveRequest};
use orbit::domain::sale::SaleAction;
use orbit::sale::ReservationRef;
use orbit::store::mongo::new_id;
use rand::RngExt;
use serde_json::json;

use super::{
    app_without_recovery, assert_only_the_status_is_left, calm_app, database, event_id, product_id, stock, unpaid_sale,
    without_hurry,
};
use crate::harness::{self, LiveSale, TestApp, eventually};

/// An application whose sweeper never comes.
async fn app_without_sweeps() -> TestApp {
    let mut config = without_hurry(harness::config().await);
    config.sale.sweep_interval_ms = 3_600_000;
    TestApp::with(config).await
}

async fn ask(app: &TestApp, sale: &LiveSale, product: usize, user: UserId) -> ReserveOutcome {
    let request = ReserveRequest {
        user,
        product: product_id(sale, product),
        event: event_id(sale),
        quantity: 1,
        reservation_id: uuid::Uuid::now_v7().to_string(),
        idempotency_key: String::new(),
    };
    app.app().sale().reserve(&request).await.unwrap()
}

/// A reservation by a buyer of its own.
async fn hold(app: &TestApp, sale: &LiveSale, product: usize) -> Reservation {
    match ask(app, sale, product, UserId::from_bytes(new_id())).await {
        ReserveOutcome::Reserved(reservation) => reservation,
        other => panic!("{other:?}"),
    }
}

fn named(reservation: &Reservation) -> ReservationRef {
    let Reservation { user, product, event, .. } = *reservation;
    ReservationRef { id: reservation.id.clone(), user, product, event }
}

async fn confirm(app: &TestApp, reservation: &Reservation) -> Confirmed {
    app.app().sale().confirm(&named(reservation), 1).await.unwrap()
}

async fn order(app: &TestApp, reservation: &Reservation) -> Option<Order> {
    app.app().mongo().orders.by_reservation(&reservation.id).await.unwrap()
}

async fn becomes(app: &TestApp, reservation: &Reservation, status: OrderStatus) {
    eventually(&format!("the order is {status:?}"), || async {
        order(app, reservation).await.is_some_and(|order| order.status == status)
    })
    .await;
}

#[tokio::test]
async fn a_hold_is_unavailable_until_it_runs_out_and_then_it_is_everybodys() {
    let app = calm_app().await;
    let sale = unpaid_sale(&app, 1, 2, 1).await;
    let (first, second) = (app.buyer().await, app.buyer().await);
    let held = first.post(&sale.purchase(0)).await.expect(201);
    assert_eq!(held["status"], "PENDING_PAYMENT");
    assert_eq!(sale.available(&second, 0).await, 1);
    sale.assert_sound(app.app()).await;

    eventually("the unit is on sale again", || async { sale.available(&second, 0).await == 2 }).await;
    let own = format!("/api/buyer/event/{}/reservation/{}", sale.event, sale.products[0]);
    assert_eq!(first.get(&own).await.expect(200)["reservation"]["status"], "EXPIRED");
    eventually("its order says so", || async {
        sale.orders().await.first().is_some_and(|order| order["status"] == "EXPIRED")
    })
    .await;
    let analytics = format!("/api/seller/events/booking/analytics/{}", sale.event);
    let sums = sale.seller.get(&analytics).await.expect(200)["analytics"].clone();
    assert_eq!((&sums["unitsSold"], &sums["totalRevenueMinor"]), (&json!(0), &json!(0)));
    // The buyer's place came back with it.
    let again = first.post(&sale.purchase(0)).await.expect(201);
    assert_ne!(again["reservationId"], held["reservationId"]);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_purchase_takes_a_hold_that_has_run_out_although_nobody_sweeps() {
    let app = app_without_sweeps().await;
    let sale = unpaid_sale(&app, 2, 1, 1).await;
    let lapsed = hold(&app, &sale, 0).await;
    hold(&app, &sale, 1).await;
    let other = UserId::from_bytes(new_id());
    assert_eq!(ask(&app, &sale, 0, other).await, ReserveOutcome::SoldOut);

    eventually("the other buyer gets the unit", || async {
        matches!(ask(&app, &sale, 0, other).await, ReserveOutcome::Reserved(_))
    })
    .await;
    assert_eq!(ask(&app, &sale, 0, lapsed.user).await, ReserveOutcome::SoldOut);
    assert_eq!(stock(&app, &sale, 0).await, 0);
    becomes(&app, &lapsed, OrderStatus::Expired).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_whose_hold_has_run_out_reserves_again_although_nobody_sweeps() {
    let app = app_without_sweeps().await;
    let sale = unpaid_sale(&app, 1, 5, 1).await;
    let lapsed = hold(&app, &sale, 0).await;
    let again = ask(&app, &sale, 0, lapsed.user).await;
    assert!(matches!(&again, ReserveOutcome::AlreadyReserved(known) if known.id == lapsed.id), "{again:?}");
    eventually("the buyer has a new one", || async {
        matches!(ask(&app, &sale, 0, lapsed.user).await, ReserveOutcome::Reserved(new) if new.id != lapsed.id)
    })
    .await;
    becomes(&app, &lapsed, OrderStatus::Expired).await;
    assert_eq!(confirm(&app, &lapsed).await, Confirmed::NoStock(order(&app, &lapsed).await.unwrap().reservation()));
    assert_eq!(stock(&app, &sale, 0).await, 4);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_payment_confirms_once_however_often_it_is_told_and_at_whichever_process() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = unpaid_sale(&app, 1, 5, 600).await;
    let held = hold(&app, &sale, 0).await;
    let told = join_all((0..40).map(|number| confirm(if number % 2 == 0 { &app } else { &second }, &held))).await;
    assert_eq!(told.iter().filter(|told| matches!(told, Confirmed::OnTime(_))).count(), 1);
    assert_eq!(told.iter().filter(|told| matches!(told, Confirmed::Before(_))).count(), 39);
    becomes(&app, &held, OrderStatus::Confirmed).await;
    assert_eq!(order(&app, &held).await.unwrap().revision, 2);
    assert_eq!(app.app().live().hold_count(event_id(&sale)).await.unwrap(), 0);
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_payment_that_comes_too_late_takes_a_unit_again_if_there_is_one() {
    let app = calm_app().await;
    let sale = unpaid_sale(&app, 1, 2, 1).await;
    let (late, too_late) = (hold(&app, &sale, 0).await, hold(&app, &sale, 0).await);
    eventually("both have run out", || async { stock(&app, &sale, 0).await == 2 }).await;
    assert!(matches!(confirm(&app, &late).await, Confirmed::Late(reservation) if reservation.revision == 3));
    // Somebody else takes the last unit, and pays.
    let winner = hold(&app, &sale, 0).await;
    assert!(matches!(confirm(&app, &winner).await, Confirmed::OnTime(_)));
    assert!(matches!(confirm(&app, &too_late).await, Confirmed::NoStock(_)));
    assert!(matches!(confirm(&app, &too_late).await, Confirmed::NoStock(_)));
    assert_eq!(stock(&app, &sale, 0).await, 0);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    for (reservation, status) in
        [(&late, OrderStatus::Confirmed), (&winner, OrderStatus::Confirmed), (&too_late, OrderStatus::Expired)]
    {
        assert_eq!(order(&app, reservation).await.unwrap().status, status);
    }
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

/// One unit, one hold, and at the moment when it runs out: its payment, its cancellation, a sweep and another buyer.
#[tokio::test]
async fn around_the_deadline_each_hold_has_one_end_and_each_unit_one_owner() {
    const ROUNDS: usize = 2_000;
    let app = calm_app().await;
    let second = app.second().await;
    let sale = unpaid_sale(&app, ROUNDS, 1, 2).await;
    let started = tokio::time::Instant::now();
    let held: Vec<Reservation> =
        futures::stream::iter(0..ROUNDS).map(|product| hold(&app, &sale, product)).buffered(64).collect().await;
    let (app_ref, second_ref, sale_ref) = (&app, &second, &sale);
    let ends = futures::stream::iter(held.iter().enumerate()).map(|(product, held)| async move {
        // Each of the four comes within a few milliseconds of the deadline, before it or after it.
        let due =
            started + Duration::from_millis(u64::try_from(held.expires_at_ms.unwrap() - held.booked_at_ms).unwrap());
        let moment = || due + Duration::from_millis(rand::rng().random_range(0..40));
        let (pays, cancels, buys) = (moment(), moment(), moment());
        let confirmed = async {
            tokio::time::sleep_until(pays).await;
            confirm(app_ref, held).await
        };
        let cancelled = async {
            tokio::time::sleep_until(cancels).await;
            if product % 3 == 0 {
                second_ref.app().sale().cancel(&named(held), None, None).await.unwrap();
            }
        };
        let bought = async {
            tokio::time::sleep_until(buys).await;
            ask(second_ref, sale_ref, product, UserId::from_bytes(new_id())).await
        };
        tokio::join!(confirmed, cancelled, bought)
    });
    let ends: Vec<_> = ends.buffer_unordered(ROUNDS).collect().await;
    let [mut on_time, mut late, mut refused, mut resold] = [0; 4];
    for (confirmed, (), bought) in &ends {
        match confirmed {
            Confirmed::OnTime(_) => on_time += 1,
            Confirmed::Late(_) => late += 1,
            Confirmed::NoStock(_) | Confirmed::Cancelled(_) => refused += 1,
            other => panic!("{other:?}"),
        }
        match bought {
            ReserveOutcome::Reserved(_) => resold += 1,
            ReserveOutcome::SoldOut => {}
            other => panic!("{other:?}"),
        }
    }
    eprintln!("{on_time} paid in time, {late} late, {refused} in vain, {resold} sold to another buyer");
    assert!(on_time > 0 && refused > 0 && resold > 0);
    sale.assert_sound(app.app()).await;
    sale.control("End").await.expect(200);
    sale.assert_sound(app.app()).await;
    assert_only_the_status_is_left(app.app(), &sale).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn what_is_unpaid_when_the_sale_ends_can_be_paid_until_it_runs_out_as_an_order() {
    let app = calm_app().await;
    let sale = unpaid_sale(&app, 1, 5, 600).await;
    let (paid, cancelled) = (hold(&app, &sale, 0).await, hold(&app, &sale, 0).await);
    sale.control("End").await.expect(200);
    assert_only_the_status_is_left(app.app(), &sale).await;
    assert_eq!(order(&app, &paid).await.unwrap().status, OrderStatus::PendingPayment);
    assert!(matches!(confirm(&app, &paid).await, Confirmed::OnTime(_)));
    assert!(matches!(confirm(&app, &paid).await, Confirmed::Before(_)));
    app.app().sale().cancel(&named(&cancelled), None, None).await.unwrap();
    assert!(matches!(confirm(&app, &cancelled).await, Confirmed::Cancelled(_)));
    becomes(&app, &paid, OrderStatus::Confirmed).await;
    becomes(&app, &cancelled, OrderStatus::Cancelled).await;
    assert_only_the_status_is_left(app.app(), &sale).await;

    let sale = unpaid_sale(&app, 1, 5, 1).await;
    let lapsed = hold(&app, &sale, 0).await;
    sale.control("End").await.expect(200);
    becomes(&app, &lapsed, OrderStatus::Expired).await;
    assert!(matches!(confirm(&app, &lapsed).await, Confirmed::NoStock(_)));
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_thousand_abandoned_holds_come_back_by_themselves() {
    let app = calm_app().await;
    let sale = unpaid_sale(&app, 10, 100, 1).await;
    futures::stream::iter(0..1_000)
        .map(|number| hold(&app, &sale, number % 10))
        .buffer_unordered(64)
        .for_each(|_| std::future::ready(()))
        .await;
    eventually("every unit is on sale again", || async {
        app.app().live().hold_count(event_id(&sale)).await.unwrap() == 0
    })
    .await;
    for product in 0..10 {
        assert_eq!(stock(&app, &sale, product).await, 100);
    }
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_rebuilt_sale_remembers_its_holds_and_when_they_run_out() {
    let (redis, mut config) = (harness::own_redis().await, without_hurry(harness::config().await));
    config.live.url = redis.url().into();
    let app = TestApp::with(config).await;
    let sale = unpaid_sale(&app, 1, 5, 8).await;
    let held = hold(&app, &sale, 0).await;
    becomes(&app, &held, OrderStatus::PendingPayment).await;
    let () = super::command(app.config(), &["FLUSHALL"]).await;
    eventually("the sale is rebuilt and can be resumed", || async { sale.control("Resume").await.status == 200 }).await;
    assert_eq!(stock(&app, &sale, 0).await, 4);
    assert_eq!(app.app().live().hold_count(event_id(&sale)).await.unwrap(), 1);
    sale.assert_sound(app.app()).await;
    eventually("it runs out all the same", || async { stock(&app, &sale, 0).await == 5 }).await;
    becomes(&app, &held, OrderStatus::Expired).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn while_a_sale_is_settled_an_order_that_has_run_out_does_not_say_that_nobody_has_paid() {
    let app = app_without_recovery().await;
    let sale = unpaid_sale(&app, 1, 1, 1).await;
    let late = hold(&app, &sale, 0).await;
    becomes(&app, &late, OrderStatus::Expired).await;
    assert!(matches!(confirm(&app, &late).await, Confirmed::Late(_)));
    becomes(&app, &late, OrderStatus::Confirmed).await;
    // As if the journal's last entry was still to be drained when the sale stops.
    let before = doc! { "$set": { "status": "EXPIRED", "revision": 2_i64, "returned": 1_i64 } };
    let orders = database(&app).await.collection::<Document>("orders");
    orders.update_one(doc! { "reservationId": &late.id }, before).await.unwrap();
    app.app().live().transition(event_id(&sale), SaleAction::End, None).await.unwrap();

    let told = app.app().sale().confirm(&named(&late), 1).await.unwrap_err();
    assert!(told.retryable(), "{told}");
    let told = app.app().sale().cancel(&named(&late), None, None).await.unwrap_err();
    assert!(told.retryable(), "{told}");

    sale.control("End").await.expect(200);
    assert!(matches!(confirm(&app, &late).await, Confirmed::Before(_)));
    becomes(&app, &late, OrderStatus::Confirmed).await;
    app.app().sale().cancel(&named(&late), None, None).await.unwrap();
    becomes(&app, &late, OrderStatus::Cancelled).await;
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
