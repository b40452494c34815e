//! `lua/allocate.lua`: claims on voucher units.

use chrono::{DateTime, Utc};

use super::Live;
use super::link::Link;
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::{Pool, UnitId};
use crate::error::Result;

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
            "DAMAGED" => Err(reply.damaged("the script refused")),
            "SHORT" => Ok(Claiming::Short(reply.parse(1)?)),
            _ => Err(reply.damaged("unknown tag")),
        }
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
}
