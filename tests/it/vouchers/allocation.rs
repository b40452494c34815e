//! Allocation: which unit goes to whom.

use std::collections::HashSet;

use futures::StreamExt;
use orbit::domain::ids::ClientId;
use orbit::domain::voucher::{UnitId, UnitStatus};
use orbit::error::Code;
use orbit::store::mongo::new_id;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{Shop, days, items, worth};

#[tokio::test]
async fn a_thousand_who_ask_at_once_for_five_hundred_codes_get_each_of_them_once() {
    let shop = Shop::open().await;
    shop.stock(500).await;
    let answers: Vec<_> = futures::stream::iter(0..1_000)
        .map(|number| {
            let (shop, items) = (&shop, items(&format!("o{number}"), 1));
            async move { shop.allocate(&items).await }
        })
        .buffer_unordered(100)
        .collect()
        .await;
    let (given, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let units: HashSet<UnitId> = given.into_iter().flat_map(Result::unwrap).map(|unit| unit.id).collect();
    assert_eq!((units.len(), refused.len()), (500, 500));
    for refusal in refused {
        assert_eq!(refusal.unwrap_err().code(), Code::VouchersShort);
    }
    shop.assert_placed().await;
    shop.finish().await;
}

#[tokio::test]
async fn the_unit_that_expires_first_goes_first_whichever_vendor_has_it() {
    let shop = Shop::open().await;
    let units = [(0, 300), (1, 100), (0, 200), (1, 50), (0, 100), (0, 2_000)];
    let units: Vec<_> =
        units.iter().enumerate().map(|(n, (vendor, in_days))| shop.unit(*vendor, *in_days, &format!("C{n}"))).collect();
    shop.app().vouchers().add(&units).await.unwrap();
    let given = shop.allocate(&items("o", 6)).await.unwrap();
    let expiries: Vec<_> = given.iter().map(|unit| unit.expires_at).collect();
    assert_eq!(expiries, [50, 100, 100, 200, 300, 2_000].map(days));
    assert!(given[1].id < given[2].id, "of two that expire together, the one that came first");
    shop.finish().await;
}

#[tokio::test]
async fn a_client_gets_what_is_kept_for_it_first_and_nobody_else_does() {
    let shop = Shop::open().await;
    let mut kept = shop.unit(0, 900, "KEPT");
    kept.client = Some(shop.client.id);
    shop.app().vouchers().add(&[shop.unit(0, 40, "SOON"), kept]).await.unwrap();
    let mut other = shop.wanted(&items("other", 2));
    other.client = Some(ClientId::from_bytes(new_id()));
    let refusal = shop.app().vouchers().allocate(&other).await.unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.to_string().as_str()),
        (Code::VouchersShort, "2 vouchers are needed and 1 are available")
    );
    let own = shop.allocate(&items("own", 2)).await.unwrap();
    assert_eq!(own.iter().map(|unit| unit.client).collect::<Vec<_>>(), [Some(shop.client.id), None]);
    shop.assert_placed().await;
    shop.finish().await;
}

#[tokio::test]
async fn a_refused_vendor_and_a_short_life_are_passed_over() {
    let shop = Shop::open().await;
    let units = [shop.unit(0, 35, "A"), shop.unit(1, 60, "B"), shop.unit(0, 90, "C"), shop.unit(0, 5, "D")];
    shop.app().vouchers().add(&units).await.unwrap();
    let mut wanted = shop.wanted(&items("o", 1));
    wanted.vendors = vec![shop.product.vendors[0]];
    wanted.expires_from = days(50);
    let given = shop.app().vouchers().allocate(&wanted).await.unwrap();
    assert_eq!(given[0].expires_at, days(90));
    // What expires within the configured thirty days is in no pool.
    let check = shop.app().vouchers().check().await.unwrap();
    assert_eq!((check.units, check.pooled), (2, 2), "{check:?}");
    shop.finish().await;
}

#[tokio::test]
async fn all_or_none_and_whoever_asks_again_gets_the_same() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    assert_eq!(shop.allocate(&items("big", 4)).await.unwrap_err().code(), Code::VouchersShort);
    let first = shop.allocate(&items("o", 3)).await.unwrap();
    let again = shop.allocate(&items("o", 3)).await.unwrap();
    assert_eq!(first, again);
    assert!(first.iter().all(|unit| unit.status == UnitStatus::Allocated));
    assert_eq!(shop.allocate(&items("late", 1)).await.unwrap_err().code(), Code::VouchersShort);
    shop.finish().await;
}

