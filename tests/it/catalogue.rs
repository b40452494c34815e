//! Events and products: what may be written, what buyers may see, lists in pages, and pictures that come and go.

use std::collections::HashSet;
use std::path::Path;

use bson::{DateTime, doc};
use chrono::{TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::accounts::collection;
use crate::harness::{Actor, Reply, TestApp, config, pictures};

type Text<'a> = (&'a str, &'a str);

/// These fields with one of them as given; `None` leaves it out.
fn with<'a>(fields: &[Text<'a>], name: &str, value: Option<&'a str>) -> Vec<Text<'a>> {
    let mut fields = fields.to_vec();
    match (fields.iter().position(|(field, _)| *field == name), value) {
        (Some(place), Some(value)) => fields[place].1 = value,
        (Some(place), None) => drop(fields.remove(place)),
        (None, _) => panic!("no field {name}"),
    }
    fields
}

#[track_caller]
fn names_the_field(reply: &Reply, field: &str) {
    reply.refused(400, "validation_failed");
    let named = reply.body["fields"].as_array().unwrap();
    assert!(named.iter().any(|broken| broken["field"] == field), "{}", reply.body);
}

#[tokio::test]
async fn each_field_of_a_new_event_has_its_rule() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let good = [("title", "A title"), ("description", "Some text"), ("scheduledAt", "2099-01-01T00:00:00Z")];
    let create = async |text: &[Text<'_>]| {
        let file = Some(("imageBanner", pictures::png(8, 8)));
        seller.form(Method::POST, "/api/seller/events/create", text, file).await
    };
    let (title, long, text) = ("\u{e9}".repeat(200), "a".repeat(201), "a".repeat(5001));
    for (field, value) in [
        ("title", None),
        ("title", Some("")),
        ("title", Some("   ")),
        ("title", Some(long.as_str())),
        ("description", None),
        ("description", Some("")),
        ("description", Some(text.as_str())),
        ("scheduledAt", None),
        ("scheduledAt", Some("")),
        ("scheduledAt", Some("tomorrow")),
        // No offset: whose midnight would it be?
        ("scheduledAt", Some("2099-01-01T00:00:00")),
        ("scheduledAt", Some("2099-01-01")),
        ("scheduledAt", Some("2099-02-30T00:00:00Z")),
        ("scheduledAt", Some("2020-01-01T00:00:00Z")),
        ("scheduledAt", Some("0001-01-01T00:00:00Z")),
    ] {
        names_the_field(&create(&with(&good, field, value)).await, field);
    }
    create(&with(&good, "title", Some(&title))).await.expect(201);
    let created = create(&with(&good, "scheduledAt", Some("2099-01-01T05:30:00+05:30"))).await.expect(201);
    let path = format!("/api/seller/events/get/{}", created["eventId"].as_str().unwrap());
    let shown = seller.get(&path).await.expect(200);
    let at = chrono::DateTime::parse_from_rfc3339(shown["event"]["scheduledAt"].as_str().unwrap()).unwrap();
    assert_eq!(at.to_utc().to_rfc3339(), "2099-01-01T00:00:00+00:00");
    app.finish().await;
}

#[tokio::test]
async fn a_change_of_an_event_obeys_the_same_rules_and_a_broken_one_changes_nothing() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("The first title").await;
    let path = format!("/api/seller/events/update/{event}");
    for (field, value) in [
        ("title", json!("")),
        ("title", json!("a".repeat(201))),
        ("description", json!("")),
        ("scheduledAt", json!("2020-01-01T00:00:00Z")),
        ("scheduledAt", json!("2099-01-01T00:00:00")),
        ("scheduledAt", json!(4_070_908_800_u64)),
        ("imageBanner", json!("")),
        ("imageBanner", json!("a".repeat(2049))),
    ] {
        let mut body = json!({ "title": "The second title" });
        body[field] = value;
        names_the_field(&seller.put_json(&path, body).await, field);
    }
    let reply = seller.put_json(&path, json!({ "nonsense": "x" })).await;
    reply.refused(400, "validation_failed");
    assert_eq!(reply.body["error"], "no fields provided for update");
    let shown = seller.get(&format!("/api/seller/events/get/{event}")).await.expect(200);
    assert_eq!(shown["event"]["eventName"], "The first title");
    seller.put_json(&path, json!({ "title": "The second title", "description": null })).await.expect(200);
    let shown = seller.get(&format!("/api/seller/events/get/{event}")).await.expect(200);
    assert_eq!(shown["event"]["eventName"], "The second title");
    assert_eq!(shown["event"]["description"], "An event of a test");
    app.finish().await;
}

