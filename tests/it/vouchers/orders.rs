//! Orders of vouchers, and who sees the codes.

use orbit::domain::voucher::{UnitStatus, VoucherOrder, VoucherOrderStatus};
use orbit::error::Code;
use orbit::vouchers::ShownCode;
use secrecy::ExposeSecret;

use super::{Shop, items, worth};

fn codes(shown: &[ShownCode]) -> Vec<String> {
    shown.iter().map(|one| one.secrets.code.as_ref().unwrap().expose_secret().to_owned()).collect()
}

async fn order(shop: &Shop, reference: &str, quantity: u32) -> orbit::error::Result<VoucherOrder> {
    shop.app().vouchers().order(&shop.client, reference, vec![shop.line(quantity)]).await
}

#[tokio::test]
async fn a_code_is_shown_to_one_order_and_is_the_same_every_time() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    let (one, two) = (order(&shop, "a", 2).await.unwrap(), order(&shop, "b", 1).await.unwrap());
    assert_eq!(one.status, VoucherOrderStatus::Allocated);
    let vouchers = shop.app().vouchers();
    let first = codes(&vouchers.show_codes(&one, shop.client.members[0]).await.unwrap());
    let again = vouchers.voucher_order(one.id).await.unwrap();
    assert_eq!(again.status, VoucherOrderStatus::Delivered);
    assert_eq!(codes(&vouchers.show_codes(&again, shop.client.members[0]).await.unwrap()), first);
    let other = codes(&vouchers.show_codes(&two, shop.client.members[0]).await.unwrap());
    assert_eq!((first, other), (vec!["CODE-0".to_owned(), "CODE-1".to_owned()], vec!["CODE-2".to_owned()]));
    shop.assert_sound().await;
    shop.finish().await;
}

#[tokio::test]
async fn the_same_reference_is_the_same_order_and_another_content_is_refused() {
    let shop = Shop::open().await;
    shop.stock(5).await;
    let first = order(&shop, "a", 2).await.unwrap();
    assert_eq!(order(&shop, "a", 2).await.unwrap(), first);
    assert_eq!(order(&shop, "a", 1).await.unwrap_err().code(), Code::ReferenceReused);
    assert_eq!(shop.app().vouchers().check().await.unwrap().allocated, 2);
    shop.finish().await;
}

#[tokio::test]
async fn an_order_that_cannot_be_filled_has_nothing() {
    let shop = Shop::open().await;
    shop.stock(2).await;
    let refusal = order(&shop, "a", 3).await.unwrap_err();
    assert_eq!(refusal.to_string(), "3 vouchers are needed and 2 are available");
    let again = order(&shop, "a", 3).await.unwrap_err();
    assert_eq!(again.code(), Code::VoucherState, "{again}");
    assert!(again.to_string().ends_with("3 vouchers are needed and 2 are available"), "{again}");
    let product = shop.product.id;
    let lines =
        |quantity, minor| vec![orbit::domain::voucher::VoucherLine { product, denomination: worth(minor), quantity }];
    for bad in [vec![], lines(0, 2_500), lines(501, 2_500), lines(1, 999), [lines(1, 2_500), lines(2, 2_500)].concat()]
    {
        let refusal = shop.app().vouchers().order(&shop.client, "bad", bad.clone()).await.unwrap_err();
        assert_eq!(refusal.code(), Code::ValidationFailed, "{bad:?}");
    }
    shop.assert_sound().await;
    assert_eq!(shop.app().vouchers().check().await.unwrap().pooled, 2);
    shop.finish().await;
}

