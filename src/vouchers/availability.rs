//! Availability: what the database can sell, and what the pools hold, side by side.

use std::collections::HashMap;

use super::Vouchers;
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::Pool;
use crate::error::Result;

/// Units of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolAvailability {
    /// Which.
    pub pool: Pool,
    /// Available units in the database that do not expire too soon.
    pub database: u64,
    /// Units in the pool.
    pub pooled: u64,
}

/// Units of a product.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Availability {
    /// By denomination, vendor and client.
    pub pools: Vec<PoolAvailability>,
    /// Units in pools of which the database has nothing.
    pub strays: u64,
    /// Units that orders are about to get: available in the database, and in no pool.
    pub claims: u64,
}

impl Availability {
    /// Units that the database has and that are neither in pools nor claimed; negative if the pools have more. Anything but
    /// zero on a quiet system is drift.
    #[must_use]
    pub fn difference(&self) -> i64 {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let pools: i64 = self.pools.iter().map(|row| signed(row.database) - signed(row.pooled)).sum();
        pools - signed(self.strays) - signed(self.claims)
    }
}

impl Vouchers {
    /// What can be had of a product.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn availability(&self, product: VoucherProductId) -> Result<Availability> {
        let counted = self.durable.voucher_units.count_by_pool(product, self.sold_from()).await?;
        let mut sizes: HashMap<String, u64> = self.live.pool_sizes(product).await?.into_iter().collect();
        let row = |(pool, database): (Pool, u64)| {
            let pooled = sizes.remove(&self.live.keys().pool(&pool)).unwrap_or_default();
            PoolAvailability { pool, database, pooled }
        };
        let pools = counted.into_iter().map(row).collect();
        let claims = self.live.open_claims(product).await?.0.len() as u64;
        Ok(Availability { pools, strays: sizes.values().sum(), claims })
    }
}