#[tokio::test]
async fn what_is_released_goes_back_once_to_the_pool_it_came_from_and_is_the_first_to_go_again() {
    let shop = Shop::open().await;
    let mut kept = shop.unit(1, 60, "KEPT");
    kept.client = Some(shop.client.id);
    shop.app().vouchers().add(&[kept, shop.unit(0, 40, "SOON"), shop.unit(0, 90, "LATER")]).await.unwrap();
    let before = shop.allocate(&items("o", 2)).await.unwrap();
    let vouchers = shop.app().vouchers();
    assert_eq!(vouchers.release(&items("o", 2)).await.unwrap().len(), 2);
    assert_eq!(vouchers.release(&items("o", 2)).await.unwrap().len(), 0, "twice is once");
    shop.assert_placed().await;
    let after = shop.allocate(&items("p", 2)).await.unwrap();
    let ids = |units: &[orbit::domain::voucher::Unit]| units.iter().map(|unit| unit.id).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&after));
    shop.finish().await;
}

/// Vendor, days to live, and whether it is kept for the client.
fn stock() -> impl Strategy<Value = Vec<(usize, i64, bool)>> {
    proptest::collection::vec((0..2_usize, 31..60_i64, any::<bool>()), 1..40)
}

#[tokio::test]
async fn units_come_in_the_order_of_a_plain_model() {
    let mut runner = TestRunner::deterministic();
    let shop = Shop::open().await;
    for round in 0..30 {
        let stock = stock().new_tree(&mut runner).unwrap().current();
        let count = (1..=stock.len()).new_tree(&mut runner).unwrap().current();
        let units: Vec<_> = stock
            .iter()
            .enumerate()
            .map(|(number, (vendor, in_days, kept))| {
                let mut unit = shop.unit(*vendor, *in_days, &format!("R{round}-{number}"));
                // Whole days apart, whatever the second at which they were made.
                unit.expires_at = days(0) + chrono::TimeDelta::days(*in_days);
                unit.client = kept.then_some(shop.client.id);
                unit
            })
            .collect();
        shop.app().vouchers().add(&units).await.unwrap();
        let given = shop.allocate(&items(&format!("r{round}"), count)).await.unwrap();

        let mut model: Vec<_> =
            stock.iter().enumerate().map(|(number, (_, in_days, kept))| (!kept, *in_days, number)).collect();
        model.sort_unstable();
        let expected: Vec<_> = model.iter().take(count).map(|(_, in_days, _)| *in_days).collect();
        let lives: Vec<_> =
            given.iter().map(|unit| (unit.expires_at - days(0)).num_hours()).map(|hours| (hours + 12) / 24).collect();
        assert_eq!(lives, expected, "round {round}: {stock:?}");
        for pair in
            given.windows(2).filter(|pair| pair[0].score() == pair[1].score() && pair[0].client == pair[1].client)
        {
            assert!(pair[0].id < pair[1].id, "round {round}");
        }
        // Leave nothing for the next round.
        let rest: Vec<_> = items(&format!("rest{round}"), stock.len() - count);
        if !rest.is_empty() {
            shop.allocate(&rest).await.unwrap();
        }
    }
    shop.assert_placed().await;
    shop.finish().await;
}

#[tokio::test]
async fn allocation_races_tags_imports_releases_and_the_pump() {
    let shop = Shop::open().await;
    shop.stock(200).await;
    let vouchers = shop.app().vouchers();
    let buyers = async {
        let asked = futures::stream::iter(0..300).map(|number| {
            let (shop, items) = (&shop, items(&format!("o{number}"), 1 + number % 3));
            async move {
                let given = shop.allocate(&items).await;
                if number % 4 == 0 {
                    shop.app().vouchers().release(&items).await.unwrap();
                    return Vec::new();
                }
                given.unwrap_or_default()
            }
        });
        asked.buffer_unordered(40).concat().await
    };
    let tags = async {
        for _ in 0..20 {
            vouchers.tag(shop.product.id, worth(2_500), shop.client.id, 7).await.unwrap();
            vouchers.untag(shop.product.id, worth(2_500), shop.client.id, 5).await.unwrap();
        }
    };
    let imports = async {
        for number in 0..20 {
            let units: Vec<_> = (0..5).map(|unit| shop.unit(1, 60, &format!("NEW-{number}-{unit}"))).collect();
            vouchers.add(&units).await.unwrap();
        }
    };
    let pumps = async {
        for _ in 0..10 {
            vouchers.pump_all().await.unwrap();
        }
    };
    let (given, (), (), ()) = tokio::join!(buyers, tags, imports, pumps);
    let distinct: HashSet<UnitId> = given.iter().map(|unit| unit.id).collect();
    assert_eq!(distinct.len(), given.len(), "a code was given to two");
    shop.assert_placed().await;
    let check = vouchers.check().await.unwrap();
    assert_eq!(check.units + check.allocated, 300, "{check:?}");
    assert_eq!(check.allocated as usize, given.len());
    shop.finish().await;
}