const PRODUCT: [Text<'static>; 4] =
    [("title", "A title"), ("description", "Ten characters"), ("price", "199.99"), ("frequency", "5")];

async fn register(seller: &Actor, event: &str, text: &[Text<'_>]) -> Reply {
    let path = format!("/api/seller/events/{event}/registerProducts");
    seller.form(Method::POST, &path, text, Some(("image", pictures::png(8, 8)))).await
}

#[tokio::test]
async fn each_field_of_a_new_product_has_its_rule() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    let (long, text) = ("a".repeat(101), "a".repeat(501));
    let mut broken = vec![
        ("title", None),
        ("title", Some("a")),
        ("title", Some(long.as_str())),
        ("description", None),
        ("description", Some("too short")),
        ("description", Some(text.as_str())),
        ("price", None),
        ("frequency", None),
    ];
    let prices = [
        "",
        "0",
        "0.00",
        "-1",
        "-0.01",
        "0.001",
        "199.999",
        "Inf",
        "inf",
        "-Inf",
        "NaN",
        "nan",
        "1e308",
        "1e3",
        "0x10",
        "1,000",
        "1.",
        ".5",
        "+1",
        "1 000",
        "\u{0661}",
        "100000000000.01",
        "99999999999999999999999",
        "free",
    ];
    broken.extend(prices.map(|price| ("price", Some(price))));
    let counts = ["", "0", "-1", "1.5", "1e3", "Inf", "NaN", "4294967296", "100000001", "many", "0x10"];
    broken.extend(counts.map(|count| ("frequency", Some(count))));
    for (field, value) in broken {
        names_the_field(&register(&seller, &event, &with(&PRODUCT, field, value)).await, field);
    }
    for (name, values) in [("currency", ["", "inr", "XXXX", "12"]), ("perBuyerLimit", ["0", "-1", "1001", "1.5"])] {
        for value in values {
            let text = [&PRODUCT[..], &[(name, value)]].concat();
            names_the_field(&register(&seller, &event, &text).await, name);
        }
    }
    let listed = seller.get(&format!("/api/seller/events/{event}/getProducts")).await.expect(200);
    assert_eq!(listed["products"], json!([]));

    for (text, number, minor) in [
        ("249999", json!(249_999), 24_999_900_i64),
        (" 199.99 ", json!(199.99), 19_999),
        ("0.01", json!(0.01), 1),
        ("0.1", json!(0.1), 10),
        ("19.990", json!(19.99), 1_999),
        ("100000000000", json!(100_000_000_000_i64), 10_000_000_000_000),
    ] {
        let added = register(&seller, &event, &with(&PRODUCT, "price", Some(text))).await.expect(201);
        let product = product(&seller, &event, added["productId"].as_str().unwrap()).await;
        assert_eq!((&product["price"], &product["priceMinor"]), (&number, &json!(minor)));
        assert_eq!(product["currency"], "INR");
    }
    app.finish().await;
}

async fn product(seller: &Actor, event: &str, id: &str) -> Value {
    let shown = seller.get(&format!("/api/seller/events/{event}/getProduct/{id}")).await.expect(200);
    shown["product"].clone()
}

#[tokio::test]
async fn a_product_is_changed_by_json_by_urlencoded_form_or_by_multipart() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    let id = seller.add_product(&event, "The first title", "10", 1).await;
    let path = format!("/api/seller/events/{event}/updateProduct/{id}");

    for (price, number) in [(json!(0.1), json!(0.1)), (json!("199.99"), json!(199.99)), (json!(1e2), json!(100))] {
        seller.put_json(&path, json!({ "price": price })).await.expect(200);
        assert_eq!(product(&seller, &event, &id).await["price"], number);
    }
    let request = seller.request(Method::PUT, &path).form(&[("title", "Second & third"), ("frequency", "7")]);
    assert_eq!(Actor::send(request).await.expect(200)["message"], "product updated successfully");
    let text = [("description", "Another description")];
    seller.form(Method::PUT, &path, &text, None).await.expect(200);
    let changed = product(&seller, &event, &id).await;
    assert_eq!((&changed["title"], &changed["frequency"]), (&json!("Second & third"), &json!(7)));
    assert_eq!((&changed["description"], &changed["price"]), (&json!("Another description"), &json!(100)));

    for body in [json!({}), json!({ "nonsense": 1 }), json!({ "title": null })] {
        let reply = seller.put_json(&path, body).await;
        reply.refused(400, "validation_failed");
        assert_eq!(reply.body["error"], "no fields provided for update");
    }
    for (field, value) in [
        ("title", json!("a")),
        ("description", json!("too short")),
        ("price", json!(0)),
        ("price", json!(-1)),
        ("price", json!(0.001)),
        ("price", json!(1e308)),
        ("price", json!("Infinity")),
        ("price", json!("")),
        ("frequency", json!(0)),
        ("frequency", json!(1.5)),
        ("frequency", json!("")),
        ("perBuyerLimit", json!(0)),
    ] {
        names_the_field(&seller.put_json(&path, json!({ field: value })).await, field);
    }
    assert_eq!(product(&seller, &event, &id).await, changed);
    app.finish().await;
}

