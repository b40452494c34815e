//! Vouchers: units, pools, claims, orders, on real servers.

mod allocation;
mod api;
mod command;
mod imports;
mod on_sale;
mod orders;
mod placing;
mod recovery;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use orbit::app::App;
use orbit::config::Config;
use orbit::domain::clock::{Clock, SystemClock};
use orbit::domain::ids::{ClientId, UserId, VendorId, VoucherProductId};
use orbit::domain::money::{Money, currency};
use orbit::domain::voucher::{Client, Secrets, Unit, Vendor, VoucherLine, VoucherProduct};
use orbit::store::mongo::new_id;
use orbit::vouchers::{Allocation, IncomingUnit};

use crate::harness::{self, TestApp};

/// A product of two vendors, a client, and the application that they are in.
struct Shop {
    app: TestApp,
    product: VoucherProduct,
    client: Client,
}

/// Nothing but what is called works on vouchers.
fn without_reconciler(mut config: Config) -> Config {
    config.vouchers.reconcile_interval_ms = 3_600_000;
    config
}

fn worth(minor: i64) -> Money {
    Money { minor, currency: currency("USD").unwrap() }
}

fn days(count: i64) -> DateTime<Utc> {
    // Scores are whole seconds.
    DateTime::from_timestamp((SystemClock.now() + TimeDelta::days(count)).timestamp(), 0).unwrap()
}

impl Shop {
    async fn open() -> Self {
        Self::with(without_reconciler(harness::config().await)).await
    }

    async fn with(config: Config) -> Self {
        Self::of(TestApp::with(config).await).await
    }

    async fn of(app: TestApp) -> Self {
        let (created_at, vouchers) = (SystemClock.now(), app.app().vouchers());
        let mut vendors = Vec::new();
        for name in ["Acme", "Bolt"] {
            let vendor = Vendor { id: VendorId::from_bytes(new_id()), name: name.to_owned(), created_at };
            vendors.push(vouchers.enter_vendor(vendor).await.unwrap().id);
        }
        let product = VoucherProduct {
            id: VoucherProductId::from_bytes(new_id()),
            name: "Coffee".to_owned(),
            currency: currency("USD").unwrap(),
            denominations: vec![2_500, 5_000],
            vendors,
            created_at,
        };
        let product = vouchers.enter_product(product).await.unwrap();
        let client = Client {
            id: ClientId::from_bytes(new_id()),
            name: "Shoes Inc".to_owned(),
            members: vec![UserId::from_bytes(new_id())],
            refuses: Vec::new(),
            validity_days_min: None,
            created_at,
        };
        let client = vouchers.enter_client(client).await.unwrap();
        Self { app, product, client }
    }

    fn app(&self) -> &Arc<App> {
        self.app.app()
    }

    /// A unit of a vendor that expires in so many days.
    fn unit(&self, vendor: usize, expires_in: i64, code: &str) -> IncomingUnit {
        IncomingUnit {
            product: self.product.id,
            denomination: worth(2_500),
            vendor: self.product.vendors[vendor],
            client: None,
            expires_at: days(expires_in),
            secrets: Secrets { code: Some(code.into()), ..Secrets::default() },
            origin: "test".to_owned(),
        }
    }

    /// So many units of the first vendor, all expiring on one day.
    async fn stock(&self, count: usize) {
        let units: Vec<_> = (0..count).map(|number| self.unit(0, 100, &format!("CODE-{number}"))).collect();
        assert_eq!(self.app().vouchers().add(&units).await.unwrap().added, count);
    }

    fn wanted(&self, items: &[String]) -> Allocation {
        Allocation {
            product: self.product.id,
            denomination: worth(2_500),
            client: Some(self.client.id),
            vendors: self.product.vendors.clone(),
            only_kept: false,
            expires_from: days(30),
            items: items.to_vec(),
        }
    }

    async fn allocate(&self, items: &[String]) -> orbit::error::Result<Vec<Unit>> {
        self.app().vouchers().allocate(&self.wanted(items)).await
    }

    fn line(&self, quantity: u32) -> VoucherLine {
        VoucherLine { product: self.product.id, denomination: worth(2_500), quantity }
    }

    /// Pools and database agree, and every claim is settled.
    async fn assert_placed(&self) {
        let check = self.app().vouchers().check().await.unwrap();
        assert!(check.misplaced.is_empty() && check.stale.is_empty() && check.claims == 0, "{check:?}");
    }

    /// And every unit has its owner.
    async fn assert_sound(&self) {
        let check = self.app().vouchers().check().await.unwrap();
        assert!(check.holds() && check.claims == 0, "{check:?}");
    }

    async fn finish(self) {
        self.app.finish().await;
    }
}

/// Items of an order that does not exist.
fn items(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}-1-{number:04}")).collect()
}
