//! `lua/place.lua`: voucher units are put where the database says that they belong.

use std::time::Duration;

use futures::StreamExt;

use super::Live;
use super::link::Link;
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::{Pool, Unit, denomination_text};
use crate::error::Result;

/// How long it is remembered that a unit is in no pool: longer than any placement can be late.
const TOMBSTONE: Duration = Duration::from_secs(60 * 60);
/// Units in one call: each has two keys.
const PLACED_AT_ONCE: usize = 200;
/// Calls under way at once: the next one is written while the server works on this one.
const BATCHES_AT_ONCE: usize = 4;

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
    /// Puts units of one product where they belong.
    ///
    /// # Errors
    /// When the live store does not answer: some may be placed; placing again is safe.
    pub async fn place(&self, product: VoucherProductId, placements: &[Placement<'_>]) -> Result<Placed> {
        let mut batches = Vec::new();
        for batch in placements.chunks(PLACED_AT_ONCE) {
            batches.push(self.place_batch(product, batch));
        }
        let mut under_way = futures::stream::iter(batches).buffer_unordered(BATCHES_AT_ONCE);
        let mut placed = Placed::default();
        while let Some(batch) = under_way.next().await {
            placed += batch?;
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
        match reply.tag() {
            "PLACED" => {}
            "DAMAGED" => return Err(reply.damaged("the script refused")),
            _ => return Err(reply.damaged("unknown tag")),
        }
        if reply.rest().len() != batch.len() {
            return Err(reply.damaged("another number of outcomes than of units"));
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
}
