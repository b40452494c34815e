//! Approval of sellers.

use bson::{Document, doc};
use orbit::config::ExposeSecret;
use serde_json::{Value, json};

use crate::harness::{Actor, TestApp, business, eventually};

/// A collection of the test's database, as it is stored.
pub async fn collection(app: &TestApp, name: &str) -> mongodb::Collection<Document> {
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    client.database(&app.config().mongo.database).collection(name)
}

/// A seller whose request waits, the administrator, and the request.
async fn applied(app: &TestApp) -> (Actor, Actor, Value) {
    let (seller, admin) = (app.seller().await, app.admin().await);
    seller.post_json("/api/seller/verify", business()).await.expect(200);
    let pending = admin.get("/api/admin/verifications/pending").await.expect(200);
    let found = pending["verifications"].as_array().unwrap().iter().find(|one| one["sellerId"] == seller.id.as_str());
    let request = found.unwrap().clone();
    (seller, admin, request)
}

fn decide(request: &Value, decision: &str) -> String {
    format!("/api/admin/verifications/{}/{decision}", request["id"].as_str().unwrap())
}

#[tokio::test]
async fn approval_takes_effect_in_a_session_that_was_there_before() {
    let app = TestApp::start().await;
    let (seller, admin, request) = applied(&app).await;
    let event = seller.create_event("Spring drop").await;
    seller.add_product(&event, "A product", "10", 1).await;
    let live = format!("/api/seller/events/{event}/Live");
    seller.post(&live).await.refused(403, "not_approved");
    let checked = seller.get("/api/auth/check").await.expect(200);
    assert_eq!(checked["user"]["isApproved"], false);

    let approved = admin.post(&decide(&request, "approve")).await.expect(200);
    assert_eq!(approved["message"], "seller verification approved");
    seller.post(&live).await.expect(200);
    let checked = seller.get("/api/auth/check").await.expect(200);
    assert_eq!(checked["user"]["isApproved"], true);
    app.finish().await;
}

#[tokio::test]
async fn a_rejected_seller_waits_and_is_told_until_when() {
    let app = TestApp::start().await;
    let (seller, admin, request) = applied(&app).await;
    let verified = seller.get("/api/seller/isVerified").await;
    verified.refused(403, "not_approved");
    assert_eq!(verified.body["error"], "seller is not verified");
    assert_eq!(verified.body["next_allowed_date"], Value::Null);

    let reject = decide(&request, "reject");
    for reason in [json!({}), json!({ "reason": "no" }), json!({ "reason": "x".repeat(501) })] {
        admin.post_json(&reject, reason).await.refused(400, "validation_failed");
    }
    let rejected = admin.post_json(&reject, json!({ "reason": "The number is wrong" })).await.expect(200);
    assert_eq!(rejected["message"], "seller verification rejected");

    let again = seller.post_json("/api/seller/verify", business()).await;
    again.refused(429, "rate_limited");
    let wait_s: u64 = again.headers["retry-after"].parse().unwrap();
    assert!((86_000..=86_400).contains(&wait_s), "{wait_s}");
    let verified = seller.get("/api/seller/isVerified").await;
    verified.refused(403, "not_approved");
    let until = chrono::DateTime::parse_from_rfc3339(verified.body["next_allowed_date"].as_str().unwrap()).unwrap();
    let left = until.to_utc() - app.app().clock().now();
    assert!((86_000..=86_400).contains(&left.num_seconds()), "{left}");
    app.finish().await;
}

