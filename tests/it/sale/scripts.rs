//! The Lua scripts, run on a real Redis: what they refuse by themselves, and how they and the service fit together.

use std::path::Path;

use orbit::domain::event::SalePhase;
use orbit::domain::ids::{EventId, ProductId, UserId};
use orbit::domain::page::Page;
use orbit::domain::sale::{SaleAction, SaleStatus};
use orbit::store::live::keys::Keys;
use orbit::store::live::scripts::SOURCES;
use orbit::store::live::{OpeningToken, Projected, Projecting, Removed, Transitioned};
use orbit::store::mongo::new_id;
use orbit::supervisor::RedisServer;

use super::{calm_app, contents, event_id, live_store, phase, prepared, product_id, reserve_directly, stock};
use crate::harness::{self, LiveSale, TestApp};

fn source(name: &str) -> &'static str {
    SOURCES.iter().find(|(script, _)| *script == name).unwrap().1
}

fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Runs the text of `reserve` past everything that the service checks before.
async fn reserve(app: &TestApp, sale: &LiveSale, quantity: &str) -> Result<Vec<String>, redis::RedisError> {
    let (event, product, user) = (event_id(sale), product_id(sale, 0), UserId::from_bytes(new_id()));
    let keys = app.app().live().keys();
    let mut call = redis::cmd("EVAL");
    call.arg(source("reserve")).arg(7);
    call.arg(keys.status(event)).arg(keys.product(product, event)).arg(keys.booking(user, product, event));
    call.arg(keys.winners(event, product)).arg(keys.bookings(event)).arg(keys.product_keys(event));
    call.arg(keys.journal(event));
    call.arg(user.to_string()).arg(product.to_string()).arg(event.to_string());
    call.arg(uuid::Uuid::now_v7().to_string()).arg(quantity).arg("");
    call.query_async(&mut live_store(app.config()).await).await
}

#[tokio::test]
async fn reserve_itself_refuses_a_quantity_that_is_no_small_positive_whole_number() {
    let app = calm_app().await;
    let sale = app.live_sale(1, 5).await;
    let before = contents(&app, &sale).await;
    for quantity in ["0", "-1", "-100", "1.5", "1e3", "0x1", "", " 1", "1 ", "+1", "1000000000000000000", "nan", "inf"]
    {
        let answer = reserve(&app, &sale, quantity).await.unwrap();
        assert_eq!(answer[0], "DAMAGED", "{quantity:?}: {answer:?}");
        assert_eq!(contents(&app, &sale).await, before, "{quantity:?}");
    }
    assert_eq!(reserve(&app, &sale, "2").await.unwrap()[0], "LIMIT_REACHED");
    assert_eq!(reserve(&app, &sale, "1").await.unwrap()[0], "RESERVED");
    assert_eq!(stock(&app, &sale, 0).await, 4);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}

#[test]
fn every_lua_file_is_in_the_table_as_it_is_on_disk() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".lua"))
        .collect();
    files.sort_unstable();
    let mut table: Vec<String> = SOURCES.iter().map(|(name, _)| format!("{name}.lua")).collect();
    table.sort_unstable();
    assert_eq!(files, table);
    for (name, text) in SOURCES {
        assert_eq!(text, file(&format!("lua/{name}.lua")), "{name}");
    }
}

/// The tags that a script's header lists after "Returns".
fn documented_tags(text: &str) -> Vec<&str> {
    let header = text.lines().take_while(|line| line.starts_with("--")).skip_while(|line| !line.contains("Returns"));
    let tags = header.skip(1).filter_map(|line| line.strip_prefix("--   ")).filter_map(|line| line.split(' ').next());
    tags.filter(|tag| !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')).collect()
}

/// The tags that a script's code returns.
fn returned_tags(text: &str) -> Vec<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let tags = code.filter_map(|line| line.split_once("return {'")).filter_map(|(_, rest)| rest.split('\'').next());
    tags.collect()
}

#[test]
fn every_tag_that_a_script_can_answer_is_documented_and_decoded() {
    for (name, text) in SOURCES {
        let documented = documented_tags(text);
        assert!(!documented.is_empty(), "{name} documents no tag");
        let decoder = file(&format!("src/store/live/{name}.rs"));
        for tag in &documented {
            assert!(decoder.contains(&format!("\"{tag}\" =>")), "{name}.rs does not decode {tag}");
            assert!(returned_tags(text).contains(tag), "{name}.lua never returns {tag}");
        }
        for tag in returned_tags(text) {
            assert!(documented.contains(&tag), "{name}.lua returns {tag}, which its header does not list");
        }
    }
}

#[tokio::test]
async fn all_keys_of_an_event_share_a_slot_and_events_are_spread() {
    let options = harness::redis_options(orbit::supervisor::AppendFsync::Off);
    let redis = RedisServer::start_with_arguments(options, &["--cluster-enabled", "yes"]).await.unwrap();
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys = Keys::new("a-prefix:");
    let mut slots = Vec::new();
    for _ in 0..20 {
        let event = EventId::from_bytes(new_id());
        let (product, user) = (ProductId::from_bytes(new_id()), UserId::from_bytes(new_id()));
        let all = [
            keys.status(event),
            keys.opening(event),
            keys.product(product, event),
            keys.product_meta(product, event),
            keys.booking(user, product, event),
            keys.winners(event, product),
            keys.bookings(event),
            keys.product_keys(event),
            keys.catalogue(event),
            keys.journal(event),
            keys.held(event),
        ];
        let mut of_event = Vec::new();
        for key in all {
            let slot: u16 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query_async(&mut connection).await.unwrap();
            of_event.push(slot);
        }
        of_event.dedup();
        assert_eq!(of_event.len(), 1, "{of_event:?}");
        slots.extend(of_event);
    }
    slots.sort_unstable();
    slots.dedup();
    assert!(slots.len() > 10, "{slots:?}");
}

