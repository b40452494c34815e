//! `lua/allocate.lua` and `lua/place.lua`: pools of voucher units, and claims on them.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Live;
use super::link::Link;
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::{Pool, Unit, UnitId, denomination_text};
use crate::error::Result;

/// How long it is remembered that a unit is in no pool: longer than any placement can be late.
const TOMBSTONE: Duration = Duration::from_secs(60 * 60);
/// Units in one call: each has two keys.
const PLACED_AT_ONCE: usize = 200;

/// A unit that was taken for an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The order item.
    pub item: String,
    /// The unit.
    pub unit: UnitId,
    /// The second at which it expires.
    pub score: i64,
    /// It was kept for the client.
    pub reserved: bool,
}

/// What came of an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claiming {
    /// A unit for each item.
    Claimed(Vec<Claimed>),
    /// So many items could have had one; nothing was changed.
    Short(usize),
}

/// A claim that is neither confirmed nor struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenClaim {
    /// The order item.
    pub item: String,
    /// The unit.
    pub unit: UnitId,
    /// When, by Redis' clock in milliseconds.
    pub at_ms: i64,
}

/// Where a unit belongs.
#[derive(Debug, Clone)]
pub struct Placement<'a> {
    /// The unit as the database has it.
    pub unit: &'a Unit,
    /// The pool, or none.
    pub pool: Option<Pool>,
    /// The item whose claim on it is settled by this.
    pub settled: Option<&'a str>,
}

/// How placements went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed {
    /// Units that were not where they belong.
    pub moved: u64,
    /// Units that were.
    pub same: u64,
    /// Units of which a newer state was placed before.
    pub stale: u64,
    /// Units that an order is about to get.
    pub claimed: u64,
}

impl std::ops::AddAssign for Placed {
    fn add_assign(&mut self, other: Self) {
        self.moved += other.moved;
        self.same += other.same;
        self.stale += other.stale;
        self.claimed += other.claimed;
    }
}

impl<L: Link> Live<L> {
    /// Claims a unit for each item, or none at all: from the reserved pools first, soonest expiry first. Nothing that
    /// expires before `expires_from` is taken.
    ///
    /// # Errors
    /// When the live store does not answer: asking again for the same items claims nothing twice.
    pub async fn allocate(
        &self,
        product: VoucherProductId,
        pools: &[Pool],
        expires_from: DateTime<Utc>,
        items: &[String],
    ) -> Result<Claiming> {
        let mut call = self.scripts.allocate.prepare_invoke();
        call.key(self.keys.claims(product));
        let (reserved, general): (Vec<&Pool>, Vec<&Pool>) = pools.iter().partition(|pool| pool.client.is_some());
        for pool in reserved.iter().chain(&general) {
            call.key(self.keys.pool(pool));
        }
        call.arg(reserved.len()).arg(expires_from.timestamp());
        for item in items {
            call.arg(item);
        }
        let reply = self.invoke("allocate", &call).await?;
        match reply.tag() {
            "CLAIMED" => {
                let claimed = items.iter().enumerate().map(|(index, item)| {
                    let at = index * 3 + 1;
                    let unit = UnitId::from_member(reply.field(at)?).ok_or_else(|| reply.damaged("unknown member"))?;
                    let reserved = reply.field(at + 2)? == "R";
                    Ok(Claimed { item: item.clone(), unit, score: reply.parse(at + 1)?, reserved })
                });
                claimed.collect::<Result<_>>().map(Claiming::Claimed)
            }
            "SHORT" => Ok(Claiming::Short(reply.parse(1)?)),
            _ => Err(reply.damaged("unknown tag")),
        }
    }