#[tokio::test]
async fn a_rejected_seller_may_ask_again_after_the_wait() {
    let mut config = crate::harness::config().await;
    config.accounts.verification_cooldown_s = 2;
    let app = TestApp::with(config).await;
    let (seller, admin, request) = applied(&app).await;
    admin.post_json(&decide(&request, "reject"), json!({ "reason": "The number is wrong" })).await.expect(200);
    let early = seller.post_json("/api/seller/verify", business()).await;
    early.refused(429, "rate_limited");
    assert!(["1", "2"].contains(&early.headers["retry-after"].as_str()), "{:?}", early.headers);
    eventually("the seller may ask again", || async {
        seller.post_json("/api/seller/verify", business()).await.status == 200
    })
    .await;
    seller.post_json("/api/seller/verify", business()).await.refused(409, "verification_exists");
    // Repeating the old rejection does not open another round.
    admin.post_json(&decide(&request, "reject"), json!({ "reason": "The number is wrong" })).await.expect(200);
    seller.post_json("/api/seller/verify", business()).await.refused(409, "verification_exists");
    let pending = admin.get("/api/admin/verifications/pending").await.expect(200);
    let second = &pending["verifications"][0];
    assert_ne!(second["id"], request["id"]);
    admin.post(&decide(second, "approve")).await.expect(200);
    seller.get("/api/seller/isVerified").await.expect(200);
    // Nor does it take the approval back that came after it.
    admin.post_json(&decide(&request, "reject"), json!({ "reason": "The number is wrong" })).await.expect(200);
    seller.get("/api/seller/isVerified").await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn a_decision_can_be_repeated_but_not_turned_round() {
    let app = TestApp::start().await;
    let (seller, admin, request) = applied(&app).await;
    for _ in 0..2 {
        admin.post(&decide(&request, "approve")).await.expect(200);
    }
    let turned = admin.post_json(&decide(&request, "reject"), json!({ "reason": "On second thoughts" })).await;
    turned.refused(409, "verification_decided");
    assert_eq!(turned.body["currentStatus"], "approved");
    seller.get("/api/seller/isVerified").await.expect(200);

    let (_, admin, request) = applied(&app).await;
    for reason in ["The first reason", "The second reason"] {
        admin.post_json(&decide(&request, "reject"), json!({ "reason": reason })).await.expect(200);
    }
    let turned = admin.post(&decide(&request, "approve")).await;
    turned.refused(409, "verification_decided");
    assert_eq!(turned.body["currentStatus"], "rejected");
    assert_eq!(turned.body["error"], "cannot set verification status from rejected to approved");
    let path = format!("/api/admin/verifications/{}", request["id"].as_str().unwrap());
    let detail = admin.get(&path).await.expect(200);
    assert_eq!(detail["verification"]["status"], "rejected");
    assert_eq!(detail["verification"]["rejectionReason"], "The first reason");
    assert_eq!(detail["verification"]["reviewedBy"], admin.id.as_str());
    app.finish().await;
}

#[tokio::test]
async fn two_opposite_decisions_at_once_have_one_outcome() {
    let app = TestApp::start().await;
    let (seller, admin, request) = applied(&app).await;
    let (approve, reject) = (decide(&request, "approve"), decide(&request, "reject"));
    let (approved, rejected) =
        tokio::join!(admin.post(&approve), admin.post_json(&reject, json!({ "reason": "The number is wrong" })));
    let mut statuses = [approved.status, rejected.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{} {}", approved.body, rejected.body);
    let verified = seller.get("/api/seller/isVerified").await.status;
    assert_eq!(verified, if approved.status == 200 { 200 } else { 403 });
    app.finish().await;
}

#[tokio::test]
async fn a_seller_has_one_open_request() {
    let app = TestApp::start().await;
    let (seller, admin, request) = applied(&app).await;
    seller.post_json("/api/seller/verify", business()).await.refused(409, "verification_exists");
    admin.post(&decide(&request, "approve")).await.expect(200);
    seller.post_json("/api/seller/verify", business()).await.refused(409, "verification_exists");

    let hasty = app.seller().await;
    let ask = || hasty.post_json("/api/seller/verify", business());
    let mut statuses: Vec<u16> =
        futures::future::join_all((0..4).map(|_| ask())).await.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
    app.finish().await;
}

#[tokio::test]
async fn each_business_detail_is_required() {
    let app = TestApp::start().await;
    let seller = app.seller().await;
    for field in business().as_object().unwrap().keys() {
        for value in [json!(""), Value::Null, json!("x".repeat(201))] {
            let mut details = business();
            details[field] = value.clone();
            let reply = seller.post_json("/api/seller/verify", details).await;
            assert_eq!(reply.status, 400, "{field}: {value}: {}", reply.body);
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn the_account_number_is_masked_in_the_list_whole_in_the_detail_and_sealed_at_rest() {
    let app = TestApp::start().await;
    let (_, admin, request) = applied(&app).await;
    assert_eq!(request["accountNumber"], "******7890");
    let path = format!("/api/admin/verifications/{}", request["id"].as_str().unwrap());
    let detail = admin.get(&path).await.expect(200);
    assert_eq!(detail["verification"]["accountNumber"], "1234567890");

    let stored = collection(&app, "verification").await.find_one(doc! {}).await.unwrap().unwrap();
    assert_eq!(stored.get_str("companyName").unwrap(), "Acme");
    assert!(!stored.to_string().contains("1234567890"), "{stored}");
    assert!(!stored.to_string().contains("7890"), "{stored}");
    app.finish().await;
}
