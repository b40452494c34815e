//! Who may do what: every route of the OpenAPI document, by everybody. A route without a row fails.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Reply, TestApp, business};

/// A route, and the status that each of [anonymous, buyer, the owner, another seller, administrator] gets, asked in the
/// order of the table: it is one life of an event, so each route is allowed when its row comes.
struct Row {
    method: &'static str,
    path: &'static str,
    expected: [u16; 5],
}

const fn row(method: &'static str, path: &'static str, expected: [u16; 5]) -> Row {
    Row { method, path, expected }
}

const PUBLIC_200: [u16; 5] = [200; 5];
/// An empty body breaks a rule, whoever sends it.
const PUBLIC_400: [u16; 5] = [400; 5];
const PUBLIC_404: [u16; 5] = [404; 5];

/// The owner gets this; somebody else's event is as good as none.
const fn owner(status: u16) -> [u16; 5] {
    [401, 403, status, 404, 403]
}

/// Any seller gets this.
const fn sellers(status: u16) -> [u16; 5] {
    [401, 403, status, status, 403]
}

const fn buyers(status: u16) -> [u16; 5] {
    [401, status, 403, 403, 403]
}

const fn admins(status: u16) -> [u16; 5] {
    [401, 403, 403, 403, status]
}

const fn signed_in(status: u16) -> [u16; 5] {
    [401, status, status, status, status]
}