    /// Puts units of one product where they belong.
    ///
    /// # Errors
    /// When the live store does not answer: some may be placed; placing again is safe.
    pub async fn place(&self, product: VoucherProductId, placements: &[Placement<'_>]) -> Result<Placed> {
        let mut placed = Placed::default();
        for batch in placements.chunks(PLACED_AT_ONCE) {
            placed += self.place_batch(product, batch).await?;
        }
        Ok(placed)
    }

    async fn place_batch(&self, product: VoucherProductId, batch: &[Placement<'_>]) -> Result<Placed> {
        let pools = self.keys.pools(product);
        let mut call = self.scripts.place.prepare_invoke();
        call.key(self.keys.claims(product)).key(&pools).arg(u64::try_from(TOMBSTONE.as_millis()).unwrap_or(u64::MAX));
        for Placement { unit, pool, settled } in batch {
            call.key(self.keys.unit(product, unit.id));
            call.key(pool.as_ref().map_or_else(|| pools.clone(), |pool| self.keys.pool(pool)));
            call.arg(unit.id.member()).arg(unit.revision).arg(unit.score());
            call.arg(u8::from(pool.is_some())).arg(settled.unwrap_or_default());
            call.arg(unit.vendor.to_string()).arg(denomination_text(unit.denomination));
            call.arg(unit.client.map(|client| client.to_string()).unwrap_or_default());
        }
        let reply = self.invoke("place", &call).await?;
        if reply.tag() != "PLACED" || reply.rest().len() != batch.len() {
            return Err(reply.damaged("unknown tag"));
        }
        let mut placed = Placed::default();
        for outcome in reply.rest() {
            match outcome.as_str() {
                "MOVED" => placed.moved += 1,
                "SAME" => placed.same += 1,
                "STALE" => placed.stale += 1,
                "CLAIMED" => placed.claimed += 1,
                _ => return Err(reply.damaged("unknown outcome")),
            }
        }
        Ok(placed)
    }

    /// Claims that are open, in no order, and the time by Redis' clock in milliseconds.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn open_claims(&self, product: VoucherProductId) -> Result<(Vec<OpenClaim>, i64)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGETALL").arg(self.keys.claims(product));
        pipeline.cmd("TIME");
        let (claims, (seconds, micros)): (Vec<(String, String)>, (i64, i64)) =
            self.query_all("reading claims", &pipeline).await?;
        let read = |(item, claim): (String, String)| {
            let mut parts = claim.split(' ');
            let unit = UnitId::from_member(parts.next()?)?;
            let at_ms = parts.nth(1)?.parse().ok()?;
            Some(OpenClaim { item, unit, at_ms })
        };
        Ok((claims.into_iter().filter_map(read).collect(), seconds * 1_000 + micros / 1_000))
    }

    /// Strikes a claim on a unit that does not exist.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn forget_claim(&self, product: VoucherProductId, item: &str) -> Result<()> {
        let mut call = redis::cmd("HDEL");
        call.arg(self.keys.claims(product)).arg(item);
        self.query::<u64>("forgetting a claim", &call).await.map(|_| ())
    }

    /// Whether each unit is in its pool, with the score that it should have.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn pooled(&self, units: &[&Unit], expires_from: DateTime<Utc>) -> Result<Vec<bool>> {
        let mut pipeline = redis::pipe();
        for unit in units {
            let pool = unit.pool(expires_from).map(|pool| self.keys.pool(&pool)).unwrap_or_default();
            pipeline.cmd("ZSCORE").arg(pool).arg(unit.id.member());
        }
        if units.is_empty() {
            return Ok(Vec::new());
        }
        let scores: Vec<Option<i64>> = self.query_all("looking into pools", &pipeline).await?;
        Ok(units.iter().zip(scores).map(|(unit, score)| score == Some(unit.score())).collect())
    }

    /// The pools of a product that have had a unit, by their keys, and how many units each has.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn pool_sizes(&self, product: VoucherProductId) -> Result<Vec<(String, u64)>> {
        let mut names = redis::cmd("SMEMBERS");
        names.arg(self.keys.pools(product));
        let mut names: Vec<String> = self.query("listing pools", &names).await?;
        names.sort();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for name in &names {
            pipeline.cmd("ZCARD").arg(name);
        }
        let sizes: Vec<u64> = self.query_all("counting pools", &pipeline).await?;
        Ok(names.into_iter().zip(sizes).collect())
    }

    /// A page of a pool's members, and where the next page begins; zero: there is none. A member may come twice.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn pool_page(&self, pool: &str, cursor: u64, count: usize) -> Result<(u64, Vec<String>)> {
        let mut call = redis::cmd("ZSCAN");
        call.arg(pool).arg(cursor).arg("COUNT").arg(count);
        let (next, rows): (u64, Vec<String>) = self.query("walking a pool", &call).await?;
        Ok((next, rows.into_iter().step_by(2).collect()))
    }

    /// Removes members that no unit has, and forgets a pool if nothing is left of it.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn purge_pool(&self, product: VoucherProductId, pool: &str, strays: &[String]) -> Result<u64> {
        let mut removed = 0;
        if !strays.is_empty() {
            let mut call = redis::cmd("ZREM");
            call.arg(pool).arg(strays);
            removed = self.query("removing strays from a pool", &call).await?;
        }
        let mut size = redis::cmd("ZCARD");
        size.arg(pool);
        if self.query::<u64>("counting a pool", &size).await? == 0 {
            // Should a unit come in between: every placement lists its pool again.
            let mut forget = redis::cmd("SREM");
            forget.arg(self.keys.pools(product)).arg(pool);
            self.query::<u64>("forgetting a pool", &forget).await?;
        }
        Ok(removed)
    }
}
