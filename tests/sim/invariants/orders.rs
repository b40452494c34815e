//! What must hold among the orders, and between them and what was made.

use std::collections::BTreeSet;

use super::{Verdict, View, require};
use crate::ledger::Made;

pub fn hold(view: &View<'_>) -> Verdict {
    let event = view.catalogue.id();
    let mut seen = BTreeSet::new();
    for order in view.database.orders_of(event) {
        let id = &order.reservation_id;
        require(seen.insert(id), || format!("invariant 7: {id} has two orders"))?;
        let made =
            Made { user: order.user, product: order.product, quantity: order.quantity, price_minor: order.price.minor };
        require(view.ledger.made().get(id) == Some(&made), || {
            format!("invariant 7: the order of {id} is {made:?}, and {:?} was made", view.ledger.made().get(id))
        })?;
    }
    for (product, units) in view.database.units_per_product(event) {
        let there = view.catalogue.product(product).map_or(0, |product| u64::from(product.units));
        require(units <= there, || {
            format!("invariant 4: {units} units of {product} are ordered, and there are {there}")
        })?;
    }
    let lost = view.made_and_gone()?.into_iter().find(|id| !view.ledger.is_excused(id));
    require(lost.is_none(), || format!("invariant 8: {} is neither a booking nor an order", lost.unwrap_or_default()))
}

/// Each reservation has its order.
pub fn hold_at_rest(view: &View<'_>) -> Verdict {
    for id in view.ledger.made().keys() {
        let settled = view.is_order(id) || view.ledger.is_excused(id);
        require(settled, || format!("invariant 7: {id} has no order"))?;
    }
    let dead = view.database.dead_keys(view.catalogue.id());
    require(dead.is_empty(), || format!("dead letters are left: {dead:?}"))
}