const TABLE: &[Row] = &[
    row("get", "/health/live", PUBLIC_200),
    row("get", "/health/ready", PUBLIC_200),
    row("post", "/api/auth/signup", PUBLIC_400),
    row("post", "/api/auth/signin", PUBLIC_400),
    row("get", "/api/auth/check", signed_in(200)),
    // An event is prepared.
    row("get", "/api/seller/isVerified", sellers(200)),
    row("post", "/api/seller/verify", sellers(409)),
    row("post", "/api/seller/events/create", sellers(400)),
    row("get", "/api/seller/events/get", sellers(200)),
    row("get", "/api/seller/events/get/{id}", owner(200)),
    row("put", "/api/seller/events/update/{id}", owner(200)),
    row("post", "/api/seller/events/{eventId}/registerProducts", owner(400)),
    row("get", "/api/seller/events/{eventId}/getProducts", owner(200)),
    row("get", "/api/seller/events/{eventId}/getProduct/{productId}", owner(200)),
    row("put", "/api/seller/events/{eventId}/updateProduct/{productId}", owner(200)),
    // It goes on sale.
    row("post", "/api/seller/events/{eventId}/Live", owner(200)),
    row("get", "/api/seller/events/{eventId}/saleStatus", owner(200)),
    row("get", "/api/buyer/events", buyers(200)),
    row("get", "/api/buyer/event/{id}", buyers(200)),
    row("get", "/api/buyer/event/{id}/status", buyers(200)),
    row("post", "/api/buyer/event/{eventId}/purchase/{productId}", buyers(201)),
    row("get", "/api/buyer/event/{eventId}/reservation/{productId}", buyers(200)),
    // Its units are no vouchers.
    row("get", "/api/buyer/event/{eventId}/reservation/{productId}/codes", buyers(404)),
    // It needs no payment.
    row("post", "/api/buyer/event/{eventId}/reservation/{productId}/pay", buyers(409)),
    row("get", "/api/buyer/event/{eventId}/reservation/{productId}/payment", buyers(404)),
    row("get", "/api/buyer/orders", buyers(200)),
    row("post", "/api/seller/events/{eventId}/products/{productId}/restock", owner(400)),
    // There is no order of this name.
    row("post", "/api/seller/events/{eventId}/orders/{reservationId}/cancel", owner(404)),
    row("post", "/api/admin/orders/{reservationId}/cancel", admins(404)),
    row("post", "/api/buyer/event/{eventId}/reservation/{productId}/cancel", buyers(200)),
    // For the payment gateway and its page; what is not signed is refused, and there is no such payment.
    row("post", "/api/payments/callback", PUBLIC_400),
    row("get", "/api/sandbox/pay/{intentId}", PUBLIC_404),
    row("post", "/api/sandbox/pay/{intentId}", PUBLIC_404),
    row("post", "/api/seller/events/{eventId}/Pause", owner(200)),
    row("post", "/api/seller/events/{eventId}/Resume", owner(200)),
    row("post", "/api/seller/events/{eventId}/End", owner(200)),
    // Of a sale that has stopped, a stream ends.
    row("get", "/api/buyer/event/{id}/stream", buyers(200)),
    row("get", "/api/seller/events/booking/fetch/{eventId}", owner(200)),
    row("get", "/api/seller/events/booking/analytics/{eventId}", owner(200)),
    row("get", "/api/seller/events/{eventId}/analytics/products", owner(200)),
    row("get", "/api/seller/events/{eventId}/analytics/series", owner(200)),
    row("get", "/api/seller/events/{eventId}/orders.csv", owner(200)),
    row("get", "/api/seller/events/{eventId}/orders.ndjson", owner(200)),
    row("delete", "/api/seller/events/{eventId}/deleteProduct/{productId}", owner(200)),
    row("delete", "/api/seller/events/delete/{id}", owner(200)),
    // The seller is told.
    row("post", "/api/seller/webhooks", sellers(400)),
    row("get", "/api/seller/webhooks", sellers(200)),
    row("get", "/api/seller/webhooks/{webhookId}", owner(200)),
    row("put", "/api/seller/webhooks/{webhookId}", owner(400)),
    row("post", "/api/seller/webhooks/{webhookId}/secrets", owner(201)),
    row("get", "/api/seller/webhooks/{webhookId}/deliveries", owner(200)),
    row("post", "/api/seller/webhooks/{webhookId}/deliveries/{deliveryId}/replays", owner(404)),
    row("delete", "/api/seller/webhooks/{webhookId}", owner(200)),
    // Administration of somebody else.
    row("get", "/api/admin/verifications/pending", admins(200)),
    row("get", "/api/admin/verifications/{id}", admins(200)),
    row("post", "/api/admin/verifications/{id}/approve", admins(200)),
    row("post", "/api/admin/verifications/{id}/reject", admins(409)),
    row("post", "/api/admin/accounts/{id}/block", admins(200)),
    row("post", "/api/admin/accounts/{id}/unblock", admins(200)),
    // Vouchers: the buyer orders for a client.
    row("post", "/api/admin/vouchers/vendors", admins(400)),
    row("get", "/api/admin/vouchers/vendors", admins(200)),
    row("post", "/api/admin/vouchers/clients", admins(400)),
    row("get", "/api/admin/vouchers/clients", admins(200)),
    row("post", "/api/admin/vouchers/products", admins(400)),
    row("get", "/api/admin/vouchers/products", admins(200)),
    row("get", "/api/admin/vouchers/products/{productId}/availability", admins(200)),
    row("post", "/api/admin/vouchers/products/{productId}/tags", admins(400)),
    row("post", "/api/admin/vouchers/products/{productId}/untags", admins(400)),
    row("post", "/api/admin/vouchers/products/{productId}/pump", admins(200)),
    row("post", "/api/admin/vouchers/imports", admins(400)),
    row("get", "/api/admin/vouchers/imports", admins(200)),
    row("get", "/api/admin/vouchers/imports/{importId}", admins(404)),
    row("get", "/api/admin/vouchers/imports/{importId}/report.csv", admins(404)),
    row("get", "/api/admin/vouchers/template.xlsx", admins(200)),
    row("get", "/api/admin/vouchers/template.csv", admins(200)),
    // The vendor has no connection yet, and there is no job.
    row("put", "/api/admin/vouchers/vendors/{vendorId}/connection", admins(400)),
    row("get", "/api/admin/vouchers/vendors/{vendorId}/connection", admins(404)),
    row("delete", "/api/admin/vouchers/vendors/{vendorId}/connection", admins(404)),
    row("post", "/api/admin/vouchers/prefetch-jobs", admins(400)),
    row("get", "/api/admin/vouchers/prefetch-jobs", admins(200)),
    row("get", "/api/admin/vouchers/prefetch-jobs/{jobId}", admins(404)),
    row("post", "/api/admin/vouchers/prefetch-jobs/{jobId}/kill", admins(404)),
    row("post", "/api/admin/vouchers/prefetch-jobs/{jobId}/batches/{batch}/ask", admins(404)),
    row("post", "/api/admin/vouchers/prefetch-jobs/{jobId}/batches/{batch}/resolve", admins(404)),
    // There is no such unit, and no such order.
    row("post", "/api/admin/vouchers/units/{unitId}/block", admins(404)),
    row("post", "/api/admin/vouchers/units/{unitId}/unblock", admins(404)),
    row("put", "/api/admin/vouchers/units/{unitId}/expiry", admins(404)),
    row("post", "/api/admin/vouchers/orders/{orderId}/reset", admins(404)),
    row("post", "/api/client/voucher-orders", buyers(400)),
    row("get", "/api/client/voucher-orders", buyers(200)),
    row("get", "/api/client/voucher-orders/{orderId}", buyers(404)),
    row("get", "/api/client/voucher-orders/{orderId}/codes", buyers(404)),
    row("post", "/api/client/voucher-orders/{orderId}/cancel", buyers(404)),
    row("post", "/api/client/voucher-orders/{orderId}/complete", buyers(404)),
    row("put", "/api/admin/vouchers/clients/{clientId}", admins(200)),
    row("post", "/api/auth/signout", signed_in(200)),
];

