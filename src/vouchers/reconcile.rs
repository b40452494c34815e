//! Reconciling: what was interrupted is brought to its end. It takes no input and is idempotent; one process leads, by a
//! lease, and two that lead at once do no harm.
//!
//! - a unit that is marked as not placed: placed
//! - a claim that is older than `vouchers.claim_ttl_ms`: struck, and its unit put where the database says that it is: with
//!   its item, if it was given to it, and else back in its pool
//! - an order that was interrupted: finished, and what a late write gave to a cancelled one is taken back
//! - an import whose process is gone: finished if it was decided, and failed if it was not
//! - what is kept for a sale that is over: given back
//! - every `vouchers.pump_interval_ms`, and when a process begins to lead: all pools are pumped

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Inventory, Vouchers};
use crate::error::Result;
use crate::store::live::link::Link;
use crate::task::Tracker;
use crate::telemetry::metrics::{VOUCHER_CLAIMS_REPAIRED, VOUCHER_DRIFT};

const LEASE: &str = "vouchers";
/// Units that one round places.
const PER_ROUND: u32 = 1_000;

impl Vouchers {
    /// Reconciles again and again until the application stops, while this process leads.
    pub async fn keep_reconciling(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.reconcile_interval_ms);
        let pump_interval = Duration::from_millis(self.config.pump_interval_ms);
        let (mut pause, mut pumped_at): (Duration, Option<Instant>) = (interval, None);
        while tasks.pause(pause).await {
            let vouchers = Arc::clone(&self);
            let pump = pumped_at.is_none_or(|at| at.elapsed() >= pump_interval);
            let round = async move {
                let ttl = vouchers.lease_ttl.max(interval * 3);
                if !vouchers.durable.leases.take(LEASE, &vouchers.process, vouchers.clock.now(), ttl).await? {
                    return Ok((false, false));
                }
                if pump {
                    metrics::gauge!(VOUCHER_DRIFT).set(vouchers.pump_all().await?.drift() as f64);
                }
                vouchers.reconcile().await.map(|full| (true, full))
            };
            pause = match tasks.complete("reconciling vouchers", round).await {
                Ok((led, full)) => {
                    // Whoever begins to lead pumps: the one before may have died over it.
                    pumped_at = if led { pumped_at.filter(|_| !pump).or_else(|| Some(Instant::now())) } else { None };
                    if full { Duration::ZERO } else { interval }
                }
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error, "vouchers cannot be reconciled now");
                    interval
                }
            };
        }
        drop(self.durable.leases.give_up(LEASE, &self.process).await);
    }

    /// One round; true if it had its hands full, and there may be more.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn reconcile(&self) -> Result<bool> {
        let full = self.reconcile_units().await?;
        self.finish_imports().await?;
        self.give_back_unsold().await?;
        Ok(self.finish_orders().await? || full)
    }
}

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Places what is marked, and settles claims that were left behind; true if there may be more.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn reconcile_units(&self) -> Result<bool> {
        let units = self.durable.unplaced(PER_ROUND).await?;
        self.place(&units).await?;
        for product in self.product_ids().await? {
            self.repair_claims(product).await?;
        }
        Ok(units.len() >= PER_ROUND as usize)
    }

    /// Settles the claims of a product that nobody settles any more.
    pub(super) async fn repair_claims(&self, product: crate::domain::ids::VoucherProductId) -> Result<()> {
        let (claims, now_ms) = self.live.open_claims(product).await?;
        let ttl_ms = i64::try_from(self.config.claim_ttl_ms).unwrap_or(i64::MAX);
        let stale: HashMap<_, _> = claims
            .iter()
            .filter(|claim| now_ms - claim.at_ms > ttl_ms)
            .map(|claim| (claim.unit, claim.item.as_str()))
            .collect();
        if stale.is_empty() {
            return Ok(());
        }
        metrics::counter!(VOUCHER_CLAIMS_REPAIRED).increment(stale.len() as u64);
        tracing::warn!(%product, claims = stale.len(), "claims on vouchers were left behind; they are settled");
        self.strike(product, stale).await
    }
}
