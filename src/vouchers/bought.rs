//! Codes that were bought from a vendor come in.

use chrono::TimeDelta;
use futures::future::BoxFuture;

use super::prefetch::{Added, BoughtBatch, BoughtVoucher, Stock};
use super::{IncomingUnit, Vouchers};
use crate::domain::voucher::Secrets;
use crate::error::Result;

/// How long a code can be used whose vendor does not say.
const LIFE: TimeDelta = TimeDelta::days(365);

impl Stock for Vouchers {
    fn add(&self, batch: BoughtBatch) -> BoxFuture<'_, Result<Added>> {
        Box::pin(async move {
            let origin = batch.external_id.clone();
            let expires_at = self.clock.now() + LIFE;
            let incoming = |voucher: BoughtVoucher| IncomingUnit {
                product: batch.product,
                denomination: batch.denomination,
                vendor: batch.vendor,
                client: batch.client,
                expires_at: voucher.expires_at.unwrap_or(expires_at),
                secrets: Secrets {
                    code: voucher.code,
                    pin: voucher.pin,
                    claim_url: voucher.claim_url,
                    reference: voucher.reference,
                },
                origin: origin.clone(),
            };
            let units: Vec<IncomingUnit> = batch.vouchers.into_iter().map(incoming).collect();
            Self::add(self, &units).await?;
            Ok(Added { units: self.durable.voucher_units.count_of_origin(&origin).await? })
        })
    }
}
