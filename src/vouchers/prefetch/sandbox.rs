//! The vendor of trials: it sells as much as anybody wants, and what it sells is worth nothing.
//!
//! What it has sold is in the database, so that every process knows it. The codes follow from the order, by a keyed hash:
//! whoever asks again gets the same ones.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use futures::future::BoxFuture;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::stock::BoughtVoucher;
use super::vendor::{Availability, OrderOutcome, Refusal, VendorApi, VendorOrder};
use crate::config::{ExposeSecret, SecretString};
use crate::domain::clock::Clock;
use crate::domain::money::Money;
use crate::error::Result;
use crate::store::mongo::Mongo;
use crate::store::mongo::vouchers::SandboxVendorOrder;

/// The product that it never has.
const SOLD_OUT: &str = "sold-out";
/// What it has of every other one.
const UNITS: u32 = 1_000_000;
/// How long its vouchers are good.
const VALID_FOR: TimeDelta = TimeDelta::days(365);
/// Letters and digits that nobody takes for others.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The sandbox.
pub struct SandboxVendor {
    mongo: Arc<Mongo>,
    clock: Arc<dyn Clock>,
    key: SecretString,
}

impl std::fmt::Debug for SandboxVendor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxVendor").finish_non_exhaustive()
    }
}

impl SandboxVendor {
    /// A sandbox. Under another key the same orders have other codes.
    #[must_use]
    pub fn new(mongo: Arc<Mongo>, clock: Arc<dyn Clock>, key: SecretString) -> Self {
        Self { mongo, clock, key }
    }

    fn fulfilled(&self, order: &SandboxVendorOrder) -> OrderOutcome {
        let expires_at = order.sold_at + VALID_FOR;
        OrderOutcome::Fulfilled((0..order.count).map(|index| self.voucher(order, index, expires_at)).collect())
    }

    fn voucher(&self, order: &SandboxVendorOrder, index: u32, expires_at: chrono::DateTime<Utc>) -> BoughtVoucher {
        let text = |field: &str, length: usize| self.text(&order.external_id, index, field, length);
        BoughtVoucher {
            code: Some(format!("SBX-{}", text("code", 16)).into()),
            pin: Some(text("pin", 6).into()),
            claim_url: Some(format!("https://sandbox.invalid/{}", text("link", 20)).into()),
            reference: Some(format!("{}-{index}", order.external_id).into()),
            expires_at: Some(expires_at),
        }
    }

    /// Text that follows from the order, at most 32 characters.
    fn text(&self, external_id: &str, index: u32, field: &str, length: usize) -> String {
        let key = self.key.expose_secret().as_bytes();
        // A key of any length is one.
        let mut mac: Hmac<Sha256> = Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes any key"));
        mac.update(format!("{external_id}/{index}/{field}").as_bytes());
        let bytes = mac.finalize().into_bytes();
        bytes.iter().take(length).map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect()
    }
}

impl VendorApi for SandboxVendor {
    fn available<'a>(&'a self, product_ref: &'a str, _: Money) -> BoxFuture<'a, Result<Availability>> {
        let units = if product_ref == SOLD_OUT { 0 } else { UNITS };
        Box::pin(async move { Ok(Availability { units, discount_bp: None }) })
    }

    fn order<'a>(&'a self, order: &'a VendorOrder<'a>) -> BoxFuture<'a, Result<OrderOutcome>> {
        Box::pin(async move {
            if order.product_ref == SOLD_OUT {
                let reason = "out_of_stock".to_owned();
                return Ok(OrderOutcome::Refused(Refusal { permanent: true, reason }));
            }
            let external_id = order.external_id.to_owned();
            let new = SandboxVendorOrder { external_id, count: order.count, sold_at: self.clock.now() };
            Ok(self.fulfilled(&self.mongo.sandbox_vendor_orders.sell(&new).await?))
        })
    }

    fn find_order<'a>(&'a self, external_id: &'a str) -> BoxFuture<'a, Result<Option<OrderOutcome>>> {
        Box::pin(async move {
            let found = self.mongo.sandbox_vendor_orders.by_id(external_id).await?;
            Ok(found.map(|order| self.fulfilled(&order)))
        })
    }
}
