//! The inherited contract: a client written for the Go implementation, its requests in its order, its checks, and every
//! sentence and field name that it compares.

use std::time::Duration;

use chrono::DateTime;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::harness::{ADMIN_EMAIL, Actor, PASSWORD, Reply, TestApp, business, pictures};

const PICTURE: &[u8] = include_bytes!("assets/progressive.jpg");
const PRODUCTS: usize = 20;
const WORKERS: usize = 5;

/// A client with a cookie jar, as that client has: it never looks at a token itself.
struct Browser {
    http: reqwest::Client,
    url: String,
}

impl Browser {
    fn new(app: &TestApp) -> Self {
        let http = reqwest::Client::builder().cookie_store(true).timeout(Duration::from_secs(120)).build().unwrap();
        Self { http, url: app.url() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    async fn get(&self, path: &str) -> Value {
        Actor::send(self.request(Method::GET, path)).await.expect(200)
    }

    /// Every POST says that it is JSON, also with an empty body.
    async fn post(&self, path: &str) -> Reply {
        Actor::send(self.request(Method::POST, path).header("content-type", "application/json")).await
    }

    async fn json(&self, method: Method, path: &str, body: &Value) -> Reply {
        Actor::send(self.request(method, path).json(body)).await
    }

    async fn delete(&self, path: &str) -> Value {
        Actor::send(self.request(Method::DELETE, path)).await.expect(200)
    }

    async fn upload(&self, method: Method, path: &str, text: &[(&'static str, String)], file: &'static str) -> Reply {
        let mut form = Form::new();
        for (name, value) in text {
            form = form.text(*name, value.clone());
        }
        let part = Part::bytes(PICTURE)
            .file_name("cmd/tests/assets/product.jpg")
            .mime_str("application/octet-stream")
            .unwrap();
        Actor::send(self.request(method, path).multipart(form.part(file, part))).await
    }

    /// Signs up and in; the answer's shape is checked on the way.
    async fn enter(&self, role: &str, first: &str, age: u8, email: &str) {
        let body = json!({
            "firstName": first, "lastName": "Test", "emailId": email, "age": age, "password": PASSWORD, "role": role,
        });
        let up = self.json(Method::POST, "/api/auth/signup", &body).await;
        assert_cookie(&up);
        let up = up.expect(201);
        assert_eq!(up["message"], "Register Successfully");
        assert_ne!(up["user"]["_id"], "");
        for field in ["firstName", "lastName", "emailId", "age", "role"] {
            assert_eq!(up["user"][field], body[field], "{field}");
        }
        self.sign_in(email, PASSWORD).await;
    }

    async fn sign_in(&self, email: &str, password: &str) {
        let body = json!({ "emailId": email, "password": password });
        let reply = self.json(Method::POST, "/api/auth/signin", &body).await;
        assert_cookie(&reply);
        let body = reply.expect(200);
        assert_eq!(body["message"], "Sign In Successfully");
        assert!(body["user"]["_id"].is_string(), "{body}");
    }
}

/// A plain-HTTP client must be able to keep the cookie and send it back.
#[track_caller]
fn assert_cookie(reply: &Reply) {
    let cookie = &reply.headers["set-cookie"];
    assert!(cookie.starts_with("token=ey"), "{cookie}");
    for attribute in ["Path=/", "HttpOnly", "Max-Age=7200", "SameSite=Lax"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
}

#[track_caller]
fn assert_fields(item: &Value, fields: &[&str]) {
    for field in fields {
        assert!(item.get(field).is_some_and(|value| !value.is_null()), "no {field} in {item}");
    }
}

#[track_caller]
fn assert_time(item: &Value, field: &str) {
    let text = item[field].as_str().unwrap_or_else(|| panic!("{field} of {item}"));
    let time = DateTime::parse_from_rfc3339(text).unwrap_or_else(|error| panic!("{field}: {text}: {error}"));
    assert!(time.timestamp() > 1_600_000_000, "{field} is not a real time: {text}");
}

#[track_caller]
fn list<'a>(body: &'a Value, name: &str) -> &'a Vec<Value> {
    body[name].as_array().unwrap_or_else(|| panic!("{name} is no list in {body}"))
}

/// The numbers from 1, shared out to so many workers at once.
async fn by_workers<F: Future<Output = ()>>(work: impl Fn(usize) -> F) {
    let worker = |first: usize| {
        let numbers: Vec<F> = (first..PRODUCTS).step_by(WORKERS).map(&work).collect();
        async move {
            for one in numbers {
                one.await;
            }
        }
    };
    futures::future::join_all((0..WORKERS).map(worker)).await;
}

#[tokio::test]
async fn a_client_of_the_go_implementation_runs_a_whole_sale_unchanged() {
    let app = TestApp::start().await;
    let [buyer, seller, admin] = [Browser::new(&app), Browser::new(&app), Browser::new(&app)];
    let seller_email = "seller-1700000000000@example.com";
    buyer.enter("buyer", "Buyer", 28, "buyer-1700000000000@example.com").await;
    seller.enter("seller", "Seller", 30, seller_email).await;

    approve(&admin, &seller).await;
    let event = prepare(&app, &seller).await;
    let products = stock(&seller, &event).await;

    let control = async |action: &str| seller.post(&format!("/api/seller/events/{event}/{action}")).await.expect(200);
    assert_eq!(control("Live").await["message"], "sale is now live");
    buy(&app, &buyer, &event, &products).await;

    seller.sign_in(seller_email, PASSWORD).await;
    assert_eq!(control("Pause").await["message"], "sale paused \u{2014} no new bookings will be accepted");
    assert_eq!(control("Resume").await["message"], "sale resumed");
    assert_eq!(control("End").await["message"], "sale ended \u{2014} all orders synced to database");
    report(&seller, &event).await;

    for product in &products {
        let path = format!("/api/seller/events/{event}/deleteProduct/{product}");
        assert_eq!(seller.delete(&path).await["message"], "product deleted successfully");
    }
    let deleted = seller.delete(&format!("/api/seller/events/delete/{event}")).await;
    assert_eq!(deleted["message"], "event deleted successfully");
    app.finish().await;
}

async fn approve(admin: &Browser, seller: &Browser) {
    let asked = seller.json(Method::POST, "/api/seller/verify", &business()).await.expect(200);
    assert_eq!(asked["message"], "Seller verification request submitted successfully");
    admin.sign_in(ADMIN_EMAIL, PASSWORD).await;
    let pending = admin.get("/api/admin/verifications/pending").await;
    let first = &list(&pending, "verifications")[0];
    let fields = [
        "id",
        "sellerId",
        "emailId",
        "companyName",
        "gstin",
        "accountHolderName",
        "accountNumber",
        "ifscCode",
        "bankName",
    ];
    assert_fields(first, &fields);
    assert_eq!(first["status"], "pending");
    assert_time(first, "createdAt");
    let id = first["id"].as_str().unwrap();
    let detail = admin.get(&format!("/api/admin/verifications/{id}")).await;
    assert_eq!(detail["verification"]["id"], id);
    let approved = admin.post(&format!("/api/admin/verifications/{id}/approve")).await.expect(200);
    assert_eq!(approved["message"], "seller verification approved");
    let verified = seller.get("/api/seller/isVerified").await;
    assert_eq!(verified, json!({ "verified": true, "message": "Seller is Verified" }));
}

async fn prepare(app: &TestApp, seller: &Browser) -> String {
    let hours = |count| (app.app().clock().now() + chrono::Duration::hours(count)).to_rfc3339();
    let text = [
        ("title", "Benchmark Event".to_owned()),
        ("description", "Created by benchmark tests".to_owned()),
        ("scheduledAt", hours(24)),
    ];
    let created = seller.upload(Method::POST, "/api/seller/events/create", &text, "imageBanner").await.expect(201);
    assert_eq!(created["message"], "event created successfully");
    let event = created["eventId"].as_str().unwrap().to_owned();

    let own = seller.get("/api/seller/events/get").await;
    assert_eq!(list(&own, "events").len(), 1);
    let one = seller.get(&format!("/api/seller/events/get/{event}")).await;
    assert_eq!(one["event"]["id"], event.as_str());
    let fields = ["sellerId", "eventName", "description", "isLive", "imageBanner"];
    assert_fields(&one["event"], &fields);
    for field in ["scheduledAt", "createdAt", "updatedAt"] {
        assert_time(&one["event"], field);
    }
    let change = json!({
        "title": "Updated Event", "description": "Updated", "scheduledAt": hours(48), "imageBanner": "updated-banner",
    });
    let updated = seller.json(Method::PUT, &format!("/api/seller/events/update/{event}"), &change).await.expect(200);
    assert_eq!(updated["message"], "event updated successfully");
    let one = seller.get(&format!("/api/seller/events/get/{event}")).await;
    assert_eq!(one["event"]["imageBanner"], "updated-banner");
    assert_eq!(one["event"]["eventName"], "Updated Event");
    event
}

async fn stock(seller: &Browser, event: &str) -> Vec<String> {
    let path = format!("/api/seller/events/{event}/getProducts");
    assert!(list(&seller.get(&path).await, "products").is_empty());
    let form = |number: usize, price: &str| {
        [
            ("title", format!("Benchmark Product {}", number + 1)),
            ("description", "Created by benchmark tests".to_owned()),
            ("price", price.to_owned()),
            ("frequency", "1".to_owned()),
        ]
    };
    by_workers(async |number| {
        let path = format!("/api/seller/events/{event}/registerProducts");
        let added = seller.upload(Method::POST, &path, &form(number, "249999"), "image").await.expect(201);
        assert_eq!(added["message"], "product registered successfully");
    })
    .await;
    let listed = seller.get(&path).await;
    assert_eq!(list(&listed, "products").len(), PRODUCTS);
    let ids: Vec<String> =
        list(&listed, "products").iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    by_workers(async |number| {
        let path = format!("/api/seller/events/{event}/updateProduct/{}", ids[number]);
        let updated = seller.upload(Method::PUT, &path, &form(number, "199999"), "image").await.expect(200);
        assert_eq!(updated["message"], "product updated successfully");
    })
    .await;
    let shown = seller.get(&format!("/api/seller/events/{event}/getProduct/{}", ids[0])).await;
    let product = &shown["product"];
    assert_fields(product, &["id", "sellerId", "title", "description", "image"]);
    assert_eq!(product["eventId"], event);
    // A JSON number, not a text.
    assert_eq!((&product["price"], &product["frequency"]), (&json!(199_999), &json!(1)));
    assert_time(product, "createdAt");
    assert_time(product, "updatedAt");
    ids
}

async fn buy(app: &TestApp, visitor: &Browser, event: &str, products: &[String]) {
    let live = visitor.get("/api/buyer/events").await;
    let shown = &list(&live, "events")[0];
    assert_eq!(shown["id"], event);
    assert_fields(shown, &["eventName", "description", "imageBanner"]);
    assert_time(shown, "scheduledAt");
    let page = visitor.get(&format!("/api/buyer/event/{event}")).await;
    let offered = list(&page, "products");
    assert_eq!(offered.len(), PRODUCTS);
    for product in offered {
        assert_fields(product, &["productId", "title", "description", "currency", "image"]);
        assert_eq!((&product["price"], &product["availableStock"]), (&json!(199_999), &json!(1)));
        assert!(products.iter().any(|id| *id == product["productId"]), "{product}");
    }

    let buyers: Vec<Browser> = (0..PRODUCTS + WORKERS).map(|_| Browser::new(app)).collect();
    let purchase = async |number: usize| {
        let email = format!("buyer{}@gmail.com", number + 1);
        buyers[number].enter("buyer", "Buyer", 18, &email).await;
        let path = format!("/api/buyer/event/{event}/purchase/{}", products[number % PRODUCTS]);
        buyers[number].post(&path).await
    };
    let replies = futures::future::join_all((0..buyers.len()).map(purchase)).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.iter().enumerate().partition(|(_, reply)| reply.status == 201);
    assert_eq!((won.len(), lost.len()), (PRODUCTS, WORKERS));
    for (_, reply) in &won {
        assert_fields(&reply.body, &["reservationId"]);
        assert_eq!((&reply.body["status"], &reply.body["price"]), (&json!("CONFIRMED"), &json!(199_999)));
    }
    for (_, reply) in &lost {
        assert_eq!((reply.status, &reply.body["error"]), (409, &json!("sold out")));
    }
    let (winner, _) = won[0];
    let path = format!("/api/buyer/event/{event}/purchase/{}", products[winner % PRODUCTS]);
    let again = buyers[winner].post(&path).await;
    assert_eq!((again.status, &again.body["error"]), (409, &json!("already booked")));
    let nothing = buyers[winner].post(&format!("/api/buyer/event/{event}/purchase/{}", "0".repeat(24))).await;
    assert_eq!((nothing.status, &nothing.body["error"]), (404, &json!("product not found")));
}

async fn report(seller: &Browser, event: &str) {
    let fetched = seller.get(&format!("/api/seller/events/booking/fetch/{event}")).await;
    let orders = list(&fetched, "orders");
    assert_eq!(orders.len(), PRODUCTS);
    for order in orders {
        assert_fields(order, &["id", "userId", "productId", "reservationId"]);
        assert_eq!((&order["eventId"], &order["price"]), (&json!(event), &json!(199_999)));
        assert_eq!(order["status"], "CONFIRMED");
        assert_time(order, "createdAt");
        assert_time(order, "updatedAt");
    }
    let analytics = seller.get(&format!("/api/seller/events/booking/analytics/{event}")).await;
    let analytics = &analytics["analytics"];
    assert_eq!(analytics["totalOrders"], PRODUCTS);
    assert_eq!(analytics["totalRevenue"], 199_999 * PRODUCTS);
    assert_eq!(analytics["statusBreakdown"], json!({ "CONFIRMED": PRODUCTS }));
}

#[tokio::test]
async fn the_check_route_answers_in_its_inherited_shape() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let checked = buyer.get("/api/auth/check").await.expect(200);
    assert_eq!(checked["authenticated"], true);
    assert_eq!(checked["message"], "user is signedin");
    let user = &checked["user"];
    assert_eq!(user["id"], buyer.id.as_str());
    assert_eq!(user["emailId"], buyer.email.as_str());
    assert_eq!(
        (&user["role"], &user["isEmailVerified"], &user["isActive"]),
        (&json!("buyer"), &json!(true), &json!(true))
    );

    let reply = app.anonymous().get("/api/auth/check").await;
    reply.refused(401, "unauthenticated");
    assert_eq!(reply.body["error"], "Token is not present");
    let mut stranger = app.anonymous();
    stranger.token = Some("a.b.c".to_owned());
    let reply = stranger.get("/api/auth/check").await;
    reply.refused(401, "session_expired");
    assert_eq!(reply.body["error"], "session expired");
    app.finish().await;
}

#[tokio::test]
async fn an_empty_list_is_a_list_and_never_null() {
    let app = TestApp::start().await;
    let (buyer, seller, admin) = (app.buyer().await, app.seller().await, app.admin().await);
    let event = seller.create_event("Nothing yet").await;
    for (actor, path, list) in [
        (&buyer, "/api/buyer/events".to_owned(), "events"),
        (&buyer, "/api/buyer/orders".to_owned(), "orders"),
        (&seller, format!("/api/seller/events/{event}/getProducts"), "products"),
        (&seller, format!("/api/seller/events/booking/fetch/{event}"), "orders"),
        (&admin, "/api/admin/verifications/pending".to_owned(), "verifications"),
    ] {
        assert_eq!(actor.get(&path).await.expect(200)[list], json!([]), "{path}");
    }
    let other = app.seller().await;
    assert_eq!(other.get("/api/seller/events/get").await.expect(200)["events"], json!([]));
    let analytics = seller.get(&format!("/api/seller/events/booking/analytics/{event}")).await.expect(200);
    let analytics = &analytics["analytics"];
    assert_eq!((&analytics["totalOrders"], &analytics["totalRevenue"]), (&json!(0), &json!(0)));
    assert_eq!(analytics["statusBreakdown"], json!({}));
    app.finish().await;
}

#[tokio::test]
async fn refusals_carry_the_inherited_sentences() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 1).await;
    let (buyer, seller, event) = (app.buyer().await, &sale.seller, &sale.event);
    let sentence = |reply: Reply, status: u16, sentence: &str| {
        assert_eq!((reply.status, reply.body["error"].as_str()), (status, Some(sentence)), "{}", reply.body);
    };

