//! What must hold among the orders, and between them and what was made.

use std::collections::BTreeSet;

use orbit::domain::order::OrderStatus;

use super::{Verdict, View, require};
use crate::ledger::{Made, Paid};

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
        require(view.catalogue.event.ends_at.is_none_or(|end| order.created_at < end), || {
            format!("invariant 1: {id} was reserved after the sale had ended by the live store's clock")
        })?;
        let state = (order.revision, order.status.as_str().to_owned(), order.returned);
        require(view.ledger.was_ever(id, &state) || view.database.was_changed_as_order(id), || {
            format!("invariant 7: {id} was never {state:?}, and its order is")
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
    not_oversold(view)?;
    money_and_units_agree(view)?;
    let dead = view.database.dead_keys(view.catalogue.id());
    require(dead.is_empty(), || format!("dead letters are left: {dead:?}"))
}

/// Orders of a sale that runs may lag, each on its own: a unit that was cancelled and sold again is looked at here.
fn not_oversold(view: &View<'_>) -> Verdict {
    let restocked = view.database.restocked();
    for (product, units) in view.database.units_per_product(view.catalogue.id()) {
        let initial = view.catalogue.product(product).map_or(0, |product| u64::from(product.units));
        let there = initial.saturating_add_signed(restocked.get(&product).copied().unwrap_or_default());
        require(units <= there || view.ledger.changes_lost(), || {
            format!("invariant 4: {units} units of {product} are ordered, and there are {there}")
        })?;
    }
    Ok(())
}

/// Nobody waits for payment any more, who was told that they have paid has their units, and who was told that the money
/// goes back has none.
fn money_and_units_agree(view: &View<'_>) -> Verdict {
    for order in view.database.orders_of(view.catalogue.id()) {
        let id = &order.reservation_id;
        require(order.status != OrderStatus::PendingPayment, || format!("{id} waits for payment for ever"))?;
        let agrees = match view.ledger.paid().get(id) {
            None => true,
            Some(Paid::Confirmed) => order.status == OrderStatus::Confirmed && order.units_held() > 0,
            Some(Paid::InVain | Paid::Cancelled) => order.units_held() == 0,
        };
        require(agrees || view.ledger.changes_lost(), || {
            format!("invariant 6: the payer of {id} was told {:?}, and it is {order:?}", view.ledger.paid().get(id))
        })?;
    }
    Ok(())
}
