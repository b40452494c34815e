//! Writes with an `Idempotency-Key`: whatever happens to the answer, asking again is not doing it again.

use std::time::Duration;

use orbit::config::Durability;
use orbit::idempotency::{Decision, request_id};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::{self, Actor, Reply, TestApp, eventually, pictures};

const WEBHOOKS: &str = "/api/seller/webhooks";

async fn register(seller: &Actor, key: Option<&str>, url: &str) -> Reply {
    let request = seller.request(Method::POST, WEBHOOKS).json(&json!({ "url": url }));
    Actor::send(match key {
        Some(key) => request.header("Idempotency-Key", key),
        None => request,
    })
    .await
}

async fn webhooks(seller: &Actor) -> Vec<Value> {
    seller.get(WEBHOOKS).await.expect(200)["webhooks"].as_array().unwrap().clone()
}

fn replayed(reply: &Reply) -> bool {
    reply.headers.contains_key("idempotency-replayed")
}

#[tokio::test]
async fn the_same_key_and_body_get_the_first_answer_again_and_another_body_is_refused() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let first = register(&seller, Some("one"), "https://a.example/").await;
    assert!(!replayed(&first));

    let again = register(&seller, Some("one"), "https://a.example/").await;

    assert!(replayed(&again));
    assert_eq!(again.headers["content-type"], "application/json");
    let first = first.expect(201);
    assert_eq!(again.expect(201), first, "with the secret that is shown once");
    register(&seller, Some("one"), "https://b.example/").await.refused(422, "idempotency_key_reused");
    assert_eq!(webhooks(&seller).await.len(), 1);
    // A refusal is an answer as well.
    let refused = register(&seller, Some("two"), "ftp://a.example/").await;
    let repeated = register(&seller, Some("two"), "ftp://a.example/").await;
    refused.refused(400, "validation_failed");
    assert!(replayed(&repeated));
    assert_eq!(repeated.body, refused.body);
    // Without a key everything is as before.
    register(&seller, None, "https://a.example/").await.expect(201);
    assert_eq!(webhooks(&seller).await.len(), 2);
    app.finish().await;
}

#[tokio::test]
async fn an_answer_rests_sealed() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let created = register(&seller, Some("one"), "https://a.example/").await.expect(201);
    let secret = created["secret"].as_str().unwrap();
    let uri = orbit::config::ExposeSecret::expose_secret(&app.config().mongo.uri);
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    let rows = client.database(&app.config().mongo.database).collection::<bson::Document>("idempotency");
    let stored = rows.find_one(bson::doc! {}).await.unwrap().unwrap();
    assert!(stored.contains_key("answer") && !stored.to_string().contains(secret), "{stored}");
    app.finish().await;
}

#[tokio::test]
async fn of_many_at_once_in_two_processes_one_is_done() {
    let app = TestApp::start().await;
    let second = app.second().await;
    let seller = app.seller().await;
    let other = second.here(&seller);

    let asked = (0..16).map(|number| {
        let seller = if number % 2 == 0 { &seller } else { &other };
        register(seller, Some("one"), "https://a.example/")
    });
    let replies = futures::future::join_all(asked).await;

    let created: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 201).collect();
    assert_eq!(created.iter().filter(|reply| !replayed(reply)).count(), 1);
    assert!(created.iter().all(|reply| reply.body == created[0].body));
    for reply in replies.iter().filter(|reply| reply.status != 201) {
        reply.refused(409, "idempotency_in_progress");
    }
    assert_eq!(webhooks(&seller).await.len(), 1);
    assert!(second.running.stop().await);
    app.finish().await;
}

#[tokio::test]
async fn a_key_is_its_callers_own_on_its_route() {
    let app = TestApp::start().await;
    let (one, two) = (app.seller().await, app.seller().await);
    let first = register(&one, Some("one"), "https://a.example/").await.expect(201);
    let second = register(&two, Some("one"), "https://a.example/").await;
    assert!(!replayed(&second));
    second.expect(201);
    let id = first["webhook"]["id"].as_str().unwrap();
    for path in [format!("{WEBHOOKS}/{id}/secrets"), format!("{WEBHOOKS}/{}/secrets", id.to_uppercase())] {
        let rotated = Actor::send(one.request(Method::POST, &path).header("Idempotency-Key", "one")).await;
        assert!(!replayed(&rotated));
        assert_ne!(rotated.expect(201)["secret"], first["secret"]);
    }
    // Nobody is refused for a key where there is no caller.
    let anonymous = app.anonymous();
    Actor::send(anonymous.request(Method::POST, WEBHOOKS).header("Idempotency-Key", "one"))
        .await
        .refused(401, "unauthenticated");
    app.finish().await;
}

