//! Placing: the pools are told where units are.

use std::collections::BTreeMap;

use super::{Inventory, Vouchers};
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::Unit;
use crate::error::Result;
use crate::store::live::link::Link;
use crate::store::live::{Placed, Placement};

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Puts units where they belong, and takes off the marks that say they are to be placed.
    ///
    /// # Errors
    /// When a store does not answer: the marks stay, and the reconciler places them.
    pub(super) async fn place(&self, units: &[Unit]) -> Result<Placed> {
        let placed = self.place_settling(units, |_| None).await?;
        self.durable.placed(units).await?;
        Ok(placed)
    }

    /// As [`Self::place`], without the marks; strikes the claim of the item that `settled` names for a unit.
    pub(super) async fn place_settling<'a>(
        &self,
        units: &'a [Unit],
        settled: impl Fn(&Unit) -> Option<&'a str>,
    ) -> Result<Placed> {
        let from = self.sold_from();
        let mut by_product: BTreeMap<VoucherProductId, Vec<Placement<'a>>> = BTreeMap::new();
        for unit in units {
            let placement = Placement { unit, pool: unit.pool(from), settled: settled(unit) };
            by_product.entry(unit.product).or_default().push(placement);
        }
        let mut placed = Placed::default();
        for (product, placements) in by_product {
            placed += self.live.place(product, &placements).await?;
        }
        Ok(placed)
    }
}