#[tokio::test]
async fn project_writes_nothing_under_a_token_that_is_not_good_or_into_a_sale_that_has_started() {
    let app = calm_app().await;
    let sale = prepared(&app, 2, 5).await;
    let (live, event) = (app.app().live(), event_id(&sale));
    let products = app.app().mongo().products.of_event(event, Page { limit: 10, after: None }).await.unwrap().items;
    let (token, other) = (OpeningToken::random(), OpeningToken::random());

    assert_eq!(
        live.project(event, &products, &Projecting::default(), &token, 5_000).await.unwrap(),
        Projected::TokenLost
    );
    assert!(contents(&app, &sale).await.is_empty());

    assert!(live.take_opening(event, &other, 20_000).await.unwrap());
    assert!(!live.take_opening(event, &token, 20_000).await.unwrap(), "there is one opener");
    let before = contents(&app, &sale).await;
    assert_eq!(
        live.project(event, &products, &Projecting::default(), &token, 5_000).await.unwrap(),
        Projected::TokenLost
    );
    assert_eq!(contents(&app, &sale).await, before);
    assert_eq!(
        live.transition(event, SaleAction::Live, Some(&token)).await.unwrap(),
        Transitioned::TokenLost(SaleStatus::NotStarted)
    );
    assert_eq!(
        live.project(event, &products, &Projecting::default(), &other, 5_000).await.unwrap(),
        Projected::Written(2)
    );
    // Twice, because its first answer was lost, changes nothing.
    let before = contents(&app, &sale).await;
    assert_eq!(
        live.project(event, &products, &Projecting::default(), &other, 5_000).await.unwrap(),
        Projected::Written(2)
    );
    assert_eq!(contents(&app, &sale).await, before);
    live.release_opening(event, &token).await.unwrap();
    assert!(live.opening_taken(event).await.unwrap(), "only its holder can give the token back");
    live.release_opening(event, &other).await.unwrap();

    sale.control("Live").await.expect(200);
    reserve_directly(&app, &sale, 2).await;
    assert!(live.take_opening(event, &other, 20_000).await.unwrap());
    for (action, status) in [
        ("Pause", SaleStatus::Live),
        ("Resume", SaleStatus::Paused),
        ("End", SaleStatus::Live),
        ("End", SaleStatus::Stopped),
    ] {
        let before = contents(&app, &sale).await;
        assert_eq!(
            live.project(event, &products, &Projecting::default(), &other, 5_000).await.unwrap(),
            Projected::Started(status)
        );
        assert_eq!(contents(&app, &sale).await, before, "{status}");
        sale.control(action).await.expect(200);
    }
    assert_eq!(phase(app.app(), &sale).await, SalePhase::Settled);
    app.finish().await;
}

#[tokio::test]
async fn remove_removes_nothing_in_another_status_or_without_the_token() {
    let app = calm_app().await;
    let sale = prepared(&app, 1, 5).await;
    let (live, event) = (app.app().live(), event_id(&sale));
    let keys = [live.keys().product(product_id(&sale, 0), event)];
    let (token, other) = (OpeningToken::random(), OpeningToken::random());
    sale.control("Live").await.expect(200);
    reserve_directly(&app, &sale, 2).await;
    let booked: Vec<String> = live.booking_keys_page(event, 0, 100).await.unwrap().1;
    assert_eq!(booked.len(), 2);
    let before = contents(&app, &sale).await;

    let refused = Removed::Refused(SaleStatus::Live);
    assert_eq!(live.remove_bookings(event, &booked, None).await.unwrap(), refused);
    assert_eq!(live.remove_sale_keys(event, &keys, None).await.unwrap(), refused);
    assert_eq!(live.remove_sale_keys(event, &keys, Some(&token)).await.unwrap(), refused);
    assert_eq!(contents(&app, &sale).await, before);
    sale.control("Pause").await.expect(200);
    let before = contents(&app, &sale).await;
    assert_eq!(live.remove_bookings(event, &booked, None).await.unwrap(), Removed::Refused(SaleStatus::Paused));
    assert_eq!(contents(&app, &sale).await, before);
    sale.assert_sound(app.app()).await;

    let sale = prepared(&app, 1, 5).await;
    let event = event_id(&sale);
    let products = app.app().mongo().products.of_event(event, Page { limit: 10, after: None }).await.unwrap().items;
    assert!(live.take_opening(event, &token, 20_000).await.unwrap());
    live.project(event, &products, &Projecting::default(), &token, 20_000).await.unwrap();
    let keys = [live.keys().product(product_id(&sale, 0), event)];
    let before = contents(&app, &sale).await;
    assert_eq!(live.remove_sale_keys(event, &keys, Some(&other)).await.unwrap(), Removed::TokenLost);
    assert_eq!(live.remove_sale_keys(event, &keys, None).await.unwrap(), Removed::Refused(SaleStatus::NotStarted));
    assert_eq!(contents(&app, &sale).await, before);
    assert_eq!(live.remove_sale_keys(event, &keys, Some(&token)).await.unwrap(), Removed::Keys(1));
    assert_eq!(live.remove_sale_keys(event, &keys, Some(&token)).await.unwrap(), Removed::Keys(0), "again is safe");
    live.release_opening(event, &token).await.unwrap();
    app.finish().await;
}
