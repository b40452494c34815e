//! Allocation: each item of an order gets a unit, or none does.
//!
//! 1. units are claimed in their pools: one script, soonest expiry first
//! 2. the database gives each to its item, if it is still to be had: a unique index lets an item have one
//! 3. the claims are struck
//!
//! A unit that somebody else got in step 2 is replaced. A process that dies after a step leaves claims, which the
//! reconciler finishes or gives back; whoever asks for the same items again gets the units that they have.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::{Inventory, Vouchers};
use crate::domain::ids::{ClientId, VendorId, VoucherProductId};
use crate::domain::money::Money;
use crate::domain::voucher::{Pool, Unit, UnitId};
use crate::error::{Code, Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{Claimed, Claiming};
use crate::store::mongo::vouchers::units::{Assignment, Which};

/// Claims that others were quicker to get in the database; then something is wrong with the pools.
const ROUNDS_MAX: usize = 8;
/// Items of one product in an order; one script claims them together.
pub const ITEMS_MAX: usize = 500;

/// What an order needs of one product.
#[derive(Debug, Clone)]
pub struct Allocation {
    /// Of what.
    pub product: VoucherProductId,
    /// Worth what.
    pub denomination: Money,
    /// For whom: what is kept for this client is taken first.
    pub client: Option<ClientId>,
    /// Issued by one of these.
    pub vendors: Vec<VendorId>,
    /// Whether only what is kept for the client is taken.
    pub only_kept: bool,
    /// Nothing that expires before.
    pub expires_from: DateTime<Utc>,
    /// The order items, in the order in which they get the units that expire first; none twice.
    pub items: Vec<String>,
}

impl Allocation {
    fn pools(&self) -> Vec<Pool> {
        let pool = |client: Option<ClientId>| {
            move |vendor: &VendorId| Pool {
                product: self.product,
                denomination: self.denomination,
                vendor: *vendor,
                client,
            }
        };
        let reserved = self.client.into_iter().flat_map(|client| self.vendors.iter().map(pool(Some(client))));
        let general = self.vendors.iter().filter(|_| !self.only_kept).map(pool(None));
        reserved.chain(general).collect()
    }

    fn which(&self, client: Option<ClientId>) -> Which {
        Which {
            product: self.product,
            denomination: self.denomination,
            client,
            vendors: Some(self.vendors.clone()),
            expires_from: self.expires_from,
        }
    }
}

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Gives each item a unit, and returns them in the order of the items. Items that have one keep it.
    ///
    /// # Errors
    /// [`Code::VouchersShort`]: there are not enough, and none of the items has one. When a store does not answer, it is not
    /// known which items have a unit: asking again for the same, or releasing them, is safe.
    pub async fn allocate(&self, wanted: &Allocation) -> Result<Vec<Unit>> {
        let mut pumped = false;
        for _ in 0..ROUNDS_MAX {
            let held = self.durable.units_of_items(&wanted.items).await?;
            let has: HashSet<&str> = held.iter().filter_map(|unit| unit.item.as_deref()).collect();
            let open: Vec<String> = wanted.items.iter().filter(|item| !has.contains(item.as_str())).cloned().collect();
            if open.is_empty() {
                return Ok(in_order(held, &wanted.items));
            }
            match self.live.allocate(wanted.product, &wanted.pools(), wanted.expires_from, &open).await? {
                Claiming::Claimed(claims) => self.settle(wanted, &claims).await?,
                // The pools may not have what the database has: a part of the live store may be lost.
                Claiming::Short(_) if !pumped => {
                    self.pump_for(wanted, open.len()).await?;
                    pumped = true;
                }
                Claiming::Short(found) => {
                    self.release(&wanted.items).await?;
                    let available = has.len() + found;
                    let message = format!("{} vouchers are needed and {available} are available", wanted.items.len());
                    return Err(Error::refused(Code::VouchersShort, message));
                }
            }
        }
        self.release(&wanted.items).await?;
        Err(Error::refused(Code::VouchersShort, "too many others want the same vouchers; try again"))
    }

    /// Steps 2 and 3.
    async fn settle(&self, wanted: &Allocation, claims: &[Claimed]) -> Result<()> {
        let assignment = |claim: &Claimed| Assignment {
            unit: claim.unit,
            item: claim.item.clone(),
            client: wanted.client.filter(|_| claim.reserved),
        };
        self.durable.assign(&claims.iter().map(assignment).collect::<Vec<_>>()).await?;
        self.strike(wanted.product, claims.iter().map(|claim| (claim.unit, claim.item.as_str())).collect()).await
    }

    /// Strikes claims, and puts their units where the database says that they are.
    pub(super) async fn strike(&self, product: VoucherProductId, claims: HashMap<UnitId, &str>) -> Result<()> {
        let ids: Vec<_> = claims.keys().copied().collect();
        let units = self.durable.units(&ids).await?;
        self.place_settling(&units, |unit| claims.get(&unit.id).copied()).await?;
        let known: HashSet<_> = units.iter().map(|unit| unit.id).collect();
        for (unit, item) in claims.iter().filter(|(unit, _)| !known.contains(unit)) {
            tracing::error!(%unit, item, "a pool had a voucher that does not exist; its claim is forgotten");
            self.live.forget_claim(product, item).await?;
        }
        self.durable.placed(&units).await
    }

    /// Puts what the database has into the pools: enough for this.
    async fn pump_for(&self, wanted: &Allocation, count: usize) -> Result<()> {
        let limit = u32::try_from(count).unwrap_or(u32::MAX);
        let mut units = Vec::new();
        if !wanted.only_kept {
            units = self.durable.soonest(&wanted.which(None), limit).await?;
        }
        if let Some(client) = wanted.client {
            units.extend(self.durable.soonest(&wanted.which(Some(client)), limit).await?);
        }
        let placed = self.place(&units).await?;
        if placed.moved > 0 {
            tracing::warn!(product = %wanted.product, units = placed.moved, "vouchers were not in their pools");
        }
        Ok(())
    }

    /// Takes back whatever these items have: what nobody has seen is sold again, what was shown is revoked. Returns the units
    /// that were taken back by this call.
    ///
    /// # Errors
    /// When a store does not answer: releasing again is safe, and gives nothing back twice.
    pub async fn release(&self, items: &[String]) -> Result<Vec<Unit>> {
        let released = self.durable.release(items).await?;
        self.place(&released).await?;
        Ok(released)
    }
}

fn in_order(units: Vec<Unit>, items: &[String]) -> Vec<Unit> {
    let mut by_item: HashMap<String, Unit> =
        units.into_iter().filter_map(|unit| unit.item.clone().map(|item| (item, unit))).collect();
    items.iter().filter_map(|item| by_item.remove(item)).collect()
}
