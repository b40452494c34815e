//! Where units are: tags, blocks, duplicates, and what the pump mends.

use orbit::domain::voucher::UnitStatus;
use orbit::error::Code;
use serde_json::json;

use super::{Shop, days, items, worth};
use crate::sale::command;

#[tokio::test]
async fn the_same_codes_again_are_duplicates_and_change_nothing() {
    let shop = Shop::open().await;
    let units = [shop.unit(0, 60, "A"), shop.unit(0, 60, "B")];
    assert_eq!(shop.app().vouchers().add(&units).await.unwrap().added, 2);
    let again = shop.app().vouchers().add(&[units[1].clone(), shop.unit(0, 60, "C"), units[0].clone()]).await.unwrap();
    assert_eq!((again.added, again.duplicates), (1, vec![0, 2]));
    shop.assert_placed().await;
    assert_eq!(shop.app().vouchers().check().await.unwrap().pooled, 3);
    shop.finish().await;
}

#[tokio::test]
async fn tagging_keeps_what_expires_first_and_untagging_lets_go_of_what_expires_last() {
    let shop = Shop::open().await;
    let units = [(70, "A"), (40, "B"), (50, "C"), (60, "D")].map(|(in_days, code)| shop.unit(0, in_days, code));
    shop.app().vouchers().add(&units).await.unwrap();
    let vouchers = shop.app().vouchers();
    assert_eq!(vouchers.tag(shop.product.id, worth(2_500), shop.client.id, 3).await.unwrap(), 3);
    assert_eq!(vouchers.untag(shop.product.id, worth(2_500), shop.client.id, 1).await.unwrap(), 1);
    shop.assert_placed().await;
    let given = shop.allocate(&items("o", 4)).await.unwrap();
    let kept: Vec<bool> = given.iter().map(|unit| unit.client.is_some()).collect();
    assert_eq!(kept, [true, true, false, false]);
    assert_eq!(vouchers.tag(shop.product.id, worth(2_500), shop.client.id, 10).await.unwrap(), 0, "nothing is left");
    shop.finish().await;
}

#[tokio::test]
async fn a_blocked_unit_is_neither_sold_nor_lost() {
    let shop = Shop::open().await;
    shop.stock(2).await;
    let vouchers = shop.app().vouchers();
    let given = shop.allocate(&items("o", 1)).await.unwrap().remove(0);
    let free = shop.app().mongo().voucher_units.page(shop.product.id, None, 10).await.unwrap().remove(0);
    vouchers.block(free.id).await.unwrap();
    vouchers.block(given.id).await.unwrap();
    assert_eq!(vouchers.block(given.id).await.unwrap_err().code(), Code::VoucherState);
    assert_eq!(shop.allocate(&items("p", 1)).await.unwrap_err().code(), Code::VouchersShort);
    shop.assert_placed().await;
    assert_eq!(vouchers.unblock(free.id).await.unwrap().status, UnitStatus::Available);
    assert_eq!(vouchers.unblock(given.id).await.unwrap().status, UnitStatus::Allocated);
    assert_eq!(vouchers.unblock(given.id).await.unwrap_err().code(), Code::VoucherState);
    assert_eq!(shop.allocate(&items("p", 1)).await.unwrap()[0].id, free.id);
    shop.finish().await;
}

