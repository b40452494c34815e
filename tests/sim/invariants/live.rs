//! What must hold in the live store.

use std::collections::BTreeSet;

use orbit::domain::event::SalePhase;
use orbit::domain::product::Product;

use super::{Booking, Verdict, View, field, require};

pub fn hold(view: &View<'_>, bookings: &[Booking]) -> Verdict {
    if !view.is_running()? {
        return Ok(());
    }
    let phase = view.phase();
    require(!matches!(phase, SalePhase::Draft | SalePhase::Opening), || {
        format!("invariant 1: the sale runs while its phase is {}", phase.as_str())
    })?;
    let listed = view.set(&view.catalogue.keys.bookings(view.catalogue.id()))?;
    let there: BTreeSet<String> = bookings.iter().map(|booking| booking.key.clone()).collect();
    require(listed == there, || {
        format!("invariant 3: bookings and their index differ: {:?}", listed.symmetric_difference(&there))
    })?;
    let held = view.sorted_set(&view.catalogue.keys.holds(view.catalogue.id()))?;
    let unpaid: BTreeSet<String> = bookings
        .iter()
        .filter(|booking| booking.unpaid)
        .map(|booking| format!("{}:{}", booking.product, booking.user))
        .collect();
    require(held == unpaid, || {
        format!("invariant 6: holds and unpaid bookings differ: {:?}", held.symmetric_difference(&unpaid))
    })?;
    view.catalogue.products.iter().try_for_each(|product| product_holds(view, bookings, product))
}

fn product_holds(view: &View<'_>, bookings: &[Booking], product: &Product) -> Verdict {
    let (id, event) = (product.id, view.catalogue.id());
    let hash = view.hash(&view.catalogue.keys.product(id, event))?;
    let hash = hash.ok_or_else(|| format!("invariant 9: the sale runs without product {id}"))?;
    let (stock, initial, held): (u64, u64, u64) =
        (field(hash, "stock")?, field(hash, "initial")?, field(hash, "held")?);
    let restocked: i64 = field(hash, "restocked")?;
    let own: Vec<&Booking> = bookings.iter().filter(|booking| booking.product == id && booking.takes_slot).collect();
    let units: u64 = own.iter().map(|booking| booking.units).sum();
    let there = initial.saturating_add_signed(restocked);
    require(stock + units == there && initial == u64::from(product.units), || {
        format!(
            "invariant 4: stock {stock} + reserved {units} = initial {initial} + restocked {restocked}, and initial = {}",
            product.units
        )
    })?;
    let unpaid: u64 = own.iter().filter(|booking| booking.unpaid).map(|booking| booking.units).sum();
    require(held == unpaid, || format!("invariant 4: {held} units are held, and {unpaid} are unpaid"))?;
    let price: i64 = field(hash, "price")?;
    require(price == product.price.minor, || format!("invariant 5: a price of {price}"))?;
    for booking in &own {
        require(booking.price_minor == price, || format!("invariant 5: {} has another price", booking.key))?;
        let limit = u64::from(product.per_buyer_limit);
        require(booking.quantity <= limit, || format!("invariant 2: {} is above the limit", booking.key))?;
    }
    let winners = view.set(&view.catalogue.keys.winners(event, id))?;
    let buyers: BTreeSet<String> = own.iter().map(|booking| booking.user.to_string()).collect();
    require(winners == buyers, || format!("invariant 6: the winners of {id} are not its buyers"))
}

/// After settlement no key of the event remains but the stopped status.
pub fn hold_at_rest(view: &View<'_>) -> Verdict {
    let status = view.catalogue.keys.status(view.catalogue.id());
    let left: Vec<String> = view
        .data
        .iter()
        .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
        .filter(|key| *key != status)
        .collect();
    require(left.is_empty(), || format!("invariant 10: keys are left: {left:?}"))
}
