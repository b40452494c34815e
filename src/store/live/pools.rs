//! Pools of voucher units, looked at and swept.

use chrono::{DateTime, Utc};

use super::Live;
use super::link::Link;
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::Unit;
use crate::error::Result;

impl<L: Link> Live<L> {
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
