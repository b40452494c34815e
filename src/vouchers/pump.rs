//! The pump: every pool is compared with the database and mended, while it is in use.
//!
//! Pools are never cleared and filled again. Each available unit is placed where it belongs, which changes nothing if it is
//! there; then each member of a pool that has others is looked up, and goes if no unit is to be had under its name. Claims stay.

use std::collections::{HashMap, HashSet};

use super::{Inventory, Vouchers};
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::{Unit, UnitId};
use crate::error::Result;
use crate::store::live::link::Link;

/// Units in memory at once.
const UNITS_AT_ONCE: u32 = 2_000;

/// What the pump found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pumped {
    /// Available units in the database.
    pub units: u64,
    /// Of those, units that were not in their pool, and are now.
    pub moved: u64,
    /// Members of pools that were not to be had, and are gone.
    pub removed: u64,
}

impl std::ops::AddAssign for Pumped {
    fn add_assign(&mut self, other: Self) {
        self.units += other.units;
        self.moved += other.moved;
        self.removed += other.removed;
    }
}

impl Pumped {
    /// How far pools and database were apart.
    #[must_use]
    pub const fn drift(&self) -> u64 {
        self.moved + self.removed
    }
}

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Compares and mends the pools of every product.
    ///
    /// # Errors
    /// When a store does not answer: pumping again goes on.
    pub async fn pump_all(&self) -> Result<Pumped> {
        let mut pumped = Pumped::default();
        for product in self.product_ids().await? {
            pumped += self.pump(product).await?;
        }
        Ok(pumped)
    }

    /// Compares and mends the pools of a product.
    ///
    /// # Errors
    /// When a store does not answer: pumping again goes on.
    pub async fn pump(&self, product: VoucherProductId) -> Result<Pumped> {
        let mut pumped = Pumped::default();
        let page = |after| self.durable.units_page(product, after, UNITS_AT_ONCE);
        let mut units = page(None).await?;
        let (from, mut sizes, mut all_in) = (self.sold_from(), HashMap::<String, u64>::new(), true);
        while let Some(last) = units.last() {
            // The database reads the next page while the live store works on this one.
            let (next, placed) = tokio::join!(page(Some(last.id)), self.place_settling(&units, |_| None));
            let placed = placed?;
            pumped.units += units.len() as u64;
            pumped.moved += placed.moved;
            all_in &= placed.claimed == 0 && placed.stale == 0;
            for pool in units.iter().filter_map(|unit| unit.pool(from)) {
                *sizes.entry(self.live.keys().pool(&pool)).or_default() += 1;
            }
            units = next?;
        }
        for (pool, size) in self.live.pool_sizes(product).await? {
            // A pool that has what was placed, and no more, has no stray. Should one hide behind a unit that was taken
            // meanwhile, it is refused when it is allocated, and found by the next pump.
            if all_in && sizes.get(&pool) == Some(&size) {
                continue;
            }
            pumped.removed += self.purge(product, &pool).await?;
        }
        tracing::info!(%product, units = pumped.units, moved = pumped.moved, removed = pumped.removed, "pools pumped");
        Ok(pumped)
    }

    /// Removes what is in a pool and not to be had.
    async fn purge(&self, product: VoucherProductId, pool: &str) -> Result<u64> {
        let (mut cursor, mut removed) = (0, 0);
        loop {
            let (next, members) = self.live.pool_page(pool, cursor, UNITS_AT_ONCE as usize).await?;
            let ids: Vec<UnitId> = members.iter().filter_map(|member| UnitId::from_member(member)).collect();
            let known: Vec<Unit> = self.durable.units(&ids).await?;
            // Whatever its state is, this puts a known unit where it belongs.
            removed += self.place_settling(&known, |_| None).await?.moved;
            let known: HashSet<String> = known.iter().map(|unit| unit.id.member()).collect();
            let strays: Vec<String> = members.into_iter().filter(|member| !known.contains(member)).collect();
            removed += self.live.purge_pool(product, pool, &strays).await?;
            if next == 0 {
                return Ok(removed);
            }
            cursor = next;
        }
    }
}
