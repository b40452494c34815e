//! How vendors are reached: what an administrator may say, and what is kept of it.

use bson::{Document, doc};
use orbit::config::ExposeSecret;
use serde_json::json;

use super::office::{JOBS, Office};
use super::vendor::{API_KEY, Vendor};

#[tokio::test]
async fn a_connection_is_set_seen_switched_off_and_removed() {
    let (office, vendor) = (Office::open().await, Vendor::start(1, 5_000, None).await);
    office.admin.get(&office.connection()).await.refused(404, "not_found");
    let set = office.connect(&vendor).await;
    assert_eq!((&set["kind"], &set["enabled"], &set["setBy"]), (&json!("HTTP"), &json!(true), &json!(office.admin.id)));
    assert_eq!(office.admin.get(&office.connection()).await.expect(200), set);
    // What is stored is not the key.
    let client = mongodb::Client::with_uri_str(office.app.config().mongo.uri.expose_secret()).await.unwrap();
    let stored = client.database(&office.app.config().mongo.database).collection::<Document>("vendorConnections");
    let stored = stored.find_one(doc! {}).await.unwrap().unwrap();
    assert!(stored.get_str("key").unwrap().len() > API_KEY.len() && !stored.to_string().contains(API_KEY), "{stored}");

    // The same address keeps its key, another one needs its own.
    let off = json!({ "kind": "HTTP", "baseUrl": vendor.url(), "enabled": false });
    assert_eq!(office.admin.put_json(&office.connection(), off).await.expect(200)["enabled"], false);
    office.admin.post_json(JOBS, office.wanted("a", 10)).await.refused(400, "validation_failed");
    let moved = json!({ "kind": "HTTP", "baseUrl": "https://vendor.example/api" });
    let refused = office.admin.put_json(&office.connection(), moved).await;
    refused.refused(400, "validation_failed");
    assert_eq!(refused.body["fields"][0]["field"], "apiKey");
    let on = json!({ "kind": "HTTP", "baseUrl": vendor.url() });
    office.admin.put_json(&office.connection(), on).await.expect(200);
    let job = office.job("a", 10).await;
    office.until(&job, "COMPLETED").await;

    office.admin.delete(&office.connection()).await.expect(200);
    office.admin.delete(&office.connection()).await.refused(404, "not_found");
    office.admin.get(&office.connection()).await.refused(404, "not_found");
    office.admin.post_json(JOBS, office.wanted("b", 10)).await.refused(400, "validation_failed");
    office.finish().await;
}

#[tokio::test]
async fn an_address_inside_the_network_is_refused() {
    let office = Office::with(|config| {
        (config.prefetch.allow_http, config.prefetch.allow_private) = (false, false);
    })
    .await;
    for url in [
        "https://127.0.0.1/api",
        "https://10.0.0.7/",
        "https://169.254.169.254/latest",
        "https://[::1]/",
        "https://localhost/",
        "http://vendor.example/",
        "https://key@vendor.example/",
        "https://vendor.example/?key=1",
        "vendor.example",
        "",
    ] {
        let body = json!({ "kind": "HTTP", "baseUrl": url, "apiKey": API_KEY });
        let reply = office.admin.put_json(&office.connection(), body).await;
        reply.refused(400, "validation_failed");
        assert_eq!(reply.body["fields"][0]["field"], "baseUrl", "{url}");
    }
    office.admin.get(&office.connection()).await.refused(404, "not_found");
    let body = json!({ "kind": "HTTP", "baseUrl": "https://vendor.example/api", "apiKey": API_KEY });
    office.admin.put_json(&office.connection(), body).await.expect(200);
    office.finish().await;
}

#[tokio::test]
async fn the_rules_that_hold_now_count_and_not_those_when_it_was_set() {
    let (office, vendor) = (Office::open().await, Vendor::start(1, 5_000, None).await);
    office.connect(&vendor).await;
    let mut config = office.app.config().clone();
    (config.prefetch.allow_private, config.prefetch.sandbox) = (false, false);
    let (mongo, clock) = (office.app.app().mongo(), office.app.app().clock());
    let strict = orbit::vouchers::prefetch::Connections::new(mongo.clone(), clock.clone(), &config).unwrap();
    let id = office.vendor.parse().unwrap();
    let api = orbit::vouchers::prefetch::Vendors::api(&strict, id).await;
    assert_eq!(api.unwrap_err().code().as_str(), "validation_failed");
    office.admin.put_json(&office.connection(), json!({ "kind": "SANDBOX" })).await.expect(200);
    assert!(orbit::vouchers::prefetch::Vendors::api(&strict, id).await.unwrap().is_none());
    office.finish().await;
}

#[tokio::test]
async fn the_sandbox_sells_where_it_is_allowed_and_nowhere_else() {
    let office = Office::open().await;
    let sandbox = json!({ "kind": "SANDBOX" });
    let set = office.admin.put_json(&office.connection(), sandbox.clone()).await.expect(200);
    assert_eq!((&set["kind"], set.get("baseUrl")), (&json!("SANDBOX"), None));
    let job = office.job("play", 120).await;
    office.until(&job, "COMPLETED").await;
    assert_eq!(office.available().await, (120, 120));
    for wrong in [
        json!({ "kind": "SANDBOX", "apiKey": API_KEY }),
        json!({ "kind": "SANDBOX", "baseUrl": "https://vendor.example" }),
        json!({ "kind": "HTTP", "apiKey": API_KEY }),
        json!({ "kind": "FTP" }),
    ] {
        office.admin.put_json(&office.connection(), wrong).await.refused(400, "validation_failed");
    }
    office.finish().await;

    let strict = Office::with(|config| config.prefetch.sandbox = false).await;
    let refused = strict.admin.put_json(&strict.connection(), sandbox).await;
    refused.refused(400, "validation_failed");
    assert_eq!(refused.body["fields"][0]["field"], "kind");
    strict.finish().await;
}