#[tokio::test]
async fn a_new_price_is_in_the_products_own_currency_unless_it_names_another() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    let text = [&with(&PRODUCT, "price", Some("1200"))[..], &[("currency", "JPY")]].concat();
    let added = register(&seller, &event, &text).await.expect(201);
    let id = added["productId"].as_str().unwrap();
    let path = format!("/api/seller/events/{event}/updateProduct/{id}");
    let priced = async || {
        let product = product(&seller, &event, id).await;
        (product["price"].clone(), product["priceMinor"].clone(), product["currency"].clone())
    };
    assert_eq!(priced().await, (json!(1200), json!(1200), json!("JPY")));
    seller.put_json(&path, json!({ "price": 1500 })).await.expect(200);
    assert_eq!(priced().await, (json!(1500), json!(1500), json!("JPY")));
    names_the_field(&seller.put_json(&path, json!({ "price": 1.5 })).await, "price");
    // The number would mean something else.
    names_the_field(&seller.put_json(&path, json!({ "currency": "USD" })).await, "price");
    names_the_field(&seller.put_json(&path, json!({ "currency": "USD", "title": "Dollars" })).await, "price");
    assert_eq!(priced().await, (json!(1500), json!(1500), json!("JPY")));
    seller.put_json(&path, json!({ "price": 12.5, "currency": "USD" })).await.expect(200);
    assert_eq!(priced().await, (json!(12.5), json!(1250), json!("USD")));
    app.finish().await;
}

/// How many files are in the media folder.
fn files(app: &TestApp) -> usize {
    fn count(dir: &Path) -> usize {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    count(&app.config().media.filesystem.dir)
}

#[tokio::test]
async fn a_picture_is_served_while_something_shows_it_and_deleted_when_nothing_does() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    assert_eq!(files(&app), 1);
    let (one, two) = (
        seller.add_product(&event, "Product one", "10", 1).await,
        seller.add_product(&event, "Product two", "10", 1).await,
    );
    assert_eq!(files(&app), 3);

    let before = product(&seller, &event, &one).await["image"].as_str().unwrap().to_owned();
    let served = app.anonymous().get(&before).await;
    assert_eq!((served.status, served.headers["content-type"].as_str()), (200, "image/jpeg"));
    assert_eq!(served.headers["x-content-type-options"], "nosniff");
    let path = format!("/api/seller/events/{event}/updateProduct/{one}");
    seller.form(Method::PUT, &path, &[], Some(("image", pictures::png(8, 8)))).await.expect(200);
    assert_eq!(files(&app), 3, "the replaced picture is still there");
    assert_eq!(app.anonymous().get(&before).await.status, 404);
    let after = product(&seller, &event, &one).await["image"].as_str().unwrap().to_owned();
    assert_eq!(app.anonymous().get(&after).await.headers["content-type"], "image/png");

    let path = format!("/api/seller/events/{event}/deleteProduct/{two}");
    seller.delete(&path).await.expect(200);
    assert_eq!(files(&app), 2);
    seller.delete(&path).await.refused(404, "not_found");
    let path = format!("/api/seller/events/update/{event}");
    seller.put_json(&path, json!({ "imageBanner": "https://cdn.example/banner.jpg" })).await.expect(200);
    assert_eq!(files(&app), 1);
    seller.delete(&format!("/api/seller/events/delete/{event}")).await.expect(200);
    assert_eq!(files(&app), 0);
    seller.get(&format!("/api/seller/events/get/{event}")).await.refused(404, "not_found");
    assert_eq!(ledger(&app).await, 0);
    app.finish().await;
}