#[tokio::test]
async fn a_caller_who_hangs_up_finds_the_answer() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let body = json!({ "url": "https://a.example/" }).to_string();
    let head = format!(
        "POST {WEBHOOKS} HTTP/1.1\r\nhost: orbit\r\ncookie: token={}\r\ncontent-type: application/json\r\n\
         idempotency-key: one\r\ncontent-length: {}\r\n\r\n{body}",
        seller.token.as_deref().unwrap(),
        body.len()
    );
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    eventually("it has begun", || async { !webhooks(&seller).await.is_empty() }).await;
    drop(stream);

    let answer = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            let reply = register(&seller, Some("one"), "https://a.example/").await;
            if reply.status != 409 {
                break reply;
            }
        }
    });
    let answer = answer.await.unwrap();
    assert!(replayed(&answer));
    assert_eq!(answer.expect(201)["webhook"]["id"], webhooks(&seller).await[0]["id"]);
    app.finish().await;
}

#[tokio::test]
async fn a_request_whose_process_died_runs_again_when_its_lease_is_over() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let first = register(&seller, Some("one"), "https://a.example/").await.expect(201);
    // As if the process had died before it kept the answer, half a minute or a moment ago.
    let uri = orbit::config::ExposeSecret::expose_secret(&app.config().mongo.uri);
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    let rows = client.database(&app.config().mongo.database).collection::<bson::Document>("idempotency");
    rows.update_one(bson::doc! {}, bson::doc! { "$unset": { "answer": "" } }).await.unwrap();
    register(&seller, Some("one"), "https://a.example/").await.refused(409, "idempotency_in_progress");
    register(&seller, Some("one"), "https://b.example/").await.refused(422, "idempotency_key_reused");

    let past = bson::DateTime::from_millis(0);
    rows.update_one(bson::doc! {}, bson::doc! { "$set": { "leaseUntil": past } }).await.unwrap();
    let again = register(&seller, Some("one"), "https://a.example/").await;

    assert!(!replayed(&again));
    assert_ne!(again.expect(201)["webhook"]["id"], first["webhook"]["id"]);
    // The one that was thought dead says something after all: it is not heard.
    assert!(replayed(&register(&seller, Some("one"), "https://a.example/").await));
    // A day later the key is new.
    rows.update_one(bson::doc! {}, bson::doc! { "$set": { "expiresAt": past } }).await.unwrap();
    assert!(!replayed(&register(&seller, Some("one"), "https://c.example/").await));
    app.finish().await;
}

#[tokio::test]
async fn an_answer_that_says_not_now_is_not_kept() {
    let mut config = harness::config().await;
    config.live.durability = Durability::Always;
    let app = TestApp::with(config).await;
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    seller.add_product(&event, "A product", "10", 1).await;
    let open = format!("/api/seller/events/{event}/Live");
    for _ in 0..2 {
        let reply = Actor::send(seller.request(Method::POST, &open).header("Idempotency-Key", "one")).await;
        reply.refused(503, "live_store_unsafe");
        assert!(!replayed(&reply));
    }
    app.finish().await;
}

#[tokio::test]
async fn a_form_with_a_picture_is_recognised_however_its_parts_are_separated() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let create = |title: &'static str| {
        let picture = Part::bytes(pictures::jpeg(64, 64)).file_name("banner.jpg");
        let form = Form::new()
            .text("title", title)
            .text("description", "An event of a test")
            .text("scheduledAt", "2099-01-01T00:00:00Z")
            .part("imageBanner", picture);
        let request = seller.request(Method::POST, "/api/seller/events/create").multipart(form);
        Actor::send(request.header("Idempotency-Key", "one"))
    };
    let first = create("Spring drop").await.expect(201);

    let again = create("Spring drop").await;

    assert!(replayed(&again));
    assert_eq!(again.expect(201)["eventId"], first["eventId"]);
    create("Summer drop").await.refused(422, "idempotency_key_reused");
    let events = seller.get("/api/seller/events/get").await.expect(200);
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
    app.finish().await;
}

#[tokio::test]
async fn a_key_is_one_to_128_visible_characters() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    for key in ["", "two words", "café", &"x".repeat(129)] {
        register(&seller, Some(key), "https://a.example/").await.refused(400, "validation_failed");
    }
    register(&seller, Some(&"x".repeat(128)), "https://a.example/").await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn a_request_that_another_process_runs_is_still_running() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let id = request_id(seller.id.parse().unwrap(), "POST", "/somewhere", "one");
    let once = app.app().idempotency();
    let Decision::Run(mine) = once.begin(id.clone(), "a body".to_owned()).await.unwrap() else { panic!("it is new") };
    assert_eq!(
        once.begin(id.clone(), "a body".to_owned()).await.unwrap_err().code().as_str(),
        "idempotency_in_progress"
    );
    once.renew(&mine).await;
    once.free(&mine).await.unwrap();
    assert!(matches!(once.begin(id, "another body".to_owned()).await, Ok(Decision::Run(_))));
    app.finish().await;
}
