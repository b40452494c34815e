//! The seller's four actions, in every state, at every moment, from everybody.

use futures::future::{join, join_all};
use orbit::domain::event::SalePhase;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    acknowledged, app_without_recovery, assert_only_the_status_is_left, calm_app, command, event_id, ordered, phase,
    prepared, prepared_by, prepared_large, reserve_directly, seen_from, stock, tally,
};
use crate::harness::{self, Actor, LiveSale, Pending, pictures};

const LIVE: &str = "sale is now live";
const PAUSED: &str = "sale paused \u{2014} no new bookings will be accepted";
const RESUMED: &str = "sale resumed";
const ENDED: &str = "sale ended \u{2014} all orders synced to database";

/// What leads to a status.
const WAYS: [(&str, &[&str]); 4] =
    [("NOT_STARTED", &[]), ("LIVE", &["Live"]), ("PAUSED", &["Live", "Pause"]), ("STOPPED", &["Live", "End"])];

async fn sale_in(seller: &Actor, way: &[&str]) -> LiveSale {
    let sale = prepared_by(seller.clone(), 1, 10).await;
    for action in way {
        sale.control(action).await.expect(200);
    }
    sale
}

#[tokio::test]
async fn every_action_in_every_status_answers_as_the_state_machine_says() {
    let app = calm_app().await;
    let seller = app.approved_seller().await;
    let allowed = [
        ("NOT_STARTED", "Live", LIVE),
        ("LIVE", "Pause", PAUSED),
        ("LIVE", "End", ENDED),
        ("PAUSED", "Resume", RESUMED),
        ("PAUSED", "End", ENDED),
        ("STOPPED", "End", ENDED),
    ];
    for (status, way) in WAYS {
        for (action, target) in [("Live", "LIVE"), ("Pause", "PAUSED"), ("Resume", "LIVE"), ("End", "STOPPED")] {
            let sale = sale_in(&seller, way).await;
            let reply = sale.control(action).await;
            if let Some((_, _, message)) = allowed.iter().find(|(from, name, _)| (*from, *name) == (status, action)) {
                assert_eq!(reply.expect(200)["message"], *message, "{action} when {status}");
            } else {
                reply.refused(409, "transition_refused");
                assert_eq!(reply.body["error"], format!("cannot transition sale from {status} to {target}"));
                assert_eq!(reply.body["currentStatus"], status);
                assert_eq!(reply.body["attemptedAction"], target);
                let view = seller.get(&format!("/api/seller/events/{}/saleStatus", sale.event)).await.expect(200);
                assert_eq!(view["status"], status, "a refused {action} changes nothing");
            }
            sale.assert_sound(app.app()).await;
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn only_a_live_sale_accepts_a_reservation() {
    let app = calm_app().await;
    let (seller, buyer) = (app.approved_seller().await, app.buyer().await);
    for (status, way) in WAYS {
        let sale = sale_in(&seller, way).await;
        let reply = buyer.post(&sale.purchase(0)).await;
        if status == "LIVE" {
            reply.expect(201);
        } else {
            reply.refused(409, "sale_not_active");
            assert_eq!(reply.body["currentStatus"], status);
            assert_eq!(reply.body["error"], "sale is not active");
        }
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn ten_openings_at_two_processes_are_one() {
    let app = calm_app().await;
    let second = app.second().await;
    let seller = app.approved_seller().await;
    // One that comes just when another has finished is a matter of luck: so there are some rounds.
    for _ in 0..10 {
        let sale = prepared_by(seller.clone(), 3, 7).await;
        let there = seen_from(&sale, &second);

        let opening = (0..10).map(|n| if n % 2 == 0 { sale.control("Live") } else { there.control("Live") });
        let replies = join_all(opening).await;

        let opened: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(opened.len(), 1, "{:?}", tally(&replies));
        assert_eq!(opened[0].body, json!({ "message": LIVE, "products": 3 }));
        for refused in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(refused.status, 409, "{}", refused.body);
            let code = refused.body["code"].as_str().unwrap();
            assert!(["opening_in_progress", "transition_refused"].contains(&code), "{code}");
        }
        for product in 0..3 {
            assert_eq!(stock(&app, &sale, product).await, 7);
        }
        assert_eq!(phase(app.app(), &sale).await, SalePhase::Live);
        sale.assert_sound(app.app()).await;
        sale.control("End").await.expect(200);
        assert_only_the_status_is_left(app.app(), &sale).await;
    }
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn whatever_a_seller_presses_while_buyers_buy_the_acknowledged_reservations_become_orders() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = prepared(&app, 2, 15).await;
    let there = seen_from(&sale, &second);
    let buyers = app.buyers(20).await;

    let seller = async {
        for round in 0..12 {
            let at = if round % 2 == 0 { &sale } else { &there };
            let other = if round % 2 == 0 { &there } else { &sale };
            let replies = futures::join!(
                at.control("Live"),
                other.control("Pause"),
                other.control("Resume"),
                at.control("Pause")
            );
            for reply in [replies.0, replies.1, replies.2, replies.3] {
                assert!([200, 409].contains(&reply.status), "{}", reply.body);
            }
            // Whoever won, from here on it is not paused.
            sale.control("Resume").await;
        }
        join(sale.control("End"), there.control("Pause")).await.0.expect(200);
    };
    let shoppers = join_all(buyers.iter().enumerate().map(|(number, buyer)| {
        let buyer = if number % 2 == 0 { buyer.clone() } else { second.here(buyer) };
        let (sale, mut replies) = (&sale, Vec::new());
        async move {
            // Until the sale is over, as a buyer's page does.
            loop {
                for product in 0..2 {
                    replies.push(buyer.post(&sale.purchase(product)).await);
                }
                if replies.iter().any(|reply| reply.body["currentStatus"] == "STOPPED") {
                    return replies;
                }
            }
        }
    }));
    let ((), replies) = join(seller, shoppers).await;
    let replies: Vec<_> = replies.into_iter().flatten().collect();

    for reply in &replies {
        let expected = ["already_booked", "sold_out", "sale_not_active"];
        let code = reply.body["code"].as_str().unwrap_or_default();
        assert!(reply.status == 201 || expected.contains(&code), "{} {}", reply.status, reply.body);
    }
    let made = acknowledged(&replies);
    assert!(!made.is_empty() && made.len() <= 30, "{}", made.len());
    assert_eq!(ordered(app.app(), &sale).await, made);
    assert_eq!(phase(app.app(), &sale).await, SalePhase::Settled);
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn ten_endings_at_two_processes_all_succeed_and_settle_each_reservation_once() {
    let app = calm_app().await;
    let second = app.second().await;
    let sale = app.live_sale(1, 1000).await;
    let there = seen_from(&sale, &second);
    let made = super::sorted(reserve_directly(&app, &sale, 150).await);

    let replies = join_all((0..10).map(|n| if n % 2 == 0 { sale.control("End") } else { there.control("End") })).await;

    for reply in replies {
        assert_eq!(reply.expect(200), json!({ "message": ENDED, "orders": 150, "deadLetters": 0 }));
    }
    assert_eq!(ordered(app.app(), &sale).await, made);
    assert_only_the_status_is_left(app.app(), &sale).await;
    sale.assert_sound(app.app()).await;
    second.running.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn ending_again_says_the_same_and_changes_nothing() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 5).await;
    app.buyer().await.post(&sale.purchase(0)).await.expect(201);

    let first = sale.control("End").await.expect(200);
    let orders = sale.orders().await;
    let again = sale.control("End").await.expect(200);

    assert_eq!(again, first);
    assert_eq!(again, json!({ "message": ENDED, "orders": 1, "deadLetters": 0 }));
    assert_eq!(sale.orders().await, orders);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn an_ended_sale_stays_ended_when_its_status_has_expired() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    buyer.post(&sale.purchase(0)).await.expect(201);
    sale.control("End").await.expect(200);

    for expired in [false, true] {
        if expired {
            let key = app.app().live().keys().status(event_id(&sale));
            assert_eq!(command::<i64>(app.config(), &["DEL", &key]).await, 1);
        }
        for (action, target) in [("Live", "LIVE"), ("Pause", "PAUSED"), ("Resume", "LIVE")] {
            let reply = sale.control(action).await;
            reply.refused(409, "transition_refused");
            assert_eq!(reply.body["currentStatus"], "STOPPED");
            assert_eq!(reply.body["attemptedAction"], target);
        }
        assert_eq!(sale.control("End").await.expect(200)["message"], ENDED);
        let view = sale.seller.get(&format!("/api/seller/events/{}/saleStatus", sale.event)).await.expect(200);
        assert_eq!(
            (&view["status"], &view["phase"], &view["orders"]),
            (&json!("STOPPED"), &json!("SETTLED"), &json!(1))
        );
        app.buyer().await.post(&sale.purchase(0)).await.refused(409, "sale_not_active");
        assert_eq!(sale.available(&buyer, 0).await, 0);
    }
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn another_spelling_of_an_id_is_the_same_sale() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    let made = buyer.post(&sale.purchase(0)).await.expect(201);

    // One letter, then all of them.
    let letter = sale.event.find(|c: char| c.is_ascii_lowercase());
    let spellings = letter.map(|at| {
        let mut one = sale.event.clone();
        one[at..=at].make_ascii_uppercase();
        [one, sale.event.to_ascii_uppercase()]
    });
    for event in spellings.into_iter().flatten() {
        let products: Vec<String> = sale.products.iter().map(|id| id.to_ascii_uppercase()).collect();
        let other = LiveSale { seller: sale.seller.clone(), event, products };
        let refused = other.control("Live").await;
        refused.refused(409, "transition_refused");
        assert_eq!(refused.body["currentStatus"], "LIVE");
        let booked = buyer.post(&other.purchase(0)).await;
        booked.refused(409, "already_booked");
        assert_eq!(booked.body["reservation"]["reservationId"], made["reservationId"]);
        app.buyer().await.post(&other.purchase(0)).await.expect(201);
    }
    assert_eq!(stock(&app, &sale, 0).await, if letter.is_some() { 2 } else { 4 });
    sale.assert_sound(app.app()).await;

    let other = LiveSale { event: sale.event.to_ascii_uppercase(), ..seen_from(&sale, &app) };
    assert_eq!(other.control("End").await.expect(200)["deadLetters"], 0);
    sale.control("Live").await.refused(409, "transition_refused");
    other.control("Live").await.refused(409, "transition_refused");
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_seller_without_approval_opens_nothing() {
    let app = calm_app().await;
    let sale = prepared_by(app.seller().await, 1, 5).await;

    sale.control("Live").await.refused(403, "not_approved");

    assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft);
    assert_eq!(app.app().live().scan_event_keys(event_id(&sale)).await.unwrap(), Vec::<String>::new());
    app.finish().await;
}

#[tokio::test]
async fn another_sellers_sale_does_not_exist_for_a_stranger() {
    let app = calm_app().await;
    let seller = app.approved_seller().await;
    let stranger = app.approved_seller().await;
    for (_, way) in WAYS {
        let sale = sale_in(&seller, way).await;
        let before = phase(app.app(), &sale).await;
        let theirs = LiveSale { seller: stranger.clone(), ..seen_from(&sale, &app) };
        for action in ["Live", "Pause", "Resume", "End"] {
            let reply = theirs.control(action).await;
            reply.refused(404, "not_found");
            assert_eq!(reply.body["error"], "event not found");
        }
        let view = stranger.get(&format!("/api/seller/events/{}/saleStatus", sale.event)).await;
        view.refused(404, "not_found");
        assert_eq!(phase(app.app(), &sale).await, before);
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn an_event_that_nobody_made_has_no_sale() {
    let app = calm_app().await;
    let seller = app.approved_seller().await;
    let nowhere = orbit::domain::ids::EventId::from_bytes(orbit::store::mongo::new_id());
    for event in [nowhere.to_string(), "0123456789abcdef0123456".to_owned(), "not-an-id".to_owned()] {
        let sale = LiveSale { seller: seller.clone(), event, products: vec![] };
        for action in ["Live", "Pause", "Resume", "End"] {
            sale.control(action).await.refused(404, "not_found");
        }
    }
    assert_eq!(app.app().live().scan_event_keys(nowhere).await.unwrap(), Vec::<String>::new());
    app.finish().await;
}

#[tokio::test]
async fn an_event_without_products_does_not_open_and_can_still_get_some() {
    let app = calm_app().await;
    let mut sale = prepared(&app, 0, 0).await;

    sale.control("Live").await.refused(409, "no_products");

    assert_eq!(phase(app.app(), &sale).await, SalePhase::Draft);
    assert_eq!(app.app().live().scan_event_keys(event_id(&sale)).await.unwrap(), Vec::<String>::new());
    sale.products.push(sale.seller.add_product(&sale.event, "Late arrival", "5", 1).await);
    sale.control("Live").await.expect(200);
    app.buyer().await.post(&sale.purchase(0)).await.expect(201);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

fn product_text(price: &str) -> [(&'static str, String); 4] {
    [
        ("title", "Another".to_owned()),
        ("description", "Another product of a test".to_owned()),
        ("price", price.to_owned()),
        ("frequency", "5".to_owned()),
    ]
}

async fn try_to_add(seller: &Actor, event: &str, price: &str) -> harness::Reply {
    let text = product_text(price);
    let text: Vec<(&str, &str)> = text.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = format!("/api/seller/events/{event}/registerProducts");
    seller.form(Method::POST, &path, &text, Some(("image", pictures::jpeg(16, 16)))).await
}

async fn set_price(seller: &Actor, event: &str, product: &str, price: &str) -> harness::Reply {
    let path = format!("/api/seller/events/{event}/updateProduct/{product}");
    seller.form(Method::PUT, &path, &[("price", price)], None).await
}

/// The catalogue as its seller sees it.
async fn catalogue(sale: &LiveSale) -> Vec<Value> {
    let listed = sale.seller.get(&format!("/api/seller/events/{}/getProducts", sale.event)).await.expect(200);
    listed["products"].as_array().unwrap().clone()
}

#[tokio::test]
async fn while_a_sale_runs_nothing_of_it_can_be_edited_and_the_price_shown_is_the_price_paid() {
    let app = calm_app().await;
    let sale = app.live_sale(2, 5).await;
    for action in ["", "Pause"] {
        if !action.is_empty() {
            sale.control(action).await.expect(200);
        }
        let (event, product) = (&sale.event, &sale.products[0]);
        set_price(&sale.seller, event, product, "1").await.refused(409, "catalogue_frozen");
        try_to_add(&sale.seller, event, "1").await.refused(409, "catalogue_frozen");
        let delete = format!("/api/seller/events/{event}/deleteProduct/{product}");
        sale.seller.delete(&delete).await.refused(409, "catalogue_frozen");
        let delete = format!("/api/seller/events/delete/{event}");
        sale.seller.delete(&delete).await.refused(409, "catalogue_frozen");
    }
    sale.control("Resume").await.expect(200);
    assert_eq!(catalogue(&sale).await.len(), 2);

    let buyer = app.buyer().await;
    let page = buyer.get(&format!("/api/buyer/event/{}", sale.event)).await.expect(200);
    let shown = page["products"].as_array().unwrap().iter().find(|shown| shown["productId"] == *sale.products[0]);
    let shown = shown.unwrap()["price"].clone();
    let paid = buyer.post(&sale.purchase(0)).await.expect(201);
    assert_eq!((&shown, &paid["price"], &paid["priceMinor"]), (&json!(199.99), &json!(199.99), &json!(19_999)));
    sale.control("End").await.expect(200);
    assert_eq!(sale.orders().await[0]["priceMinor"], 19_999);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[tokio::test]
async fn a_settled_sale_can_be_cleared_away_and_keeps_its_orders() {
    let app = calm_app().await;
    let sale = app.live_sale(2, 5).await;
    let made = app.buyer().await.post(&sale.purchase(0)).await.expect(201);
    sale.control("End").await.expect(200);

    let delete = format!("/api/seller/events/{}/deleteProduct/{}", sale.event, sale.products[0]);
    sale.seller.delete(&delete).await.expect(200);
    assert_eq!(catalogue(&sale).await.len(), 1);
    sale.assert_sound(app.app()).await;
    sale.seller.delete(&format!("/api/seller/events/delete/{}", sale.event)).await.expect(200);

    assert_eq!(ordered(app.app(), &sale).await, [made["reservationId"].as_str().unwrap()]);
    sale.control("Live").await.refused(404, "not_found");
    app.finish().await;
}

#[tokio::test]
async fn a_product_added_while_the_sale_opens_is_for_sale_or_refused() {
    let app = calm_app().await;
    let seller = app.approved_seller().await;
    for _ in 0..4 {
        let mut sale = prepared_by(seller.clone(), 1, 50).await;
        let adding = join_all((0..12).map(|_| try_to_add(&sale.seller, &sale.event, "7")));
        let opening = async {
            // Some are there, others are on their way.
            harness::eventually("the first of them is in the catalogue", || async { catalogue(&sale).await.len() > 1 })
                .await;
            sale.control("Live").await
        };
        let (added, opened) = join(adding, opening).await;
        let products = opened.expect(200)["products"].as_u64().unwrap();

        let mut accepted = vec![sale.products[0].clone()];
        for reply in &added {
            match reply.status {
                201 => accepted.push(reply.body["productId"].as_str().unwrap().to_owned()),
                _ => reply.refused(409, "catalogue_frozen"),
            }
        }
        let listed = super::sorted(catalogue(&sale).await.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        assert_eq!(listed, super::sorted(accepted));
        assert_eq!(products, listed.len() as u64);
        let buyer = app.buyer().await;
        sale.products = listed;
        for product in 0..sale.products.len() {
            buyer.post(&sale.purchase(product)).await.expect(201);
        }
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

#[tokio::test]
async fn a_price_edited_while_the_sale_opens_is_the_price_that_buyers_pay_or_refused() {
    let app = calm_app().await;
    let seller = app.approved_seller().await;
    for _ in 0..6 {
        let sale = prepared_by(seller.clone(), 1, 50).await;
        let editing = join_all((1..=10).map(|n| {
            let sale = &sale;
            async move { set_price(&sale.seller, &sale.event, &sale.products[0], &format!("{n}")).await }
        }));
        let (edited, opened) = join(editing, sale.control("Live")).await;
        opened.expect(200);

        for reply in edited.iter().filter(|reply| reply.status != 200) {
            reply.refused(409, "catalogue_frozen");
        }
        let listed = catalogue(&sale).await[0].clone();
        let paid = app.buyer().await.post(&sale.purchase(0)).await.expect(201);
        assert_eq!(listed["price"], paid["price"]);
        sale.assert_sound(app.app()).await;
    }
    app.finish().await;
}

/// Sends an action, waits until it has begun, and hangs up without reading the answer.
async fn hang_up_during<F: Future<Output = bool>>(sale: &LiveSale, action: &str, begun: impl FnMut() -> F) {
    let path = format!("/api/seller/events/{}/{action}", sale.event);
    let pending = Pending::send(&sale.seller, &path, &Value::Null).await;
    harness::eventually("the action has begun", begun).await;
    pending.hang_up().await;
}

#[tokio::test]
async fn a_seller_who_hangs_up_leaves_no_sale_half_open_or_half_ended() {
    let app = app_without_recovery().await;
    let sale = prepared_large(&app, 1500, 2000).await;

    hang_up_during(&sale, "Live", || async { phase(app.app(), &sale).await != SalePhase::Draft }).await;
    harness::eventually("the sale is open", || async { app.buyer().await.post(&sale.purchase(1)).await.status == 201 })
        .await;
    assert_eq!(app.app().live().product_count(event_id(&sale)).await.unwrap(), 1500);
    let mut made = reserve_directly(&app, &sale, 700).await;

    let stopped = || async { phase(app.app(), &sale).await != SalePhase::Live };
    hang_up_during(&sale, "End", stopped).await;
    harness::eventually("the sale is settled", || async { phase(app.app(), &sale).await == SalePhase::Settled }).await;
    harness::eventually("nothing is left but the status", || async {
        app.app().live().scan_event_keys(event_id(&sale)).await.unwrap().len() == 1
    })
    .await;
    let ordered = ordered(app.app(), &sale).await;
    made.retain(|id| !ordered.contains(id));
    assert_eq!(made, Vec::<String>::new(), "reservations without an order");
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