/// How many pictures wait to be deleted.
async fn ledger(app: &TestApp) -> u64 {
    collection(app, "mediaDeletions").await.count_documents(doc! {}).await.unwrap()
}

#[tokio::test]
async fn the_media_folder_serves_its_pictures_and_nothing_beside_them() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    seller.create_event("An event").await;
    let beside = app.config().media.filesystem.dir.with_extension("secret");
    std::fs::write(&beside, "secret").unwrap();
    let name = beside.file_name().unwrap().to_str().unwrap();
    for path in ["/media/", "/media/event-banner", "/media/event-banner/"] {
        assert_eq!(app.anonymous().get(path).await.status, 404, "{path}");
    }
    for path in [format!("/media/..%2f{name}"), format!("/media/%2e%2e%2f{name}"), format!("/media/..%5c{name}")] {
        let reply = app.anonymous().get(&path).await;
        assert_ne!(reply.status, 200, "{path}: {}", reply.body);
    }
    std::fs::remove_file(&beside).unwrap();
    app.finish().await;
}

#[tokio::test]
async fn an_upload_for_somebody_elses_event_stores_nothing() {
    let app = TestApp::start().await;
    let (owner, other, buyer) = (app.seller().await, app.seller().await, app.buyer().await);
    let event = owner.create_event("An event").await;
    let id = owner.add_product(&event, "A product", "10", 1).await;
    let before = files(&app);
    register(&other, &event, &PRODUCT).await.refused(404, "not_found");
    register(&other, &"0".repeat(24), &PRODUCT).await.refused(404, "not_found");
    register(&buyer, &event, &PRODUCT).await.refused(403, "role_required");
    register(&app.anonymous(), &event, &PRODUCT).await.refused(401, "unauthenticated");
    let own = other.create_event("The other's").await;
    for through in [&event, &own] {
        let path = format!("/api/seller/events/{through}/updateProduct/{id}");
        let picture = Some(("image", pictures::png(8, 8)));
        other.form(Method::PUT, &path, &[], picture).await.refused(404, "not_found");
    }
    // A field that breaks a rule, too.
    register(&owner, &event, &with(&PRODUCT, "price", Some("0"))).await.refused(400, "validation_failed");
    assert_eq!(files(&app), before + 1, "only the other's own banner is new");
    assert_eq!(ledger(&app).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn an_upload_whose_record_fails_is_swept_and_what_is_shown_stays() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    seller.add_product(&event, "The same title", "10", 1).await;
    // A rule of this test's own makes the next record fail after its picture was stored.
    let rule = doc! { "createIndexes": "inventories",
    "indexes": [{ "name": "of_this_test", "key": { "title": 1 }, "unique": true }] };
    let inventories = collection(&app, "inventories").await;
    let client = inventories.client().clone();
    client.database(&app.config().mongo.database).run_command(rule).await.unwrap();
    let reply = register(&seller, &event, &with(&PRODUCT, "title", Some("The same title"))).await;
    reply.refused(500, "internal");
    assert_eq!(reply.body["error"], "internal server error");
    assert_eq!((files(&app), ledger(&app).await), (3, 1));

    // It is not due for a while: its record might still come.
    app.app().catalogue().sweep_pictures().await.unwrap();
    assert_eq!((files(&app), ledger(&app).await), (3, 1));
    // The entry of a picture that is shown after all is struck off, and the picture stays.
    let waiting = collection(&app, "mediaDeletions").await;
    let shown = inventories.find_one(doc! {}).await.unwrap().unwrap();
    let due = DateTime::from_millis(0);
    waiting.update_many(doc! {}, doc! { "$set": { "dueAt": due } }).await.unwrap();
    waiting.insert_one(doc! { "_id": shown.get_str("imageKey").unwrap(), "dueAt": due }).await.unwrap();
    app.app().catalogue().sweep_pictures().await.unwrap();
    assert_eq!((files(&app), ledger(&app).await), (2, 0));
    app.finish().await;
}

#[tokio::test]
async fn buyers_see_an_event_from_its_opening_on_by_id_or_slug() {
    let app = TestApp::start().await;
    let (seller, buyer) = (app.approved_seller().await, app.buyer().await);
    let event = seller.create_event("Air Max \u{2014} Spring '26!").await;
    seller.add_product(&event, "A product", "199.99", 3).await;
    let slug = seller.get(&format!("/api/seller/events/get/{event}")).await.expect(200)["event"]["slug"].clone();
    let slug = slug.as_str().unwrap();
    assert_eq!(slug, format!("air-max-spring-26-{}", &event[18..]));
    let paths = [event.clone(), event.to_uppercase(), slug.to_owned()].map(|name| format!("/api/buyer/event/{name}"));
    for path in &paths {
        buyer.get(path).await.refused(404, "not_found");
        buyer.get(&format!("{path}/status")).await.refused(404, "not_found");
    }
    assert_eq!(buyer.get("/api/buyer/events").await.expect(200)["events"], json!([]));

    let control = async |action: &str| seller.post(&format!("/api/seller/events/{event}/{action}")).await.expect(200);
    for (action, status, listed) in
        [("Live", "LIVE", 1), ("Pause", "PAUSED", 1), ("Resume", "LIVE", 1), ("End", "STOPPED", 0)]
    {
        control(action).await;
        for path in &paths {
            let page = buyer.get(path).await.expect(200);
            assert_eq!((&page["event"]["id"], &page["event"]["saleStatus"]), (&json!(event), &json!(status)));
            let products = page["products"].as_array().unwrap();
            let stock = if status == "STOPPED" { 0 } else { 3 };
            assert_eq!((products.len(), &products[0]["availableStock"]), (1, &json!(stock)), "{action}");
            assert_eq!(buyer.get(&format!("{path}/status")).await.expect(200)["status"], status);
        }
        assert_eq!(buyer.get("/api/buyer/events").await.expect(200)["events"].as_array().unwrap().len(), listed);
    }
    buyer.get(&format!("/api/buyer/event/air-max-{}", "0".repeat(6))).await.refused(404, "not_found");
    app.finish().await;
}

/// Every item of a list, read in pages of this size; no page but the last is shorter.
async fn paged(actor: &Actor, path: &str, list: &str, limit: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = actor.get(&format!("{path}?limit={limit}{cursor}")).await.expect(200);
        let rows = page[list].as_array().unwrap();
        items.extend(rows.iter().cloned());
        assert!(items.len() < 100, "the pages do not end");
        match page["nextCursor"].as_str() {
            Some(next) => {
                assert_eq!(rows.len(), limit);
                cursor = format!("&cursor={next}");
            }
            None => return items,
        }
    }
}

