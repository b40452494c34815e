//! What must hold between the gateway's money and the units: what `orbit check` looks for, but with the gateway's own books.

use orbit::domain::order::{Order, OrderStatus};
use orbit::domain::payment::{Payment, PaymentState};

use super::{Booking, Verdict, View, require};

/// No unit is confirmed unpaid, and no refund is recorded that was not made.
pub fn hold(view: &View<'_>, bookings: &[Booking]) -> Verdict {
    if !view.catalogue.pays {
        return Ok(());
    }
    let booked = bookings.iter().filter(|booking| booking.units > 0 && !booking.unpaid).map(|booking| &booking.id);
    let ordered = view.database.orders_of(view.catalogue.id()).filter(|order| is_held(order));
    for id in booked.chain(ordered.map(|order| &order.reservation_id)) {
        let known = view.database.payment(id).is_some_and(|payment| payment.state == PaymentState::Succeeded);
        require(known && view.till.received(id) > 0, || {
            format!("invariant 12: {id} is confirmed, and {:?} is its payment", view.database.payment(id))
        })?;
    }
    for account in view.till.accounts() {
        let recorded = view.database.payment(&account.reservation).map_or(0, |payment| payment.refunded_minor);
        require(recorded <= account.refunded && account.refunded <= account.received, || {
            format!("invariant 11: refunds of {recorded} are recorded, and the gateway has {account:?}")
        })?;
    }
    Ok(())
}

/// Money kept is the price of the units held, by the gateway's books, and nobody has anything left to do.
pub fn hold_at_rest(view: &View<'_>) -> Verdict {
    for account in view.till.accounts() {
        let id = &account.reservation;
        let order = view.database.order(id);
        let worth = order.as_ref().map_or(0, worth);
        require(account.received - account.refunded == worth, || {
            let payment = view.database.payment(id);
            format!("invariant 11: {worth} is to be kept for {order:?}, and the gateway has {account:?}: {payment:?}")
        })?;
    }
    for payment in view.database.payments() {
        require(is_done(payment), || format!("invariant 11: something is left to be done about {payment:?}"))?;
        let order = view.database.order(&payment.reservation);
        let bought = payment.applied.is_some_and(|applied| applied.outcome.confirmed());
        let ran_out = order.is_some_and(|order| order.status == OrderStatus::Expired);
        require(!(bought && ran_out) || view.ledger.changes_lost(), || {
            format!("invariant 6: {} was paid for, and has run out", payment.reservation)
        })?;
    }
    let (stuck, returned) = (view.database.stuck_payments(), view.database.returns_left());
    require(stuck == 0, || format!("{stuck} refunds were given up"))?;
    require(returned == 0, || format!("nobody has looked at the money of {returned} orders that gave units back"))
}

fn is_done(payment: &Payment) -> bool {
    let applied = payment.state != PaymentState::Succeeded || payment.applied.is_some();
    applied && payment.due_at.is_none() && payment.refunding_minor.is_none()
}

fn is_held(order: &Order) -> bool {
    order.status == OrderStatus::Confirmed && order.units_held() > 0
}

fn worth(order: &Order) -> i64 {
    if is_held(order) { order.price.minor * i64::from(order.units_held()) } else { 0 }
}
