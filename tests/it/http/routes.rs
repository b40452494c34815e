//! Paths and methods: what does not exist is refused in JSON, and nothing in a path is ever a server error.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Reply, TestApp};

/// Each path of the document with its methods.
fn documented() -> Vec<(String, Vec<Method>)> {
    let document = serde_json::to_value(orbit::http::router::document()).unwrap();
    let methods = |item: &Value| {
        let named = ["get", "post", "put", "delete"].iter().filter(|method| item.get(method).is_some());
        named.map(|method| method.to_uppercase().parse().unwrap()).collect()
    };
    document["paths"].as_object().unwrap().iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[tokio::test]
async fn an_unknown_route_is_a_404_in_json() {
    let app = TestApp::start().await;
    let buyer = app.buyer().await;
    for path in
        ["/", "/api", "/api/nothing", "/api/buyer/event", "/API/auth/check", "/metrics", "/api/seller/events/x/live"]
    {
        let reply = buyer.get(path).await;
        reply.refused(404, "route_not_found");
        assert_eq!(reply.headers["content-type"], "application/json", "{path}");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_wrong_method_is_a_405_in_json_that_says_which_are_right() {
    let app = TestApp::start().await;
    for (path, methods) in documented() {
        let reply = Actor::send(app.anonymous().request(Method::PATCH, &path)).await;
        reply.refused(405, "method_not_allowed");
        let allowed = &reply.headers["allow"];
        for method in methods {
            assert!(allowed.contains(method.as_str()), "{path}: {allowed}");
        }
    }
    app.finish().await;
}

/// The routes whose clients know a malformed event id as 400 `invalid event ID`.
const MALFORMED_IS_400: [&str; 5] = [
    "/api/buyer/event/{id}",
    "/api/buyer/event/{id}/status",
    "/api/buyer/event/{id}/stream",
    "/api/seller/events/booking/fetch/{eventId}",
    "/api/seller/events/booking/analytics/{eventId}",
];

const MALFORMED: [&str; 16] = [
    "0123456789abcdef0123456",
    "0123456789abcdef012345678",
    "0123456789abcdeg01234567",
    "not-an-object-id",
    "%E2%98%83",
    "%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9",
    "%20",
    "%20123456789abcdef01234567",
    "0123456789abcdef01234567%20",
    "%00",
    "%00123456789abcdef0123456",
    "%ff%fe",
    "%7B%22$gt%22:%22%22%7D",
    "a%2Fb",
    "-1",
    "1%0d%0aX-Evil:%201",
];

#[tokio::test]
async fn a_malformed_id_names_nothing_on_every_route_and_is_never_a_server_error() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 1).await;
    let (buyer, admin) = (app.buyer().await, app.admin().await);
    let client = json!({ "name": "Shoes Inc", "members": [buyer.id] });
    admin.post_json("/api/admin/vouchers/clients", client).await.expect(201);
    let mut wrong = Vec::new();
    for (path, methods) in documented().into_iter().filter(|(path, _)| path.contains('{')) {
        let actor = match path.split('/').nth(2) {
            Some("buyer" | "client") => &buyer,
            Some("seller") => &sale.seller,
            _ => &admin,
        };
        for method in methods {
            for broken in MALFORMED {
                for filled in with_one_broken(&path, &sale.event, broken) {
                    let reply = send(actor, &method, &filled).await;
                    let expected = if MALFORMED_IS_400.contains(&path.as_str()) { &[400, 404][..] } else { &[404] };
                    let well_formed = reply.body["code"].is_string() && reply.body["requestId"].is_string();
                    if !expected.contains(&reply.status) || !well_formed || reply.headers.contains_key("x-evil") {
                        wrong.push(format!("{method} {filled}: {} {}", reply.status, reply.body));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    for path in MALFORMED_IS_400 {
        let filled = path.replace("{id}", "zzz").replace("{eventId}", "zzz");
        let actor = if path.contains("/buyer/") { &buyer } else { &sale.seller };
        actor.get(&filled).await.refused(400, "malformed_id");
    }
    app.finish().await;
}

/// The path with each of its parameters broken in turn, the others naming something real.
fn with_one_broken(path: &str, event: &str, broken: &str) -> Vec<String> {
    let parameters: Vec<&str> = path.split('/').filter(|part| part.starts_with('{')).collect();
    let fill = |which: &str| {
        let parts = path.split('/').map(|part| match part {
            part if part == which => broken,
            part if part.starts_with('{') => event,
            part => part,
        });
        parts.collect::<Vec<_>>().join("/")
    };
    parameters.into_iter().map(fill).collect()
}

async fn send(actor: &Actor, method: &Method, path: &str) -> Reply {
    let request = actor.request(method.clone(), path);
    let body = json!({ "title": "A title", "reason": "A long enough reason" });
    Actor::send(if *method == Method::POST || *method == Method::PUT { request.json(&body) } else { request }).await
}
