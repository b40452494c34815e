//! Measuring: how fast units are allocated and pumped, as ratios to the least that the servers have to do for it, in one run.
//!
//! It works on units of its own, under a key prefix and in a database that the caller has made for it and clears.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use futures::{StreamExt, TryStreamExt};

use super::{Allocation, Vouchers};
use crate::domain::ids::{VendorId, VoucherProductId};
use crate::domain::money::Money;
use crate::domain::voucher::{Pool, Unit, UnitId, UnitStatus};
use crate::error::{Error, Result};
use crate::store::live::{Claiming, Placement, Yardstick};
use crate::store::mongo::new_id;
use crate::store::mongo::vouchers::units::NewUnit;

/// Units that are made, or written, at once.
const UNITS_AT_ONCE: u64 = 1_000;

/// How long things took.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Units that were pumped.
    pub pumped: u64,
    /// From the database into the pools.
    pub pump: Duration,
    /// The same keys, written without looking, by one pipelined connection.
    pub bare_write: Duration,
    /// Allocations of one code each.
    pub allocated: u64,
    /// Claims of one code each in the live store, so many callers at once.
    pub claim: Duration,
    /// The same pops by a bare script through one pipelined connection.
    pub bare_pop: Duration,
    /// Whole allocations of one code each, the database included.
    pub allocate: Duration,
    /// Of these, how many.
    pub whole: u64,
}

impl Vouchers {
    /// Measures with so many units. `told` is told what is being done.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn measure(
        &self,
        yardstick: &Yardstick,
        (units, allocations, callers): (u64, u64, usize),
        told: impl Fn(&str),
    ) -> Result<Measured> {
        let pool = Pool {
            product: VoucherProductId::from_bytes(new_id()),
            denomination: Money { minor: 2_500, currency: self.currency },
            vendor: VendorId::from_bytes(new_id()),
            client: None,
        };
        told(&format!("writing {units} units into the database"));
        self.write_units(pool, units).await?;
        told("pumping them");
        let started = Instant::now();
        let pumped = self.pump(pool.product).await?;
        let pump = started.elapsed();
        if pumped.moved != units {
            return Err(Error::internal("measuring", format!("{} of {units} units were pumped", pumped.moved)));
        }
        told("writing the same keys without looking");
        let bare = Pool { product: VoucherProductId::from_bytes(new_id()), ..pool };
        let bare_write = self.write_bare(yardstick, bare, units).await?;
        told(&format!("claiming {allocations} codes, {callers} callers at once"));
        let started = Instant::now();
        self.each(allocations, callers, |item| self.claim(pool, item)).await?;
        let claim = started.elapsed();
        // They are settled as they are made, in a shop; a million open ones would be in the way of what follows.
        yardstick.clear(&self.live.keys().claims(pool.product)).await?;
        told("the same pops by a bare script");
        let bare_pop = yardstick.pop(&bare, usize::try_from(allocations).unwrap_or(usize::MAX)).await?;
        let whole = allocations / 10;
        told(&format!("allocating {whole} codes, the database included"));
        let started = Instant::now();
        self.each(whole, callers, |item| self.allocate_one(pool, format!("whole {item}"))).await?;
        let allocate = started.elapsed();
        Ok(Measured { pumped: units, pump, bare_write, allocated: allocations, claim, bare_pop, allocate, whole })
    }

    async fn each<F: Future<Output = Result<()>>>(
        &self,
        count: u64,
        callers: usize,
        work: impl Fn(String) -> F,
    ) -> Result<()> {
        futures::stream::iter(0..count)
            .map(|number| work(number.to_string()))
            .buffer_unordered(callers)
            .try_collect()
            .await
    }

    fn made_up(&self, pool: Pool, number: u64) -> Unit {
        // Expiries are spread, as they are in a shop.
        let hours = i64::try_from(number % 10_000).unwrap_or(0);
        Unit {
            id: UnitId::new(number + 1),
            product: pool.product,
            denomination: pool.denomination,
            vendor: pool.vendor,
            client: None,
            expires_at: self.sold_from() + TimeDelta::days(30) + TimeDelta::hours(hours),
            status: UnitStatus::Available,
            item: None,
            revision: 1,
        }
    }

    async fn write_units(&self, pool: Pool, count: u64) -> Result<()> {
        for first in (0..count).step_by(UNITS_AT_ONCE as usize) {
            let numbers = first..count.min(first + UNITS_AT_ONCE);
            let new = |number: u64| NewUnit {
                unit: self.made_up(pool, number),
                secrets: Default::default(),
                code_hash: None,
                checksum: format!("{} {number}", pool.product),
                origin: "measuring".to_owned(),
            };
            self.durable.voucher_units.insert(&numbers.map(new).collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    async fn write_bare(&self, yardstick: &Yardstick, pool: Pool, count: u64) -> Result<Duration> {
        const PAGE: u64 = 50_000;
        let mut took = Duration::ZERO;
        for first in (0..count).step_by(PAGE as usize) {
            let units: Vec<Unit> = (first..count.min(first + PAGE)).map(|number| self.made_up(pool, number)).collect();
            let placed = |unit| Placement { unit, pool: Some(pool), settled: None };
            took += yardstick.write(pool.product, &units.iter().map(placed).collect::<Vec<_>>()).await?;
        }
        Ok(took)
    }

    async fn claim(&self, pool: Pool, item: String) -> Result<()> {
        match self.live.allocate(pool.product, &[pool], self.sold_from(), &[item]).await? {
            Claiming::Claimed(_) => Ok(()),
            Claiming::Short(_) => Err(Error::internal("measuring", "the pool is empty")),
        }
    }

    async fn allocate_one(&self, pool: Pool, item: String) -> Result<()> {
        let wanted = Allocation {
            product: pool.product,
            denomination: pool.denomination,
            client: None,
            vendors: vec![pool.vendor],
            only_kept: false,
            expires_from: self.sold_from(),
            items: vec![item],
        };
        self.allocate(&wanted).await.map(drop)
    }
}