/// What `{...}` stands for.
struct Ids {
    event: String,
    product: String,
    verification: String,
    account: String,
    webhook: String,
    vendor: String,
    voucher_product: String,
    client: String,
}

impl Ids {
    fn fill(&self, path: &str) -> String {
        let id = match path {
            _ if path.starts_with("/api/admin/accounts") => &self.account,
            _ if path.starts_with("/api/admin/verifications") => &self.verification,
            _ => &self.event,
        };
        // No delivery has the id of an event.
        let product = if path.starts_with("/api/admin/vouchers") { &self.voucher_product } else { &self.product };
        let path = path
            .replace("{clientId}", &self.client)
            .replace("{orderId}", &self.event)
            .replace("{importId}", &self.event)
            .replace("{vendorId}", &self.vendor)
            .replace("{jobId}", &self.event)
            .replace("{batch}", "1")
            .replace("{unitId}", "77");
        let path = path.replace("{webhookId}", &self.webhook).replace("{deliveryId}", &self.event);
        path.replace("{eventId}", &self.event).replace("{productId}", product).replace("{id}", id)
    }
}

/// A body that suits each of the routes that read one, but neither sign-up, sign-in nor the two forms that need a file.
fn body() -> Value {
    let mut body = business();
    body["title"] = json!("Another title");
    body["reason"] = json!("Not good enough");
    body
}

async fn ask(actor: &Actor, method: &str, path: &str) -> Reply {
    let method: Method = method.to_uppercase().parse().unwrap();
    let request = actor.request(method.clone(), path);
    Actor::send(if method == Method::POST || method == Method::PUT { request.json(&body()) } else { request }).await
}

/// Every (method, path) of the document.
fn documented() -> BTreeSet<(String, String)> {
    let document = serde_json::to_value(orbit::http::router::document()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "delete", "patch", "head", "options", "trace"] {
            if item.get(method).is_some() {
                routes.insert((method.to_owned(), path.clone()));
            }
        }
    }
    routes
}

#[test]
fn every_documented_route_has_a_row() {
    let rows: BTreeSet<_> = TABLE.iter().map(|row| (row.method.to_owned(), row.path.to_owned())).collect();
    assert_eq!(rows.len(), TABLE.len(), "a route has two rows");
    let documented = documented();
    let missing: Vec<_> = documented.difference(&rows).collect();
    assert!(missing.is_empty(), "add a row to TABLE for {missing:?}");
    let gone: Vec<_> = rows.difference(&documented).collect();
    assert!(gone.is_empty(), "the document has no {gone:?}");
}