async fn assert_pages(actor: &Actor, path: &str, list: &str, id: &str, count: usize) {
    let whole = actor.get(path).await.expect(200);
    assert!(whole.get("nextCursor").is_none(), "{whole}");
    let whole = whole[list].as_array().unwrap().clone();
    assert_eq!(whole.len(), count, "{path}");
    let ids: HashSet<&str> = whole.iter().map(|item| item[id].as_str().unwrap()).collect();
    assert_eq!(ids.len(), count, "{path} has an item twice");
    for limit in [1, 3, count - 1, count, count + 1] {
        assert_eq!(paged(actor, path, list, limit).await, whole, "{path} in pages of {limit}");
    }
    for query in ["limit=0", "limit=-1", "limit=x", "limit=5001", "limit=1.5", "limit="] {
        names_the_field(&actor.get(&format!("{path}?{query}")).await, "limit");
    }
    for query in ["cursor=x", "cursor=zz.00", "cursor=1.0123", "cursor=%00"] {
        names_the_field(&actor.get(&format!("{path}?{query}")).await, "cursor");
    }
}

#[tokio::test]
async fn the_pages_of_every_list_cover_it_exactly_once() {
    let app = TestApp::start().await;
    let sale = app.live_sale(7, 3).await;
    let (buyers, admin) = (app.buyers(2).await, app.admin().await);
    for buyer in &buyers {
        for product in 0..4 {
            buyer.post(&sale.purchase(product)).await.expect(201);
        }
    }
    for number in 0..4 {
        sale.seller.create_event(&format!("Event {number}")).await;
        let applicant = app.seller().await;
        applicant.post_json("/api/seller/verify", crate::harness::business()).await.expect(200);
    }
    let event = &sale.event;
    assert_pages(&sale.seller, "/api/seller/events/get", "events", "id", 5).await;
    assert_pages(&sale.seller, &format!("/api/seller/events/{event}/getProducts"), "products", "id", 7).await;
    assert_pages(&buyers[0], &format!("/api/buyer/event/{event}"), "products", "productId", 7).await;
    assert_pages(&admin, "/api/admin/verifications/pending", "verifications", "id", 4).await;
    sale.control("End").await.expect(200);
    assert_pages(&sale.seller, &format!("/api/seller/events/booking/fetch/{event}"), "orders", "id", 8).await;
    assert_pages(&buyers[0], "/api/buyer/orders", "orders", "id", 4).await;
    // Also when the products come from the catalogue again.
    assert_pages(&buyers[0], &format!("/api/buyer/event/{event}"), "products", "productId", 7).await;
    app.finish().await;
}

