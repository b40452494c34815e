//! Vouchers over HTTP: who enters what, who orders, and who sees a code.

use orbit::vouchers::IncomingUnit;
use serde_json::{Value, json};

use super::{Shop, without_reconciler};
use crate::harness::{self, Actor};

/// The shop's client orders through this account.
async fn member(shop: &Shop) -> Actor {
    let buyer = shop.app.buyer().await;
    let path = format!("/api/admin/vouchers/clients/{}", shop.client.id);
    let changed = shop.app.admin().await.put_json(&path, json!({ "members": [buyer.id] })).await.expect(200);
    assert_eq!(changed["members"], json!([buyer.id]));
    buyer
}

fn order(shop: &Shop, reference: &str, quantity: u32) -> Value {
    let product = shop.product.id.to_string();
    json!({ "reference": reference, "items": [{ "productId": product, "denomination": "25.00", "quantity": quantity }] })
}

#[tokio::test]
async fn an_order_is_made_read_shown_completed_and_listed() {
    let shop = Shop::open().await;
    shop.stock(3).await;
    let buyer = member(&shop).await;
    let made = buyer.post_json("/api/client/voucher-orders", order(&shop, "PO-1", 2)).await.expect(201);
    assert_eq!((&made["status"], &made["reference"]), (&json!("ALLOCATED"), &json!("PO-1")));
    let path = format!("/api/client/voucher-orders/{}", made["id"].as_str().unwrap());
    buyer.post(&format!("{path}/complete")).await.refused(409, "voucher_state");
    let shown = buyer.get(&format!("{path}/codes")).await;
    assert_eq!(shown.headers["cache-control"], "no-store");
    let codes = shown.expect(200);
    assert_eq!((&codes["codes"][0]["code"], &codes["codes"][1]["code"]), (&json!("CODE-0"), &json!("CODE-1")));
    assert_eq!(buyer.get(&format!("{path}/codes")).await.expect(200), codes);
    assert_eq!(buyer.get(&path).await.expect(200)["status"], "DELIVERED");
    buyer.post(&format!("{path}/complete")).await.expect(200);
    assert_eq!(buyer.get(&format!("{path}/codes")).await.expect(200), codes);
    let again = buyer.post_json("/api/client/voucher-orders", order(&shop, "PO-1", 2)).await.expect(201);
    assert_eq!(again["id"], made["id"]);
    buyer.post_json("/api/client/voucher-orders", order(&shop, "PO-1", 1)).await.refused(409, "reference_reused");
    buyer.post_json("/api/client/voucher-orders", order(&shop, "PO-2", 2)).await.refused(409, "vouchers_short");
    let listed = buyer.get("/api/client/voucher-orders?limit=1").await.expect(200);
    assert_eq!(
        (&listed["orders"][0]["reference"], &listed["orders"][0]["status"]),
        (&json!("PO-2"), &json!("CANCELLED"))
    );
    let cursor = listed["nextCursor"].as_str().unwrap();
    let rest = buyer.get(&format!("/api/client/voucher-orders?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!(rest["orders"][0]["id"], made["id"]);
    shop.assert_sound().await;
    shop.finish().await;
}

#[tokio::test]
async fn nobody_else_sees_or_touches_an_order() {
    let shop = Shop::open().await;
    shop.stock(1).await;
    let (buyer, stranger, admin) = (member(&shop).await, shop.app.buyer().await, shop.app.admin().await);
    let rival = json!({ "name": "Rival", "members": [stranger.id] });
    admin.post_json("/api/admin/vouchers/clients", rival).await.expect(201);
    let made = buyer.post_json("/api/client/voucher-orders", order(&shop, "PO-1", 1)).await.expect(201);
    let path = format!("/api/client/voucher-orders/{}", made["id"].as_str().unwrap());
    stranger.get(&path).await.refused(404, "not_found");
    stranger.get(&format!("{path}/codes")).await.refused(404, "not_found");
    stranger.post(&format!("{path}/cancel")).await.refused(404, "not_found");
    for outsider in [shop.app.buyer().await, admin] {
        outsider.get(&path).await.refused(403, "role_required");
        outsider.get(&format!("{path}/codes")).await.refused(403, "role_required");
    }
    assert_eq!(buyer.post(&format!("{path}/cancel")).await.expect(200)["status"], "CANCELLED");
    assert_eq!(buyer.post(&format!("{path}/cancel")).await.expect(200)["status"], "CANCELLED");
    buyer.get(&format!("{path}/codes")).await.refused(409, "voucher_state");
    shop.assert_sound().await;
    shop.finish().await;
}

#[tokio::test]
async fn an_administrator_keeps_the_inventory() {
    let shop = Shop::open().await;
    let mut kept: IncomingUnit = shop.unit(1, 60, "KEPT");
    kept.client = Some(shop.client.id);
    shop.app().vouchers().add(&[shop.unit(0, 60, "A"), shop.unit(0, 70, "B"), kept]).await.unwrap();
    let admin = shop.app.admin().await;
    let product = format!("/api/admin/vouchers/products/{}", shop.product.id);
    let shown = admin.get(&format!("{product}/availability")).await.expect(200);
    assert_eq!(
        (shown["pools"].as_array().unwrap().len(), &shown["claims"], &shown["difference"]),
        (2, &json!(0), &json!(0))
    );
    let tag = json!({ "clientId": shop.client.id.to_string(), "denomination": "25.00", "quantity": 5 });
    assert_eq!(admin.post_json(&format!("{product}/tags"), tag.clone()).await.expect(200)["units"], 2);
    assert_eq!(admin.post_json(&format!("{product}/untags"), tag).await.expect(200)["units"], 3);
    let bad = json!({ "clientId": shop.client.id.to_string(), "denomination": "26.00", "quantity": 5 });
    admin.post_json(&format!("{product}/tags"), bad).await.refused(400, "validation_failed");
    let blocked = admin.post("/api/admin/vouchers/units/1/block").await.expect(200);
    assert_eq!((&blocked["status"], blocked.get("code")), (&json!("BLOCKED"), None));
    admin.post("/api/admin/vouchers/units/1/block").await.refused(409, "voucher_state");
    admin.post("/api/admin/vouchers/units/1/unblock").await.expect(200);
    let pumped = admin.post(&format!("{product}/pump")).await.expect(200);
    assert_eq!(pumped, json!({ "units": 3, "moved": 0, "removed": 0 }));
    shop.finish().await;
}

#[tokio::test]
async fn records_are_entered_under_names_that_nobody_else_has() {
    let shop = Shop::open().await;
    let admin = shop.app.admin().await;
    admin.post_json("/api/admin/vouchers/vendors", json!({ "name": "ACME" })).await.refused(409, "name_taken");
    for name in ["", " Acme", "A\u{7}"] {
        admin.post_json("/api/admin/vouchers/vendors", json!({ "name": name })).await.refused(400, "validation_failed");
    }
    let nobody = "0123456789abcdef01234567";
    let product = json!({ "name": "Tea", "currency": "USD", "denominations": ["5"], "vendors": [nobody] });
    admin.post_json("/api/admin/vouchers/products", product).await.refused(400, "validation_failed");
    for (currency, worth) in [("XXX1", "5"), ("USD", "0"), ("USD", "1.234"), ("JPY", "1.5")] {
        let vendor = shop.product.vendors[0].to_string();
        let product = json!({ "name": "Tea", "currency": currency, "denominations": [worth], "vendors": [vendor] });
        admin.post_json("/api/admin/vouchers/products", product).await.refused(400, "validation_failed");
    }
    let vendors = admin.get("/api/admin/vouchers/vendors").await.expect(200);
    assert_eq!(vendors["vendors"].as_array().unwrap().len(), 2);
    let products = admin.get("/api/admin/vouchers/products").await.expect(200);
    assert_eq!(products["products"][0]["denominations"], json!(["25.00", "50.00"]));
    shop.finish().await;
}

#[tokio::test]
async fn an_order_can_be_reset_by_an_administrator_until_its_codes_are_seen() {
    let shop = Shop::with(without_reconciler(harness::config().await)).await;
    shop.stock(2).await;
    let (buyer, admin) = (member(&shop).await, shop.app.admin().await);
    let made = buyer.post_json("/api/client/voucher-orders", order(&shop, "PO-1", 1)).await.expect(201);
    let id = made["id"].as_str().unwrap();
    let reset = admin.post(&format!("/api/admin/vouchers/orders/{id}/reset")).await.expect(200);
    assert_eq!(reset["status"], "ALLOCATED");
    buyer.get(&format!("/api/client/voucher-orders/{id}/codes")).await.expect(200);
    admin.post(&format!("/api/admin/vouchers/orders/{id}/reset")).await.refused(409, "voucher_state");
    shop.assert_sound().await;
    shop.finish().await;
}
