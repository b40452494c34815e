//! What an administrator has who buys vouchers over HTTP: a vendor, a product, and the service.

use orbit::config::Config;
use serde_json::{Value, json};

use super::vendor::{API_KEY, PRODUCT, Vendor};
use crate::harness::{self, Actor, TestApp, eventually};

pub const JOBS: &str = "/api/admin/vouchers/prefetch-jobs";

pub struct Office {
    pub app: TestApp,
    pub admin: Actor,
    pub vendor: String,
    pub product: String,
}

impl Office {
    pub async fn open() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = harness::config().await;
        // A busy machine is slow to answer.
        config.mongo.deadline_ms = 30_000;
        config.vouchers.claim_ttl_ms = 30_000;
        adjust(&mut config);
        config.validate().unwrap();
        let app = TestApp::with(config).await;
        let admin = app.admin().await;
        let vendor = entered(&admin, "vendors", json!({ "name": "Acme" })).await;
        let product = json!({ "name": "Card", "currency": "EUR", "denominations": ["50.00"], "vendors": [vendor] });
        let product = entered(&admin, "products", product).await;
        Self { app, admin, vendor, product }
    }

    /// The path of the vendor's connection.
    pub fn connection(&self) -> String {
        format!("/api/admin/vouchers/vendors/{}/connection", self.vendor)
    }

    /// The vendor is reached there from now on.
    pub async fn connect(&self, vendor: &Vendor) -> Value {
        let body = json!({ "kind": "HTTP", "baseUrl": vendor.url(), "apiKey": API_KEY });
        self.admin.put_json(&self.connection(), body).await.expect(200)
    }

    /// A job for so many units, to be made.
    pub fn wanted(&self, reference: &str, units: u32) -> Value {
        json!({
            "reference": reference, "productId": self.product, "denomination": "50.00", "units": units,
            "candidates": [{ "vendorId": self.vendor, "productRef": PRODUCT, "discountBp": 250 }],
        })
    }

    /// Makes a job, and returns its path.
    pub async fn job(&self, reference: &str, units: u32) -> String {
        let made = self.admin.post_json(JOBS, self.wanted(reference, units)).await.expect(201);
        format!("{JOBS}/{}", made["id"].as_str().unwrap())
    }

    pub async fn show(&self, job: &str) -> Value {
        self.admin.get(job).await.expect(200)
    }

    /// Waits until a job is in this state, and returns it.
    pub async fn until(&self, job: &str, state: &str) -> Value {
        eventually("the job is in the state", || async { self.show(job).await["state"] == state }).await;
        self.show(job).await
    }

    /// (units in the database, units in pools).
    pub async fn available(&self) -> (u64, u64) {
        let path = format!("/api/admin/vouchers/products/{}/availability", self.product);
        let shown = self.admin.get(&path).await.expect(200);
        let sum =
            |field: &str| shown["pools"].as_array().unwrap().iter().map(|pool| pool[field].as_u64().unwrap()).sum();
        (sum("database"), sum("pool"))
    }

    pub async fn finish(self) {
        self.app.finish().await;
    }
}

/// Enters a record, and returns its id.
pub async fn entered(admin: &Actor, what: &str, body: Value) -> String {
    let made = admin.post_json(&format!("/api/admin/vouchers/{what}"), body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}
