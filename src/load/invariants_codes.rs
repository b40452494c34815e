//! What must hold of codes, when the units are vouchers.

use std::collections::{HashMap, HashSet};

use super::{Check, Findings};
use crate::load::answers::Order;
use crate::load::voucher::CodesSeen;

/// Checks everything that is said of codes. A finding names reservations, never a code.
pub(super) fn check(seen: &CodesSeen, orders: &HashMap<&str, Vec<&Order>>) -> [Check; 3] {
    [shown(seen, orders), distinct(seen), back(seen)]
}

fn shown(seen: &CodesSeen, orders: &HashMap<&str, Vec<&Order>>) -> Check {
    let mut wrong = Findings::default();
    for look in &seen.looks {
        let order = orders.get(look.reservation.as_str()).and_then(|orders| orders.first());
        let units = order.map_or(0, |order| usize::try_from(order.units()).unwrap_or(usize::MAX));
        if let Some(problem) = &look.problem {
            wrong.add(format!("{}: {problem}", look.reservation));
        } else if look.codes.len() != units {
            wrong.add(format!("{} has {units} units and was shown {} codes", look.reservation, look.codes.len()));
        } else if !look.same_again {
            wrong.add(format!("{} was shown another code the second time", look.reservation));
        }
    }
    wrong.check("who bought reads a code for each unit, the same each time", || format!("{} buyers", seen.looks.len()))
}

fn distinct(seen: &CodesSeen) -> Check {
    let (mut wrong, mut known) = (Findings::default(), HashSet::new());
    for look in &seen.looks {
        for code in &look.codes {
            if !known.insert(code) {
                wrong.add(format!("{} was shown a code that another buyer has", look.reservation));
            }
            if !seen.imported.contains(code) {
                wrong.add(format!("{} was shown a code that is not in the spreadsheet", look.reservation));
            }
        }
    }
    wrong.check("no code is sold twice, and each is from the spreadsheet", || format!("{} codes", known.len()))
}

fn back(seen: &CodesSeen) -> Check {
    let shown: usize = seen.looks.iter().map(|look| look.codes.len()).sum();
    let wanted = seen.imported.len().saturating_sub(shown) as u64;
    let mut wrong = Findings::default();
    if seen.back != wanted {
        wrong.add(format!("{} codes can be sold again, and should be {wanted}", seen.back));
    }
    wrong.check("every code that was not sold can be sold again", || {
        format!("{shown} of {} sold, {} left", seen.imported.len(), seen.back)
    })
}
