//! What a sale is opened with: each field's rule, and how times are shown.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Reply, TestApp, pictures};

async fn create(seller: &Actor, plan: &[(&str, &str)]) -> Reply {
    let mut text =
        vec![("title", "A title"), ("description", "Some text"), ("scheduledAt", "2099-07-01T18:00:00+02:00")];
    text.extend_from_slice(plan);
    seller.form(Method::POST, "/api/seller/events/create", &text, Some(("imageBanner", pictures::png(8, 8)))).await
}

async fn shown(seller: &Actor, event: &str) -> Value {
    seller.get(&format!("/api/seller/events/get/{event}")).await.expect(200)["event"].clone()
}

fn names(reply: &Reply, field: &str) {
    reply.refused(400, "validation_failed");
    let broken: Vec<&Value> = reply.body["fields"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
    assert_eq!(broken, [field], "{}", reply.body);
}

const WHOLE: [(&str, &str); 6] = [
    ("autoOpen", "true"),
    ("endsAt", "2099-07-02T18:00:00+02:00"),
    ("timeZone", "Europe/Berlin"),
    ("paymentWindow", "600"),
    ("cancelUntil", "2099-07-03T00:00:00Z"),
    ("refundKeepsSlot", "true"),
];

#[tokio::test]
async fn each_field_of_the_plan_has_its_rule() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let created = create(&seller, &WHOLE).await.expect(201)["eventId"].as_str().unwrap().to_owned();
    let path = format!("/api/seller/events/update/{created}");
    for (field, values) in [
        ("endsAt", &["2099-07-02T18:00:00", "2099-07-02", "tomorrow", "2020-01-01T00:00:00Z", "4086000000"][..]),
        // At the opening, and before it.
        ("endsAt", &["2099-07-01T16:00:00Z", "2099-07-01T15:59:59Z"]),
        ("cancelUntil", &["2099-07-02T18:00:00", "never"]),
        ("timeZone", &["Berlin", "europe/berlin", "+02:00", "CET+1"]),
        ("paymentWindow", &["-1", "+5", "1.5", "604801", "ten", "99999999999"]),
        ("autoOpen", &["yes", "1", "TRUE"]),
        ("refundKeepsSlot", &["no", "0"]),
    ] {
        for value in values {
            names(&create(&seller, &[(field, value)]).await, field);
            names(&seller.put_json(&path, json!({ field: value })).await, field);
        }
    }
    let naive = create(&seller, &[("endsAt", "2099-07-02T18:00:00")]).await;
    assert!(naive.body["fields"][0]["message"].as_str().unwrap().contains("with an offset"), "{}", naive.body);
    // The opening cannot be moved behind the end, and nothing opens by itself at a moment that has passed.
    names(&seller.put_json(&path, json!({ "scheduledAt": "2099-07-03T00:00:00Z" })).await, "scheduledAt");
    let event = shown(&seller, &created).await;
    assert_eq!((&event["paymentWindow"], &event["autoOpen"]), (&json!(600), &json!(true)));
    app.finish().await;
}

#[tokio::test]
async fn a_plan_is_kept_and_each_optional_field_can_be_taken_away() {
    let app = TestApp::start().await;
    let seller = app.approved_seller().await;
    let plain = create(&seller, &[]).await.expect(201)["eventId"].as_str().unwrap().to_owned();
    let event = shown(&seller, &plain).await;
    assert_eq!((&event["autoOpen"], &event["paymentWindow"]), (&json!(false), &json!(0)));
    for absent in ["endsAt", "timeZone", "cancelUntil", "scheduledAtLocal"] {
        assert!(event.get(absent).is_none(), "{event}");
    }

    let event = create(&seller, &WHOLE).await.expect(201)["eventId"].as_str().unwrap().to_owned();
    let path = format!("/api/seller/events/update/{event}");
    let kept = shown(&seller, &event).await;
    assert_eq!((&kept["autoOpen"], &kept["refundKeepsSlot"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&kept["endsAt"], &kept["cancelUntil"]),
        (&json!("2099-07-02T16:00:00Z"), &json!("2099-07-03T00:00:00Z"))
    );
    seller.put_json(&path, json!({ "title": "Another title" })).await.expect(200);
    assert_eq!(shown(&seller, &event).await["endsAt"], kept["endsAt"]);
    // Numbers and truth values may come as such.
    seller.put_json(&path, json!({ "paymentWindow": 30, "autoOpen": false })).await.expect(200);
    let changed = shown(&seller, &event).await;
    assert_eq!((&changed["paymentWindow"], &changed["autoOpen"]), (&json!(30), &json!(false)));
    let nothing = json!({
        "endsAt": "", "timeZone": "", "cancelUntil": "", "paymentWindow": "", "refundKeepsSlot": "", "autoOpen": "",
    });
    seller.put_json(&path, nothing).await.expect(200);
    let bare = shown(&seller, &event).await;
    for absent in ["endsAt", "timeZone", "cancelUntil", "endsAtLocal"] {
        assert!(bare.get(absent).is_none(), "{bare}");
    }
    assert_eq!((&bare["paymentWindow"], &bare["refundKeepsSlot"]), (&json!(0), &json!(false)));

    seller.add_product(&event, "A product", "10", 1).await;
    seller.post(&format!("/api/seller/events/{event}/Live")).await.expect(200);
    for (field, value) in WHOLE {
        seller.put_json(&path, json!({ field: value })).await.refused(409, "catalogue_frozen");
    }
    seller.put_json(&path, json!({ "title": "While it runs" })).await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn times_are_shown_in_the_zone_of_the_event_across_the_change_of_its_clocks() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = create(&seller, &[]).await.expect(201)["eventId"].as_str().unwrap().to_owned();
    let path = format!("/api/seller/events/update/{event}");
    // In 2098 Berlin's clocks go forward on 30 March and back on 26 October, at 01:00 UTC.
    for (zone, at, local) in [
        ("Europe/Berlin", "2098-03-30T00:59:59Z", "2098-03-30T01:59:59+01:00"),
        ("Europe/Berlin", "2098-03-30T01:00:00Z", "2098-03-30T03:00:00+02:00"),
        ("Europe/Berlin", "2098-10-26T00:30:00Z", "2098-10-26T02:30:00+02:00"),
        ("Europe/Berlin", "2098-10-26T01:30:00Z", "2098-10-26T02:30:00+01:00"),
        ("Asia/Kolkata", "2098-10-26T01:30:00Z", "2098-10-26T07:00:00+05:30"),
    ] {
        seller.put_json(&path, json!({ "timeZone": zone, "scheduledAt": at })).await.expect(200);
        let event = shown(&seller, &event).await;
        assert_eq!((&event["scheduledAt"], &event["scheduledAtLocal"]), (&json!(at), &json!(local)));
    }
    app.finish().await;
}
