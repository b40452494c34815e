//! Vouchers from the command line: `orbit voucher rekey` and `orbit check --vouchers`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orbit::config::ExposeSecret;
use orbit::domain::voucher::UnitId;

use super::{Shop, items, without_reconciler};
use crate::harness;
use crate::harness::process::{environment, orbit, text};
use crate::sale::command;

fn key(name: &str, byte: u8) -> String {
    format!("{name}:{}", STANDARD.encode([byte; 32]))
}

#[tokio::test]
async fn rekeying_seals_everything_anew_and_the_old_key_can_go() {
    let mut config = without_reconciler(harness::config().await);
    config.vouchers.keys = vec![key("old", 1).into()];
    let shop = Shop::with(config).await;
    shop.stock(3).await;
    let keys = format!("[\"{}\", \"{}\"]", key("new", 2), key("old", 1));
    let run = || {
        let mut command = orbit();
        command.args(["voucher", "rekey"]).envs(environment(shop.app.config(), 1)).env("ORBIT__VOUCHERS__KEYS", &keys);
        command
    };
    let first = run().output().await.unwrap();
    assert!(first.status.success() && text(&first).contains("3 of 3 units were sealed anew"), "{}", text(&first));
    let again = run().output().await.unwrap();
    assert!(text(&again).contains("0 of 3 units"), "{}", text(&again));
    assert!(!text(&first).contains("CODE-"), "{}", text(&first));

    let mut config = shop.app.config().vouchers.clone();
    config.keys = vec![key("new", 2).into()];
    let ring = orbit::vouchers::crypto::Keyring::new(&config, &shop.app.config().accounts.data_key).unwrap();
    for (id, sealed) in shop.app().mongo().voucher_units.secrets_page(None, 10).await.unwrap() {
        let opened = ring.open(id, &sealed).unwrap();
        assert_eq!(opened.code.unwrap().expose_secret(), format!("CODE-{}", id.number() - 1));
    }
    assert!(shop.app().mongo().voucher_units.secrets(&[UnitId::new(9)]).await.unwrap().is_empty());
    shop.finish().await;
}

#[tokio::test]
async fn the_check_says_what_is_wrong_and_mends_what_has_one_right_answer() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    let check = |arguments: &'static [&'static str]| {
        let mut command = orbit();
        command.args(["check", "--vouchers"]).args(arguments).envs(environment(shop.app.config(), 1));
        async move { command.output().await.unwrap() }
    };
    let sound = check(&[]).await;
    assert!(sound.status.success() && text(&sound).contains("3 units, 3 in pools"), "{}", text(&sound));

    let pool =
        format!("{}pool:{{{}}}:25.00:{}", shop.app.config().live.key_prefix, shop.product.id, shop.product.vendors[0]);
    let _: u64 = command(shop.app.config(), &["ZREM", &pool, "inv-000000000002"]).await;
    let wrong = check(&[]).await;
    assert!(!wrong.status.success() && text(&wrong).contains("unit 2 is not in its pool"), "{}", text(&wrong));
    let object: serde_json::Value = serde_json::from_slice(&check(&["--json"]).await.stdout).unwrap();
    assert_eq!((&object["ok"], &object["units"], &object["pooled"]), (&false.into(), &3.into(), &2.into()));
    let mended = check(&["--repair"]).await;
    assert!(mended.status.success(), "{}", text(&mended));

    // A unit of an order that nobody made: that is for a person.
    shop.allocate(&items("0123456789abcdef01234567", 1)).await.unwrap();
    let ownerless = check(&["--repair"]).await;
    assert!(!ownerless.status.success() && text(&ownerless).contains("which no order wants"), "{}", text(&ownerless));
    shop.finish().await;
}
