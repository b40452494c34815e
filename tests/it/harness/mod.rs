//! What every test stands on: real servers, an application of its own, and actors that speak HTTP.
//!
//! One Redis and one MongoDB server serve the whole run (given by `ORBIT_TEST_REDIS_URL` and `ORBIT_TEST_MONGO_URI`, else
//! started here). Each test has its own key prefix and database, so tests run in parallel. A test that breaks a server
//! starts one of its own.

mod actors;
mod clock;
mod hang_up;
pub mod pictures;
pub mod process;
pub mod proxy;
pub mod s3;
mod servers;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use orbit::app::App;
use orbit::config::{Config, TEST};
use orbit::http::serve::Running;
use orbit::sale::check::Verdict;
use serde_json::json;

pub use actors::{Actor, Reply};
pub use clock::TestClock;
pub use hang_up::Pending;
pub use servers::{own_lasting_mongo, own_mongo, own_redis, redis_options, servers};

pub const PASSWORD: &str = "Password123";
pub const ADMIN_EMAIL: &str = "admin@orbit.example";

/// An application of the test's own, and the actors around it.
pub struct TestApp {
    pub running: Running,
    config: Config,
}

/// A configuration on the shared servers with a key prefix and a database that no other test has.
pub async fn config() -> Config {
    orbit::tls::install();
    let servers = servers().await;
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let mut config = Config::with_layer(TEST).unwrap();
    config.live.url = servers.redis_url.clone().into();
    config.live.key_prefix = format!("t{unique}:");
    config.live.durability = orbit::config::Durability::None;
    config.mongo.uri = servers.mongo_uri.clone().into();
    config.mongo.database = format!("t{unique}");
    config.media.filesystem.dir = std::env::temp_dir().join(format!("orbit-test-{unique}"));
    config.accounts.bootstrap_admin_email = ADMIN_EMAIL.to_owned();
    config.accounts.bootstrap_admin_password = PASSWORD.into();
    config.validate().unwrap();
    config
}

impl TestApp {
    /// An application with the test configuration.
    pub async fn start() -> Self {
        Self::with(config().await).await
    }

    /// An application with a configuration of the test's own.
    pub async fn with(config: Config) -> Self {
        orbit::telemetry::logs::start(&config.log);
        let running = App::start(config.clone()).await.unwrap();
        Self { running, config }
    }

    /// As [`Self::with`], with a clock of the test's own.
    pub async fn with_clock(config: Config, clock: Arc<dyn orbit::domain::clock::Clock>) -> Self {
        orbit::telemetry::logs::start(&config.log);
        let running = App::start_with_clock(config.clone(), clock).await.unwrap();
        Self { running, config }
    }

    /// A second process of the same service: the same stores, another port.
    pub async fn second(&self) -> Self {
        Self::with(self.config.clone()).await
    }

    pub fn app(&self) -> &Arc<App> {
        &self.running.app
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.running.address)
    }

    /// Somebody who is not signed in.
    pub fn anonymous(&self) -> Actor {
        Actor::new(self.url())
    }

    /// A new buyer, signed in.
    pub async fn buyer(&self) -> Actor {
        self.anonymous().sign_up("buyer").await
    }

    /// A number of new buyers, signed in, who share their connections.
    pub async fn buyers(&self, count: usize) -> Vec<Actor> {
        let anonymous = self.anonymous();
        futures::stream::iter(0..count).map(|_| anonymous.clone().sign_up("buyer")).buffered(16).collect().await
    }

    /// A new seller, signed in, not approved.
    pub async fn seller(&self) -> Actor {
        self.anonymous().sign_up("seller").await
    }

    /// The administrator, signed in.
    pub async fn admin(&self) -> Actor {
        self.anonymous().sign_in(ADMIN_EMAIL, PASSWORD).await
    }

    /// A new seller whom the administrator has approved.
    pub async fn approved_seller(&self) -> Actor {
        let seller = self.seller().await;
        seller.post_json("/api/seller/verify", business()).await.expect(200);
        let admin = self.admin().await;
        let pending = admin.get("/api/admin/verifications/pending").await.expect(200);
        let requests = pending["verifications"].as_array().unwrap();
        let own = requests.iter().find(|request| request["sellerId"] == seller.id.as_str()).unwrap();
        let approve = format!("/api/admin/verifications/{}/approve", own["id"].as_str().unwrap());
        admin.post(&approve).await.expect(200);
        seller
    }

    /// A live sale: its seller, its event's id, and its products' ids in order.
    pub async fn live_sale(&self, products: usize, units: u32) -> LiveSale {
        let seller = self.approved_seller().await;
        let event = seller.create_event("Spring drop").await;
        let mut ids = Vec::new();
        for number in 0..products {
            ids.push(seller.add_product(&event, &format!("Product {number}"), "199.99", units).await);
        }
        seller.post(&format!("/api/seller/events/{event}/Live")).await.expect(200);
        LiveSale { seller, event, products: ids }
    }

    /// Another actor of the same account, speaking to this process.
    pub fn here(&self, actor: &Actor) -> Actor {
        actor.at(self.url())
    }

    /// Stops the application and asserts that nothing of it still runs.
    pub async fn finish(self) {
        let mongo = Arc::clone(self.running.app.mongo());
        mongo.drop_database().await.unwrap();
        assert!(self.running.stop().await, "some task outlived the application");
        drop(std::fs::remove_dir_all(&self.config.media.filesystem.dir));
    }
}

pub struct LiveSale {
    pub seller: Actor,
    pub event: String,
    pub products: Vec<String>,
}

impl LiveSale {
    /// The purchase path of a product.
    pub fn purchase(&self, product: usize) -> String {
        format!("/api/buyer/event/{}/purchase/{}", self.event, self.products[product])
    }

    /// Live, Pause, Resume or End.
    pub async fn control(&self, action: &str) -> Reply {
        self.seller.post(&format!("/api/seller/events/{}/{action}", self.event)).await
    }

    /// The settled orders.
    pub async fn orders(&self) -> Vec<serde_json::Value> {
        let body = self.seller.get(&format!("/api/seller/events/booking/fetch/{}", self.event)).await.expect(200);
        body["orders"].as_array().unwrap().clone()
    }

    /// Units of a product that a buyer sees as available.
    pub async fn available(&self, buyer: &Actor, product: usize) -> u64 {
        let page = buyer.get(&format!("/api/buyer/event/{}", self.event)).await.expect(200);
        let products = page["products"].as_array().unwrap();
        let found = products.iter().find(|item| item["productId"] == self.products[product].as_str()).unwrap();
        found["availableStock"].as_u64().unwrap()
    }

    /// Every invariant that the stores can show, by the service's own check.
    pub async fn assert_sound(&self, app: &App) {
        let event = app.catalogue().event(self.event.parse().unwrap()).await.unwrap();
        for check in app.sale().check(&event).await.unwrap() {
            assert_eq!(check.verdict, Verdict::Holds, "{}: {}", check.name, check.detail);
        }
    }
}

pub fn business() -> serde_json::Value {
    json!({
        "companyName": "Acme", "gstin": "22AAAAA0000A1Z5", "accountHolderName": "Jo Doe",
        "accountNumber": "1234567890", "ifscCode": "HDFC0001", "bankName": "HDFC",
    })
}

/// Awaits a condition: asks again until it holds, and fails after thirty seconds with what was awaited.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "not within thirty seconds: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
