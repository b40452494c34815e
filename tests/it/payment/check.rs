//! `orbit check` compares the money of a sale with its units, names what does not agree, and is patient with what is under way.

use std::collections::BTreeMap;

use bson::{Document, doc};
use orbit::sale::check::Verdict;

use super::gateway::{Fault, StripeServer, deliver, paid};
use super::{
    LONG_S, PRICE, ask, assert_money_sound, at_rest, cancel, documents, ended, intent, money_checks, order, payment,
    reserve, sale_to_be_paid, until,
};
use crate::harness::process::{environment, orbit, text};
use crate::harness::{LiveSale, TestApp, eventually};

/// A buyer of their own reserves so many units and pays for them; the reservation's id.
async fn pays(app: &TestApp, stripe: &StripeServer, sale: &LiveSale, units: u32) -> String {
    let buyer = app.buyer().await;
    let reservation = reserve(&buyer, sale, units).await;
    let object = stripe.pay(&intent(&buyer, sale).await);
    deliver(&app.anonymous(), &paid(&format!("evt_{reservation}"), &object)).await.expect(200);
    reservation
}

async fn verdicts(app: &TestApp, sale: &LiveSale) -> BTreeMap<u8, Verdict> {
    money_checks(app.app(), sale).await.into_iter().map(|check| (check.number, check.verdict)).collect()
}

async fn verdict(app: &TestApp, sale: &LiveSale) -> Verdict {
    verdicts(app, sale).await[&11]
}

#[tokio::test]
async fn after_payments_cancellations_and_late_money_it_all_adds_up() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 6, 3).await;
    let late = app.buyer().await;
    let without = reserve(&late, &sale, 3).await;
    let late_intent = ask(&late, &sale).await.expect(200)["intentId"].as_str().unwrap().to_owned();
    until(&late, &sale, "EXPIRED").await;

    let kept = pays(&app, &stripe, &sale, 1).await;
    let (parts, all) = (pays(&app, &stripe, &sale, 3).await, pays(&app, &stripe, &sale, 1).await);
    cancel(app.app(), &parts, Some(1), "one").await;
    cancel(app.app(), &all, None, "all").await;
    pays(&app, &stripe, &sale, 2).await;
    let object = stripe.pay(&late_intent);
    deliver(&app.anonymous(), &paid("evt_late", &object)).await.expect(200);

    assert_money_sound(app.app(), &sale).await;
    assert_eq!(ended(&at_rest(app.app(), &without).await), ("PAID_WITHOUT_STOCK", 3 * PRICE));
    sale.control("End").await.expect(200);
    assert_money_sound(app.app(), &sale).await;
    cancel(app.app(), &parts, Some(1), "another").await;
    cancel(app.app(), &kept, None, "all").await;
    assert_money_sound(app.app(), &sale).await;
    assert_eq!(payment(app.app(), &parts).await.refunded_minor, 2 * PRICE);
    assert_eq!(payment(app.app(), &kept).await.refunded_minor, PRICE);
    app.finish().await;
}