#[tokio::test]
async fn everybody_gets_what_the_table_says_from_every_route() {
    let app = TestApp::start().await;
    let (owner, other) = (app.approved_seller().await, app.approved_seller().await);
    let (buyer, admin, applicant) = (app.buyer().await, app.admin().await, app.seller().await);
    let event = owner.create_event("Spring drop").await;
    let product = owner.add_product(&event, "A product", "10", 5).await;
    applicant.post_json("/api/seller/verify", business()).await.expect(200);
    let pending = admin.get("/api/admin/verifications/pending").await.expect(200);
    let verification = pending["verifications"][0]["id"].as_str().unwrap().to_owned();
    // Of something that does not happen here.
    let hook = json!({ "url": "https://shop.example/hooks", "eventTypes": ["reservation.expired"] });
    let created = owner.post_json("/api/seller/webhooks", hook).await.expect(201);
    let webhook = created["webhook"]["id"].as_str().unwrap().to_owned();
    let (vendor, client, voucher_product) = voucher_records(&admin, &buyer).await;
    let ids = Ids { event, product, verification, account: applicant.id, webhook, vendor, voucher_product, client };

    let mut wrong = Vec::new();
    for row in TABLE {
        let path = ids.fill(row.path);
        // Those who must not, first: the one who may changes things.
        for index in [0, 1, 3, 4, 2] {
            let anonymous = app.anonymous();
            let actors = [&anonymous, &buyer, &owner, &other, &admin];
            let names = ["anonymous", "buyer", "owner", "other seller", "administrator"];
            let reply = ask(actors[index], row.method, &path).await;
            let (expected, who) = (row.expected[index], names[index]);
            if reply.status != expected || !well_formed(&reply, who) {
                wrong.push(format!("{} {} by {who}: {expected} expected, got {}", row.method, row.path, reply.status));
                wrong.push(reply.body.to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    app.finish().await;
}

/// A vendor, a client for which this buyer orders, and a product of vouchers.
async fn voucher_records(admin: &Actor, buyer: &Actor) -> (String, String, String) {
    let id = |body: Value| body["id"].as_str().unwrap().to_owned();
    let vendor = id(admin.post_json("/api/admin/vouchers/vendors", json!({ "name": "Acme" })).await.expect(201));
    let client = json!({ "name": "Shoes Inc", "members": [buyer.id] });
    let client = id(admin.post_json("/api/admin/vouchers/clients", client).await.expect(201));
    let product = json!({ "name": "Coffee", "currency": "USD", "denominations": ["25.00"], "vendors": [vendor] });
    (vendor, client, id(admin.post_json("/api/admin/vouchers/products", product).await.expect(201)))
}

/// A refusal says what it is, in the dialect that clients of its kind know.
fn well_formed(reply: &Reply, who: &str) -> bool {
    let body = &reply.body;
    match reply.status {
        401 => body["code"] == "unauthenticated" && body["error"] == "Token is not present" && who == "anonymous",
        403 => body["code"] == "role_required" && body["error"].is_string() && body["message"] == body["error"],
        404 => body["code"] == "not_found" && body["error"].as_str().is_some_and(|text| text.ends_with(" not found")),
        _ => true,
    }
}

#[tokio::test]
async fn a_product_is_reached_only_through_its_own_event() {
    let app = TestApp::start().await;
    let (victim, thief) = (app.approved_seller().await, app.approved_seller().await);
    let event = victim.create_event("The victim's").await;
    let product = victim.add_product(&event, "Not for you", "199.99", 5).await;
    let own = thief.create_event("The thief's").await;
    let sibling = victim.create_event("The victim's other").await;
    let shown = format!("/api/seller/events/{event}/getProduct/{product}");
    let before = victim.get(&shown).await.expect(200);

    // Through the thief's own event, and through another event of the same seller.
    for (actor, through) in [(&thief, &own), (&victim, &sibling)] {
        let path = |verb: &str| format!("/api/seller/events/{through}/{verb}/{product}");
        let replies = [
            actor.get(&path("getProduct")).await,
            actor.put_json(&path("updateProduct"), json!({ "price": 1, "title": "Mine now" })).await,
            actor.delete(&path("deleteProduct")).await,
        ];
        for reply in replies {
            reply.refused(404, "not_found");
            assert_eq!(reply.body["error"], "product not found");
        }
        let listed = actor.get(&format!("/api/seller/events/{through}/getProducts")).await.expect(200);
        assert_eq!(listed["products"], json!([]));
    }
    assert_eq!(victim.get(&shown).await.expect(200), before);
    app.finish().await;
}

#[tokio::test]
async fn a_sale_is_opened_only_by_its_owner_however_the_id_is_spelled() {
    let app = TestApp::start().await;
    let (owner, other) = (app.approved_seller().await, app.approved_seller().await);
    let event = owner.create_event("Spring drop").await;
    owner.add_product(&event, "A product", "10", 1).await;
    let upper = event.to_uppercase();
    for id in [&event, &upper] {
        other.post(&format!("/api/seller/events/{id}/Live")).await.refused(404, "not_found");
    }
    owner.post(&format!("/api/seller/events/{upper}/Live")).await.expect(200);
    let again = owner.post(&format!("/api/seller/events/{event}/Live")).await;
    again.refused(409, "transition_refused");
    app.finish().await;
}

#[tokio::test]
async fn a_bearer_token_is_as_good_as_the_cookie() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    let token = buyer.token.clone().unwrap();
    let request = app.anonymous().request(Method::GET, "/api/auth/check");
    let checked = Actor::send(request.header("authorization", format!("Bearer {token}"))).await.expect(200);
    assert_eq!(checked["user"]["id"], buyer.id.as_str());
    let request = app.anonymous().request(Method::GET, "/api/auth/check");
    Actor::send(request.header("authorization", format!("Basic {token}"))).await.refused(401, "unauthenticated");
    app.finish().await;
}