#[tokio::test]
async fn a_corrected_expiry_counts_from_then_on() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    let vouchers = shop.app().vouchers();
    let units = shop.app().mongo().voucher_units.page(shop.product.id, None, 10).await.unwrap();
    let admin = shop.app.admin().await;
    let change = |number: usize, in_days: i64| {
        let path = format!("/api/admin/vouchers/units/{}/expiry", units[number].id);
        let admin = admin.clone();
        async move { admin.put_json(&path, json!({ "expiresAt": days(in_days) })).await }
    };
    // The last one is the first to go now, and the first one is not sold any more.
    change(2, 50).await.expect(200);
    change(0, 5).await.expect(200);
    shop.assert_placed().await;
    let given = shop.allocate(&items("o", 2)).await.unwrap();
    assert_eq!([given[0].id, given[1].id], [units[2].id, units[1].id]);
    assert_eq!(shop.allocate(&items("p", 1)).await.unwrap_err().code(), Code::VouchersShort);
    // One that is given keeps its item, and one that was seen keeps its expiry.
    assert_eq!(change(1, 80).await.expect(200)["status"], "ALLOCATED");
    shop.app()
        .mongo()
        .voucher_units
        .advance(units[1].id, given[1].item.as_deref(), UnitStatus::Delivered)
        .await
        .unwrap();
    change(1, 90).await.refused(409, "voucher_state");
    vouchers.release(&items("o", 2)).await.unwrap();
    shop.assert_placed().await;
    shop.finish().await;
}

#[tokio::test]
async fn keys_have_the_inherited_formats() {
    let shop = Shop::open().await;
    let mut kept = shop.unit(1, 60, "KEPT");
    kept.client = Some(shop.client.id);
    shop.app().vouchers().add(&[shop.unit(0, 60, "FREE"), kept]).await.unwrap();
    let (prefix, product) = (&shop.app.config().live.key_prefix, shop.product.id);
    let (acme, bolt, client) = (shop.product.vendors[0], shop.product.vendors[1], shop.client.id);
    for (key, member) in [
        (format!("{prefix}pool:{{{product}}}:25.00:{acme}"), "inv-000000000001"),
        (format!("{prefix}inventory:reserved:{client}:{{{product}}}:25.00:{bolt}"), "inv-000000000002"),
    ] {
        let members: Vec<String> = command(shop.app.config(), &["ZRANGE", &key, "0", "-1"]).await;
        assert_eq!(members, [member], "{key}");
    }
    let meta = format!("{prefix}inventory:{{{product}}}:inv-000000000002");
    let fields: std::collections::HashMap<String, String> = command(shop.app.config(), &["HGETALL", &meta]).await;
    assert_eq!((&fields["vendor"], &fields["client"]), (&bolt.to_string(), &client.to_string()));
    assert_eq!(fields["denomination"], "25.00");
    shop.finish().await;
}

#[tokio::test]
async fn the_pump_mends_whatever_was_done_to_the_pools() {
    let shop = Shop::open().await;
    shop.stock(5).await;
    let (config, product) = (shop.app.config(), shop.product.id);
    let pool = format!("{}pool:{{{product}}}:25.00:{}", config.live.key_prefix, shop.product.vendors[0]);
    let retired = format!("{}pool:{{{product}}}:10.00:{}", config.live.key_prefix, shop.product.vendors[0]);
    let pools = format!("{}inventory:{{{product}}}:pools", config.live.key_prefix);
    let _: u64 = command(config, &["ZREM", &pool, "inv-000000000001"]).await;
    let _: u64 = command(config, &["ZADD", &pool, "1", "inv-000000000002"]).await;
    let _: u64 = command(config, &["ZADD", &pool, "5", "inv-000000009999", "6", "rubbish"]).await;
    let _: u64 = command(config, &["ZADD", &retired, "7", "inv-000000008888"]).await;
    let _: u64 = command(config, &["SADD", &pools, &retired]).await;
    let check = shop.app().vouchers().check().await.unwrap();
    assert!(!check.misplaced.is_empty(), "{check:?}");
    let pumped = shop.app().vouchers().pump(product).await.unwrap();
    assert_eq!((pumped.units, pumped.moved, pumped.removed), (5, 2, 3));
    shop.assert_placed().await;
    let left: bool = command(config, &["EXISTS", &retired]).await;
    assert!(!left, "a retired pool is gone");
    assert_eq!(shop.app().vouchers().pump(product).await.unwrap().drift(), 0);
    shop.finish().await;
}
