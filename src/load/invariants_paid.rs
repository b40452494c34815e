//! What must hold of money and units, when reservations were to be paid.

use std::collections::HashMap;

use super::{Check, Findings};
use crate::load::answers::Order;
use crate::load::payment::{Habit, Purse};

/// Checks everything that is said of purses.
pub(super) fn check(purses: &[Purse], orders: &HashMap<&str, Vec<&Order>>) -> [Check; 4] {
    [refused(purses), in_time(purses, orders), given_up(purses, orders), money_and_units(purses, orders)]
}

fn order<'a>(purse: &Purse, orders: &HashMap<&str, Vec<&'a Order>>) -> Option<&'a Order> {
    orders.get(purse.reservation.as_str()).and_then(|orders| orders.first().copied())
}

fn of(purses: &[Purse], habits: &[Habit]) -> Vec<Purse> {
    purses.iter().filter(|purse| habits.contains(&purse.habit)).cloned().collect()
}

fn refused(purses: &[Purse]) -> Check {
    let mut wrong = Findings::default();
    for purse in purses {
        if let Some(problem) = &purse.problem {
            wrong.add(format!("{} ({:?}): {problem}", purse.reservation, purse.habit));
        }
    }
    wrong.check("every payment and cancellation got an answer", || format!("{} buyers", purses.len()))
}

fn in_time(purses: &[Purse], orders: &HashMap<&str, Vec<&Order>>) -> Check {
    let paid = of(purses, &[Habit::Pays]);
    let mut wrong = Findings::default();
    for purse in &paid {
        if !order(purse, orders).is_some_and(|order| order.status == "CONFIRMED" && order.units() > 0) {
            wrong.add(format!("{} was paid in time and is not confirmed", purse.reservation));
        }
    }
    wrong.check("who paid in time has the unit", || format!("{} buyers", paid.len()))
}

fn given_up(purses: &[Purse], orders: &HashMap<&str, Vec<&Order>>) -> Check {
    let cancelled = of(purses, &[Habit::Cancels, Habit::PaysAndCancels]);
    let left = of(purses, &[Habit::WalksAway]);
    let mut wrong = Findings::default();
    for (purses, status) in [(&cancelled, "CANCELLED"), (&left, "EXPIRED")] {
        for purse in purses {
            if !order(purse, orders).is_some_and(|order| order.status == status && order.units() == 0) {
                wrong.add(format!("{} should be {status} and hold nothing", purse.reservation));
            }
        }
    }
    wrong.check("what was cancelled or not paid for holds no unit", || {
        format!("{} cancelled, {} walked away", cancelled.len(), left.len())
    })
}

fn money_and_units(purses: &[Purse], orders: &HashMap<&str, Vec<&Order>>) -> Check {
    let (mut wrong, mut late_with, mut late_without) = (Findings::default(), 0_usize, 0_usize);
    for purse in purses {
        let Some(money) = &purse.money else { continue };
        let (units, price) = order(purse, orders).map_or((0, 0), |order| (order.units(), order.price_minor));
        let (kept, due) = (money.paid_minor - money.refunded_minor, price * i64::try_from(units).unwrap_or(i64::MAX));
        if kept != due {
            wrong.add(format!("{}: {kept} of {} kept, {due} due", purse.reservation, money.paid_minor));
        }
        if purse.habit == Habit::PaysLate {
            *(if units > 0 { &mut late_with } else { &mut late_without }) += 1;
        }
    }
    wrong.check("money kept is the price of the units held", || {
        format!("too late: {late_with} got a unit all the same, {late_without} their money back")
    })
}