#[tokio::test]
async fn what_was_changed_by_hand_is_named() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let set = |field: &str, value: bson::Bson| doc! { "$set": { field: value } };
    /// Where, what is done there (nothing: it is deleted), and the invariants that it breaks.
    type Damage<'a> = (&'a str, Option<Document>, &'a [u8]);
    let damages: [Damage<'_>; 7] = [
        ("payments", Some(set("refundedMinor", PRICE.into())), &[11]),
        ("payments", Some(set("paid.minor", (4 * PRICE).into())), &[11]),
        ("payments", Some(set("paid.minor", (2 * PRICE).into())), &[11]),
        // Units went back, and nobody was told.
        ("orders", Some(set("returned", 1_i64.into())), &[11]),
        ("payments", Some(set("state", "CREATED".into())), &[12]),
        ("payments", Some(set("applied.outcome", "PAID_WITHOUT_STOCK".into())), &[11, 12]),
        ("payments", None, &[12]),
    ];
    for (collection, change, broken) in damages {
        let sale = sale_to_be_paid(&app, 5, LONG_S).await;
        let reservation = pays(&app, &stripe, &sale, 3).await;
        at_rest(app.app(), &reservation).await;
        assert_money_sound(app.app(), &sale).await;
        let key = if collection == "orders" { "reservationId" } else { "_id" };
        let (rows, which) = (documents(&app, collection).await, doc! { key: &reservation });
        match &change {
            Some(change) => assert_eq!(rows.update_one(which, change.clone()).await.unwrap().modified_count, 1),
            None => assert_eq!(rows.delete_one(which).await.unwrap().deleted_count, 1),
        }

        let checks = money_checks(app.app(), &sale).await;
        let violated = checks.iter().filter(|check| check.verdict == Verdict::Violated);
        let numbers: Vec<u8> = violated.clone().map(|check| check.number).collect();
        assert_eq!(numbers, broken, "{collection} {change:?}: {checks:?}");
        assert!(violated.clone().all(|check| check.detail.contains(&reservation)), "{checks:?}");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_refund_that_is_due_or_under_way_is_unknown_and_one_that_was_given_up_is_wrong() {
    let stripe = StripeServer::start().await;
    let mut config = stripe.config().await;
    config.payment.deadline_ms = 5_000;
    config.payment.refund_attempts_max = 1;
    // The test reconciles.
    config.payment.reconcile_interval_ms = 3_600_000;
    let app = TestApp::with(config).await;
    let payments = app.app().payments();
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let reservation = pays(&app, &stripe, &sale, 3).await;
    let reconciled = |wanted: Verdict| {
        let (app, sale, reservation) = (&app, &sale, &reservation);
        async move {
            eventually(&format!("{wanted:?}"), || async {
                payments.reconcile().await.unwrap();
                let due = payment(app.app(), reservation).await.due_at;
                due.is_none() && verdict(app, sale).await == wanted
            })
            .await;
        }
    };
    reconciled(Verdict::Holds).await;

    // Units went back, and nobody has looked at their money yet.
    cancel(app.app(), &reservation, Some(1), "one").await;
    eventually("the order says so", || async { order(app.app(), &reservation).await.returned == 1 }).await;
    assert_eq!(verdict(&app, &sale).await, Verdict::Unknown);
    // The gateway takes its time.
    stripe.meet([Fault::Held]);
    let looked = async {
        eventually("the gateway is asked", || async { stripe.waiting() == 1 }).await;
        assert_eq!(payment(app.app(), &reservation).await.refunding_minor, Some(PRICE));
        assert_eq!(verdict(&app, &sale).await, Verdict::Unknown);
        stripe.release();
    };
    let (round, ()) = tokio::join!(payments.reconcile(), looked);
    round.unwrap();
    reconciled(Verdict::Holds).await;

    stripe.meet([Fault::Refused]);
    cancel(app.app(), &reservation, Some(1), "another").await;
    reconciled(Verdict::Violated).await;
    let again = doc! { "$set": { "attempts": 0_i64 }, "$currentDate": { "dueAt": true } };
    documents(&app, "payments").await.update_one(doc! { "_id": &reservation }, again).await.unwrap();
    assert_eq!(verdict(&app, &sale).await, Verdict::Unknown, "it is tried again");
    reconciled(Verdict::Holds).await;
    assert_eq!(payment(app.app(), &reservation).await.refunded_minor, 2 * PRICE);
    app.finish().await;
}

#[tokio::test]
async fn the_command_has_a_line_for_the_money_and_fails_when_it_does_not_add_up() {
    let stripe = StripeServer::start().await;
    let app = stripe.app().await;
    let sale = sale_to_be_paid(&app, 5, LONG_S).await;
    let reservation = pays(&app, &stripe, &sale, 2).await;
    at_rest(app.app(), &reservation).await;
    let run = async || {
        let mut process = orbit();
        process.args(["check", &sale.event]).envs(environment(app.config(), 0));
        let output = process.output().await.unwrap();
        (output.status.code(), text(&output))
    };
    let (status, said) = run().await;
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("  ok    11  money kept = price x units held"), "{said}");
    assert!(said.contains("  ok    12  every confirmed order is paid for"), "{said}");

    let too_much = doc! { "$set": { "refundedMinor": PRICE } };
    documents(&app, "payments").await.update_one(doc! { "_id": &reservation }, too_much).await.unwrap();
    let (status, said) = run().await;
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("  FAIL  11  ") && said.contains(&reservation) && said.contains("stuckSince"), "{said}");
    app.finish().await;
}
