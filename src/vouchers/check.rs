//! Checking: what must be true of units, pools, claims and orders, in both stores.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt;

use super::Vouchers;
use crate::domain::ids::{VoucherOrderId, VoucherProductId};
use crate::domain::prefetch::{BatchState, external_id};
use crate::domain::voucher::{Unit, UnitStatus, VoucherOrderStatus};
use crate::error::Result;

/// Units in memory at once.
const UNITS_AT_ONCE: u32 = 1_000;
/// What moves while it is looked at is looked at again.
const LOOKS_MAX: usize = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// What was found. Everything holds if the lists are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VoucherCheck {
    /// Available units in the database that can be sold.
    pub units: u64,
    /// Members of pools.
    pub pooled: u64,
    /// Claims that are not settled.
    pub claims: u64,
    /// Units that an item has.
    pub allocated: u64,
    /// What is wrong between the database and the pools.
    pub misplaced: Vec<String>,
    /// Claims that were left behind.
    pub stale: Vec<String>,
    /// What is wrong between units and orders.
    pub ownerless: Vec<String>,
    /// Batches of prefetch jobs whose outcome a person must find out.
    pub unresolved: Vec<String>,
}

/// Jobs that are named.
const JOBS_MAX: u32 = 20;
/// Sentences in a list, however much is wrong.
const SENTENCES_MAX: usize = 20;

pub(super) fn say(list: &mut Vec<String>, sentence: String) {
    if list.len() < SENTENCES_MAX {
        list.push(sentence);
    }
}

impl VoucherCheck {
    /// Whether everything holds.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.misplaced.is_empty() && self.stale.is_empty() && self.ownerless.is_empty() && self.unresolved.is_empty()
    }
}

impl Vouchers {
    /// Compares units, pools, claims and orders. Changes nothing.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn check(&self) -> Result<VoucherCheck> {
        let mut look = 1;
        loop {
            let mut check = VoucherCheck::default();
            for product in self.product_ids().await? {
                self.check_product(product, &mut check).await?;
            }
            self.check_owners(&mut check).await?;
            self.check_sales(&mut check).await?;
            self.check_batches(&mut check).await?;
            if check.holds() || look >= LOOKS_MAX {
                return Ok(check);
            }
            look += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn check_product(&self, product: VoucherProductId, check: &mut VoucherCheck) -> Result<()> {
        let (claims, now_ms) = self.live.open_claims(product).await?;
        let ttl_ms = i64::try_from(self.config.claim_ttl_ms).unwrap_or(i64::MAX);
        for claim in claims.iter().filter(|claim| now_ms - claim.at_ms > ttl_ms.saturating_mul(3)) {
            say(&mut check.stale, format!("the claim of item {} on unit {}", claim.item, claim.unit));
        }
        check.claims += claims.len() as u64;
        let claimed: HashSet<_> = claims.into_iter().map(|claim| claim.unit).collect();
        let (mut after, mut expected) = (None, 0);
        loop {
            let units = self.durable.voucher_units.page(product, after, UNITS_AT_ONCE).await?;
            let Some(last) = units.last() else { break };
            after = Some(last.id);
            let from = self.sold_from();
            let sellable: Vec<&Unit> =
                units.iter().filter(|unit| unit.pool(from).is_some() && !claimed.contains(&unit.id)).collect();
            expected += sellable.len() as u64;
            for (unit, pooled) in sellable.iter().zip(self.live.pooled(&sellable, from).await?) {
                if !pooled {
                    say(&mut check.misplaced, format!("unit {} is not in its pool", unit.id));
                }
            }
        }
        let pooled: u64 = self.live.pool_sizes(product).await?.iter().map(|(_, size)| size).sum();
        if pooled != expected {
            say(&mut check.misplaced, format!("the pools of {product} have {pooled} units and should have {expected}"));
        }
        check.units += expected;
        check.pooled += pooled;
        Ok(())
    }

    /// Every unit that an item has is of an order that wants it, and every item of such an order has one.
    async fn check_owners(&self, check: &mut VoucherCheck) -> Result<()> {
        let mut counts: HashMap<VoucherOrderId, usize> = HashMap::new();
        let units = self.durable.voucher_units.allocated().await?;
        let mut chunks = std::pin::pin!(units.try_chunks(UNITS_AT_ONCE as usize));
        while let Some(units) = chunks.try_next().await.map_err(|error| error.1)? {
            check.allocated += units.len() as u64;
            let order_of = |unit: &Unit| unit.item.as_deref()?.split('-').next()?.parse::<VoucherOrderId>().ok();
            let ids: HashSet<VoucherOrderId> = units.iter().filter_map(order_of).collect();
            let orders = self.durable.voucher_orders.by_ids(&ids.into_iter().collect::<Vec<_>>()).await?;
            let wants: HashSet<String> = orders
                .iter()
                .filter(|order| order.status != VoucherOrderStatus::Cancelled)
                .flat_map(crate::domain::voucher::VoucherOrder::all_items)
                .collect();
            for unit in units.iter().filter(|unit| unit.status != UnitStatus::Revoked) {
                let item = unit.item.as_deref().unwrap_or_default();
                if wants.contains(item) {
                    order_of(unit).into_iter().for_each(|order| *counts.entry(order).or_default() += 1);
                } else {
                    say(&mut check.ownerless, format!("unit {} is of item {item}, which no order wants", unit.id));
                }
            }
        }
        let ids: Vec<VoucherOrderId> = counts.keys().copied().collect();
        for ids in ids.chunks(UNITS_AT_ONCE as usize) {
            for order in self.durable.voucher_orders.by_ids(ids).await? {
                let (has, wants) = (counts.get(&order.id).copied().unwrap_or_default(), order.all_items().len());
                if order.status != VoucherOrderStatus::Pending && has != wants {
                    say(&mut check.ownerless, format!("order {} has {has} of {wants} vouchers", order.id));
                }
            }
        }
        Ok(())
    }

    /// Every order of a vendor has a known outcome, or is still asked about.
    async fn check_batches(&self, check: &mut VoucherCheck) -> Result<()> {
        for job in self.durable.prefetch_jobs.unresolved(JOBS_MAX).await? {
            for batch in job.batches.iter().filter(|batch| batch.state == BatchState::Unresolved) {
                let (name, vendor) = (external_id(job.id, batch.number), batch.vendor);
                let sentence =
                    format!("order {name} of {} units: vendor {vendor} never said what became of it", batch.units);
                say(&mut check.unresolved, sentence);
            }
        }
        Ok(())
    }
}
