//! A process that dies between two steps, and stores that lose what they had: no code is lost, and none is given twice.

use orbit::domain::ids::VoucherOrderId;
use orbit::domain::voucher::{UnitStatus, VoucherOrder, VoucherOrderStatus};
use orbit::error::Code;
use orbit::store::live::{Claimed, Claiming};
use orbit::store::mongo::new_id;
use orbit::store::mongo::vouchers::units::{Assignment, Which};

use super::{Shop, days, items, without_reconciler, worth};
use crate::harness::proxy::Proxy;
use crate::harness::{self, process::OrbitProcess};
use crate::sale::command;

/// Claims are old at once.
async fn impatient() -> Shop {
    let mut config = without_reconciler(harness::config().await);
    config.vouchers.claim_ttl_ms = 1;
    let shop = Shop::with(config).await;
    shop.stock(2).await;
    shop
}

async fn claim(shop: &Shop, item: &[String]) -> Vec<Claimed> {
    let wanted = shop.wanted(item);
    let pools = shop.product.vendors.iter().map(|vendor| orbit::domain::voucher::Pool {
        product: shop.product.id,
        denomination: worth(2_500),
        vendor: *vendor,
        client: None,
    });
    let pools: Vec<_> = pools.collect();
    match shop.app().live().allocate(shop.product.id, &pools, wanted.expires_from, item).await.unwrap() {
        Claiming::Claimed(claimed) => claimed,
        Claiming::Short(found) => panic!("{found} were found"),
    }
}

fn assignments(claims: &[Claimed]) -> Vec<Assignment> {
    claims.iter().map(|claim| Assignment { unit: claim.unit, item: claim.item.clone(), client: None }).collect()
}