#[tokio::test]
async fn a_list_is_whole_up_to_the_cap_and_says_when_there_is_more() {
    let mut config = config().await;
    config.server.list_items_max = 3;
    let app = TestApp::with(config).await;
    let seller = app.seller().await;
    for number in 0..4 {
        seller.create_event(&format!("Event {number}")).await;
    }
    let first = seller.get("/api/seller/events/get").await.expect(200);
    assert_eq!(first["events"].as_array().unwrap().len(), 3);
    let next = first["nextCursor"].as_str().unwrap();
    let last = seller.get(&format!("/api/seller/events/get?cursor={next}")).await.expect(200);
    assert_eq!(last["events"].as_array().unwrap().len(), 1);
    assert!(last.get("nextCursor").is_none());
    app.finish().await;
}

#[tokio::test]
async fn records_say_when_they_were_made_and_last_changed() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let clock = app.app().clock();
    // Stores keep milliseconds.
    let started = clock.now() - TimeDelta::milliseconds(1);
    let event = seller.create_event("An event").await;
    let id = seller.add_product(&event, "A product", "10", 1).await;
    let times = async || {
        let shown = seller.get(&format!("/api/seller/events/get/{event}")).await.expect(200);
        let product = product(&seller, &event, &id).await;
        [&shown["event"], &product].map(|item| (time(item, "createdAt"), time(item, "updatedAt")))
    };
    let before = times().await;
    for (created, updated) in before {
        assert!(started <= created && created <= clock.now(), "{created}");
        assert_eq!(created, updated);
    }
    crate::harness::eventually("the clock moves on", || async {
        clock.now() > before[1].0 + TimeDelta::milliseconds(5)
    })
    .await;
    seller.put_json(&format!("/api/seller/events/update/{event}"), json!({ "title": "Changed" })).await.expect(200);
    let path = format!("/api/seller/events/{event}/updateProduct/{id}");
    seller.put_json(&path, json!({ "title": "Changed" })).await.expect(200);
    for (before, after) in before.into_iter().zip(times().await) {
        assert_eq!(before.0, after.0);
        assert!(after.1 > before.1, "{before:?} {after:?}");
    }
    app.finish().await;
}

fn time(item: &Value, field: &str) -> chrono::DateTime<Utc> {
    chrono::DateTime::parse_from_rfc3339(item[field].as_str().unwrap()).unwrap().to_utc()
}

#[tokio::test]
async fn an_event_with_an_open_sale_cannot_be_deleted_nor_its_products_changed() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 1).await;
    let (seller, event, product) = (&sale.seller, &sale.event, &sale.products[0]);
    let before = files(&app);
    for _ in 0..2 {
        seller.delete(&format!("/api/seller/events/delete/{event}")).await.refused(409, "catalogue_frozen");
        let path = |verb: &str| format!("/api/seller/events/{event}/{verb}/{product}");
        seller.delete(&path("deleteProduct")).await.refused(409, "catalogue_frozen");
        seller.put_json(&path("updateProduct"), json!({ "price": 1 })).await.refused(409, "catalogue_frozen");
        let picture = Some(("image", pictures::png(8, 8)));
        seller.form(Method::PUT, &path("updateProduct"), &[], picture).await.refused(409, "catalogue_frozen");
        register(seller, event, &PRODUCT).await.refused(409, "catalogue_frozen");
        sale.control("Pause").await;
    }
    assert_eq!(files(&app), before);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
