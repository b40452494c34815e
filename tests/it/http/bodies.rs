//! Bodies: too large, of another type, not what the route reads, or never whole.

use std::time::Instant;

use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::read_until;
use crate::harness::{Actor, TestApp, config, pictures};

#[tokio::test]
async fn a_json_body_above_the_limit_is_a_413() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    let huge = "a".repeat(70_000);
    let body = json!({ "emailId": "a@example.com", "password": huge });
    app.anonymous().post_json("/api/auth/signin", body).await.refused(413, "too_large");
    let path = format!("/api/seller/events/update/{event}");
    seller.put_json(&path, json!({ "description": huge })).await.refused(413, "too_large");
    let request = seller.request(Method::PUT, &path).form(&[("description", &huge)]);
    Actor::send(request).await.refused(413, "too_large");
    app.finish().await;
}

#[tokio::test]
async fn an_upload_above_the_limit_is_a_413_and_stores_nothing() {
    let mut config = config().await;
    config.media.banner_bytes_max = 50_000;
    config.media.product_bytes_max = 50_000;
    let app = TestApp::with(config).await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    let text = [("title", "A title"), ("description", "Ten characters"), ("price", "1"), ("frequency", "1")];
    let path = format!("/api/seller/events/{event}/registerProducts");
    let huge = || Some(("image", vec![0xff; 200_000]));
    seller.form(Method::POST, &path, &text, huge()).await.refused(413, "too_large");
    // Within what a form may be, but not within what a picture may be.
    let large = Some(("image", vec![0xff; 60_000]));
    seller.form(Method::POST, &path, &text, large).await.refused(400, "image_rejected");
    let banner = Some(("imageBanner", vec![0xff; 200_000]));
    seller.form(Method::POST, "/api/seller/events/create", &text, banner).await.refused(413, "too_large");
    let fields = [("title", "x".repeat(17 * 1024))];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    seller.form(Method::POST, &path, &fields, None).await.refused(413, "too_large");
    let listed = seller.get(&format!("/api/seller/events/{event}/getProducts")).await.expect(200);
    assert_eq!(listed["products"], json!([]));
    app.finish().await;
}

#[tokio::test]
async fn a_body_of_another_type_is_a_415() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    for kind in ["text/plain", "application/xml", "application/x-www-form-urlencoded"] {
        let request = app.anonymous().request(Method::POST, "/api/auth/signin").header("content-type", kind);
        Actor::send(request.body("{}")).await.refused(415, "unsupported_media_type");
    }
    for path in [format!("/api/seller/events/update/{event}")] {
        let request = seller.request(Method::PUT, &path).header("content-type", "text/plain");
        Actor::send(request.body("{\"title\":\"x\"}")).await.refused(415, "unsupported_media_type");
    }
    // Nothing is said about the type, or more than its name: both are JSON.
    for kind in [None, Some("application/json; charset=utf-8"), Some("Application/JSON")] {
        let mut request = app.anonymous().request(Method::POST, "/api/auth/signin");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let body = json!({ "emailId": "a@example.com", "password": "Password123" }).to_string();
        Actor::send(request.body(body)).await.refused(401, "bad_credentials");
    }
    app.finish().await;
}

#[tokio::test]
async fn what_is_not_the_json_that_a_route_reads_is_a_400() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let event = seller.create_event("An event").await;
    let product = seller.add_product(&event, "A product", "10", 1).await;
    for body in ["", "{", "null", "\"text\"", "{\"emailId\":}", "{} {}", "{\"emailId\":\"\u{0}\"}", "\u{feff}{}"] {
        let request = app.anonymous().request(Method::POST, "/api/auth/signin");
        let reply = Actor::send(request.header("content-type", "application/json").body(body)).await;
        reply.refused(400, "malformed_body");
        assert!(!reply.body["error"].as_str().unwrap().contains("SignInRequest"), "{}", reply.body);
    }
    let empty = app.anonymous().post("/api/auth/signin").await;
    assert_eq!(empty.body["error"], "EOF");
    let deep = "[".repeat(20_000);
    let request = app.anonymous().request(Method::POST, "/api/auth/signin").header("content-type", "application/json");
    Actor::send(request.body(deep)).await.refused(400, "malformed_body");

    let path = format!("/api/seller/events/{event}/updateProduct/{product}");
    for price in [json!({ "amount": 1 }), json!([1]), json!(true)] {
        seller.put_json(&path, json!({ "price": price })).await.refused(400, "validation_failed");
    }
    let path = format!("/api/seller/events/update/{event}");
    for title in [json!({ "$set": "x" }), json!([])] {
        seller.put_json(&path, json!({ "title": title })).await.refused(400, "validation_failed");
    }
    for body in ["{", "[]", "null"] {
        let request = seller.request(Method::PUT, &path).header("content-type", "application/json");
        Actor::send(request.body(body)).await.refused(400, "malformed_body");
    }
    let request = seller.request(Method::POST, "/api/seller/events/create");
    let request = request.header("content-type", "multipart/form-data; boundary=x");
    Actor::send(request.body("--x\r\nno headers")).await.refused(400, "malformed_body");
    let request = seller.request(Method::POST, "/api/seller/events/create");
    let request = request.header("content-type", "multipart/form-data");
    Actor::send(request.body("")).await.refused(400, "malformed_body");
    app.finish().await;
}

#[tokio::test]
async fn a_body_that_stops_half_way_ends_in_an_answer() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let token = seller.token.clone().unwrap();
    let requests = [
        "POST /api/auth/signin HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"ema"
            .to_owned(),
        "POST /api/auth/signin HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"ema\r\n".to_owned(),
        format!(
            "POST /api/seller/events/create HTTP/1.1\r\nHost: x\r\nCookie: token={token}\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5000\r\n\r\n\
             --b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nA ti"
        ),
    ];
    for request in requests {
        let started = Instant::now();
        let mut stream = TcpStream::connect(app.running.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let said = read_until(&mut stream, "malformed_body").await;
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
        assert!(said.contains("malformed_body"), "{said}");
        // It waited for more, as long as it is told to.
        let waited = started.elapsed().as_millis();
        assert!(waited >= u128::from(app.config().server.body_idle_timeout_ms), "{waited} ms");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_client_that_hangs_up_in_an_upload_leaves_nothing() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    let token = seller.token.clone().unwrap();
    let picture = pictures::jpeg(64, 64);
    let head = format!(
        "POST /api/seller/events/create HTTP/1.1\r\nHost: x\r\nCookie: token={token}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n\
         --b\r\nContent-Disposition: form-data; name=\"imageBanner\"; filename=\"a.jpg\"\r\n\r\n",
        picture.len() + 5000
    );
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&picture).await.unwrap();
    stream.shutdown().await.unwrap();
    // Until the server has done with it.
    let said = read_until(&mut stream, "never said").await;
    assert!(!said.starts_with("HTTP/1.1 2"), "{said}");
    let listed = seller.get("/api/seller/events/get").await.expect(200);
    assert_eq!(listed["events"], json!([]));
    let dir = &app.config().media.filesystem.dir;
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    app.finish().await;
}