#[tokio::test]
async fn cancelling_gives_back_what_nobody_saw_and_revokes_what_was_shown() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    let vouchers = shop.app().vouchers();
    let (seen, unseen) = (order(&shop, "seen", 1).await.unwrap(), order(&shop, "unseen", 2).await.unwrap());
    vouchers.show_codes(&seen, shop.client.members[0]).await.unwrap();
    for _ in 0..2 {
        for id in [seen.id, unseen.id] {
            let now = vouchers.voucher_order(id).await.unwrap();
            assert_eq!(vouchers.cancel(&now, "refunded").await.unwrap().status, VoucherOrderStatus::Cancelled);
        }
    }
    let revoked = shop.app().mongo().voucher_units.of_items(&seen.all_items()).await.unwrap();
    assert_eq!(revoked[0].status, UnitStatus::Revoked);
    let now = vouchers.voucher_order(unseen.id).await.unwrap();
    assert_eq!(vouchers.show_codes(&now, shop.client.members[0]).await.unwrap_err().code(), Code::VoucherState);
    shop.assert_sound().await;
    assert_eq!(
        order(&shop, "next", 3).await.unwrap_err().code(),
        Code::VouchersShort,
        "the revoked one is never sold again"
    );
    assert_eq!(order(&shop, "last", 2).await.unwrap().status, VoucherOrderStatus::Allocated);
    shop.finish().await;
}

#[tokio::test]
async fn a_reset_gives_other_units_unless_somebody_has_seen_the_codes() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    let vouchers = shop.app().vouchers();
    let first = order(&shop, "a", 2).await.unwrap();
    let reset = vouchers.reset(first.id).await.unwrap();
    assert_eq!((reset.status, reset.round), (VoucherOrderStatus::Allocated, 2));
    shop.assert_sound().await;
    vouchers.show_codes(&reset, shop.client.members[0]).await.unwrap();
    assert_eq!(vouchers.reset(first.id).await.unwrap_err().code(), Code::VoucherState);
    vouchers.complete(&vouchers.voucher_order(first.id).await.unwrap()).await.unwrap();
    let units = shop.app().mongo().voucher_units.of_items(&reset.all_items()).await.unwrap();
    assert!(units.iter().all(|unit| unit.status == UnitStatus::Completed));
    shop.assert_sound().await;
    shop.finish().await;
}

#[tokio::test]
async fn showing_and_cancelling_at_once_never_resell_a_code_that_was_seen() {
    let shop = Shop::open().await;
    let units: Vec<_> = (0..40).map(|number| shop.unit(0, 60, &format!("RACE-{number}"))).collect();
    shop.app().vouchers().add(&units).await.unwrap();
    let vouchers = shop.app().vouchers();
    let mut seen = std::collections::HashSet::new();
    for round in 0..40 {
        let Ok(made) = order(&shop, &format!("r{round}"), 1).await else { break };
        let (shown, cancelled) =
            tokio::join!(vouchers.show_codes(&made, shop.client.members[0]), vouchers.cancel(&made, "changed my mind"));
        cancelled.unwrap();
        // What was shown between the two steps of the cancellation is taken back a little later.
        vouchers.release(&made.all_items()).await.unwrap();
        if let Ok(shown) = shown {
            for code in codes(&shown) {
                assert!(seen.insert(code), "a code was shown to two");
            }
        }
    }
    shop.assert_sound().await;
    assert!(shop.allocate(&items("x", 1)).await.is_ok() || seen.len() == 40);
    shop.finish().await;
}

#[tokio::test]
async fn a_voucher_that_is_blocked_when_its_order_is_cancelled_is_for_sale_when_it_is_unblocked() {
    let shop = Shop::open().await;
    shop.stock(1).await;
    let vouchers = shop.app().vouchers();
    let made = order(&shop, "a", 1).await.unwrap();
    let unit = shop.app().mongo().voucher_units.of_items(&made.all_items()).await.unwrap().remove(0);
    vouchers.block(unit.id).await.unwrap();
    assert_eq!(vouchers.show_codes(&made, shop.client.members[0]).await.unwrap_err().code(), Code::VoucherState);
    vouchers.cancel(&made, "not needed").await.unwrap();
    shop.assert_sound().await;
    assert_eq!(vouchers.unblock(unit.id).await.unwrap().status, UnitStatus::Available);
    assert_eq!(order(&shop, "b", 1).await.unwrap().status, VoucherOrderStatus::Allocated);
    shop.assert_sound().await;
    shop.finish().await;
}