    let live = sale.control("Live").await;
    assert_eq!(live.body["currentStatus"], "LIVE");
    assert_eq!(live.body["attemptedAction"], "LIVE");
    sentence(live, 409, "cannot transition sale from LIVE to LIVE");
    let text = [("title", "A title"), ("description", "Some text"), ("scheduledAt", "2099-01-01T00:00:00Z")];
    let created = seller.form(Method::POST, "/api/seller/events/create", &text, None).await;
    sentence(created, 400, "imageBanner file is required");
    let text = [("title", "A title"), ("description", "Ten characters"), ("price", "1"), ("frequency", "1")];
    let draft = seller.create_event("A draft").await;
    let path = format!("/api/seller/events/{draft}/registerProducts");
    sentence(seller.form(Method::POST, &path, &text, None).await, 400, "product image is required");
    let too_large = vec![0; (4 << 20) + 1];
    let reply = seller.form(Method::POST, &path, &text, Some(("image", too_large))).await;
    sentence(reply, 400, "file too large: maximum allowed size is 4MB");
    let reply = seller.form(Method::POST, &path, &text, Some(("image", b"GIF89a......".to_vec()))).await;
    sentence(reply, 400, "invalid format: only JPEG and PNG images are accepted");
    let mut broken = pictures::jpeg(64, 64);
    broken.truncate(300);
    let reply = seller.form(Method::POST, &path, &text, Some(("image", broken))).await;
    sentence(reply, 400, "image is corrupted or could not be decoded");
    let path = format!("/api/seller/events/update/{draft}");
    sentence(seller.put_json(&path, json!({})).await, 400, "no fields provided for update");

    sentence(buyer.get("/api/buyer/event/not-an-object-id").await, 400, "invalid event ID");
    sentence(seller.get("/api/seller/events/booking/fetch/zzz").await, 400, "invalid event ID");
    sentence(seller.get(&format!("/api/seller/events/get/{}", "0".repeat(24))).await, 404, "event not found");
    let path = format!("/api/seller/events/{event}/getProduct/{}", "0".repeat(24));
    sentence(seller.get(&path).await, 404, "product not found");
    let path = format!("/api/admin/verifications/{}", "0".repeat(24));
    sentence(app.admin().await.get(&path).await, 404, "verification request not found");
    sentence(buyer.get("/api/seller/events/get").await, 403, "Seller access required");
    sentence(seller.get("/api/buyer/events").await, 403, "buyer access required");
    sentence(seller.get("/api/admin/verifications/pending").await, 403, "admin access required");
    app.finish().await;
}