/// So that the claim is older than a millisecond by Redis' clock.
async fn reconcile(shop: &Shop) {
    harness::eventually("no claim is open", || async {
        shop.app().vouchers().reconcile().await.unwrap();
        shop.app().live().open_claims(shop.product.id).await.unwrap().0.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_claim_of_a_process_that_died_at_once_goes_back() {
    let shop = impatient().await;
    let lost = claim(&shop, &items("o", 2)).await;
    assert_eq!(shop.allocate(&items("p", 1)).await.unwrap_err().code(), Code::VouchersShort);
    reconcile(&shop).await;
    shop.assert_placed().await;
    let given = shop.allocate(&items("p", 2)).await.unwrap();
    assert_eq!(
        given.iter().map(|unit| unit.id).collect::<Vec<_>>(),
        lost.iter().map(|claim| claim.unit).collect::<Vec<_>>()
    );
    shop.finish().await;
}

#[tokio::test]
async fn a_claim_that_the_database_knows_of_is_finished() {
    let shop = impatient().await;
    let claims = claim(&shop, &items("o", 1)).await;
    shop.app().mongo().voucher_units.assign(&assignments(&claims)).await.unwrap();
    reconcile(&shop).await;
    shop.assert_placed().await;
    assert_eq!(shop.allocate(&items("o", 1)).await.unwrap()[0].id, claims[0].unit, "asking again");
    assert_ne!(shop.allocate(&items("p", 1)).await.unwrap()[0].id, claims[0].unit);
    shop.finish().await;
}

#[tokio::test]
async fn a_write_that_comes_after_its_claim_was_given_back_does_not_sell_twice() {
    let shop = impatient().await;
    let late = claim(&shop, &items("slow", 1)).await;
    reconcile(&shop).await;
    shop.app().mongo().voucher_units.assign(&assignments(&late)).await.unwrap();
    // The pool still has it. Whoever takes it from there finds out in the database, and gets the other one.
    let given = shop.allocate(&items("quick", 1)).await.unwrap();
    assert_ne!(given[0].id, late[0].unit);
    assert_eq!(shop.allocate(&items("third", 1)).await.unwrap_err().code(), Code::VouchersShort);
    shop.assert_placed().await;
    shop.finish().await;
}

#[tokio::test]
async fn whatever_was_written_and_not_placed_is_placed() {
    let shop = impatient().await;
    let units = &shop.app().mongo().voucher_units;
    shop.allocate(&items("o", 1)).await.unwrap();
    // Released, tagged: each time the process dies before the pools are told.
    units.release(&items("o", 1)).await.unwrap();
    let which = Which {
        product: shop.product.id,
        denomination: worth(2_500),
        client: None,
        vendors: None,
        expires_from: days(30),
    };
    assert_eq!(units.retag(&which, Some(shop.client.id), 1).await.unwrap().len(), 1);
    assert!(!shop.app().vouchers().check().await.unwrap().misplaced.is_empty());
    shop.app().vouchers().reconcile().await.unwrap();
    shop.assert_placed().await;
    assert!(units.unplaced(10).await.unwrap().is_empty());
    let given = shop.allocate(&items("p", 2)).await.unwrap();
    assert_eq!(given.iter().filter(|unit| unit.client.is_some()).count(), 1);
    shop.finish().await;
}

#[tokio::test]
async fn a_live_store_that_has_lost_everything_is_filled_from_the_database() {
    let shop = impatient().await;
    let before = shop.allocate(&items("o", 1)).await.unwrap();
    let pattern = format!("{}*", shop.app.config().live.key_prefix);
    let keys: Vec<String> = command(shop.app.config(), &["KEYS", &pattern]).await;
    for key in keys.iter().filter(|key| key.contains("pool:") || key.contains("inventory:")) {
        let _: u64 = command(shop.app.config(), &["DEL", key]).await;
    }
    // A miss is looked up before it is believed.
    let given = shop.allocate(&items("p", 1)).await.unwrap();
    assert_ne!(given[0].id, before[0].id);
    shop.app().vouchers().pump_all().await.unwrap();
    shop.assert_placed().await;
    shop.app().vouchers().release(&items("p", 1)).await.unwrap();
    assert_eq!(shop.allocate(&items("q", 1)).await.unwrap()[0].id, given[0].id);
    shop.finish().await;
}

#[tokio::test]
async fn a_lost_answer_claims_nothing_twice() {
    let redis = harness::own_redis().await;
    let proxy = Proxy::to(redis.port()).await;
    let mut config = without_reconciler(harness::config().await);
    config.live.url = proxy.url().into();
    let shop = Shop::with(config).await;
    shop.stock(3).await;
    proxy.drop_answers("lost-1-0000", 1);
    shop.allocate(&items("lost", 2)).await.unwrap_err();
    assert_eq!(shop.app().live().open_claims(shop.product.id).await.unwrap().0.len(), 2);
    assert_eq!(shop.allocate(&items("lost", 2)).await.unwrap().len(), 2);
    assert_eq!(shop.allocate(&items("other", 1)).await.unwrap().len(), 1);
    shop.assert_placed().await;
    shop.finish().await;
}

#[tokio::test]
async fn an_order_whose_process_died_is_finished_and_a_cancelled_one_keeps_nothing() {
    let shop = impatient().await;
    let (orders, units) = (&shop.app().mongo().voucher_orders, &shop.app().mongo().voucher_units);
    let order = |reference: &str| VoucherOrder {
        sold: None,
        id: VoucherOrderId::from_bytes(new_id()),
        client: shop.client.id,
        reference: reference.to_owned(),
        lines: vec![shop.line(1)],
        status: VoucherOrderStatus::Pending,
        reason: None,
        round: 1,
        created_at: days(0),
    };
    let (pending, cancelled) = (order("a"), order("b"));
    assert!(orders.create(&pending, days(-1)).await.unwrap());
    assert!(orders.create(&cancelled, days(-1)).await.unwrap());
    // Cancelled while one of its writes was on its way.
    orders
        .advance(&cancelled, &[VoucherOrderStatus::Pending], VoucherOrderStatus::Cancelled, None, Some(days(-1)))
        .await
        .unwrap();
    let late = claim(&shop, &cancelled.all_items()).await;
    units.assign(&assignments(&late)).await.unwrap();
    assert!(!shop.app().vouchers().check().await.unwrap().ownerless.is_empty());
    reconcile(&shop).await;
    shop.assert_sound().await;
    let finished = shop.app().vouchers().voucher_order(pending.id).await.unwrap();
    assert_eq!(finished.status, VoucherOrderStatus::Allocated);
    assert!(units.of_items(&cancelled.all_items()).await.unwrap().is_empty());
    assert_eq!(units.by_ids(&[late[0].unit]).await.unwrap()[0].status, UnitStatus::Available);
    shop.finish().await;
}

#[tokio::test]
async fn a_reset_whose_process_died_at_once_leaves_no_unit_with_the_items_of_before() {
    let shop = impatient().await;
    let orders = &shop.app().mongo().voucher_orders;
    let made = shop.app().vouchers().order(&shop.client, "a", vec![shop.line(1)]).await.unwrap();
    let (from, to) = ([VoucherOrderStatus::Allocated], VoucherOrderStatus::Pending);
    assert!(orders.advance(&made, &from, to, None, Some(days(-1))).await.unwrap());
    shop.app().vouchers().reconcile().await.unwrap();
    let finished = shop.app().vouchers().voucher_order(made.id).await.unwrap();
    assert_eq!((finished.status, finished.round), (VoucherOrderStatus::Allocated, 2));
    shop.assert_sound().await;
    assert_eq!(shop.app().vouchers().check().await.unwrap().allocated, 1);
    shop.finish().await;
}

#[tokio::test]
async fn processes_killed_while_they_allocate_lose_no_code_and_give_none_twice() {
    let mut config = harness::config().await;
    config.vouchers.claim_ttl_ms = config.mongo.deadline_ms;
    let shop = Shop::with(config).await;
    shop.stock(120).await;
    let member = shop.app.buyer().await;
    let mut client = shop.client.clone();
    client.members = vec![member.id.parse().unwrap()];
    shop.app().vouchers().change_client(client).await.unwrap();
    let mut placed = Vec::new();
    for round in 0..3 {
        let process = OrbitProcess::start(shop.app.config()).await;
        let there = member.at(process.url.clone());
        let asking = async {
            let mut known = Vec::new();
            for number in 0..1_000 {
                let body = serde_json::json!({ "reference": format!("r{round}-{number}"), "items": [
                    { "productId": shop.product.id.to_string(), "denomination": "25.00", "quantity": 3 } ] });
                match there.try_post_json("/api/client/voucher-orders", body).await {
                    Some(reply) if reply.status == 201 => known.push(reply.body["id"].as_str().unwrap().to_owned()),
                    _ => break,
                }
            }
            known
        };
        let killing = async {
            // In the middle of its work: after it has finished a few.
            harness::eventually("some orders are there", || async {
                let check = shop.app().vouchers().check().await.unwrap();
                check.allocated >= (round + 1) * 15
            })
            .await;
            process.kill().await;
        };
        let (known, ()) = tokio::join!(asking, killing);
        placed.extend(known);
    }
    harness::eventually("everything is settled", || async {
        let check = shop.app().vouchers().check().await.unwrap();
        check.holds() && check.claims == 0 && check.units + check.allocated == 120
    })
    .await;
    for id in placed {
        let order = shop.app().vouchers().voucher_order(id.parse().unwrap()).await.unwrap();
        assert_eq!(order.status, VoucherOrderStatus::Allocated, "a client was told of this order");
    }
    shop.finish().await;
}
