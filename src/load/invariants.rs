//! What must hold after every sale, whatever happened in it: what the buyers were told, what the seller finds, and what
//! the catalogue promised are one story.

#[path = "invariants_codes.rs"]
mod codes;
#[path = "invariants_paid.rs"]
mod paid;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use serde::Serialize;

use super::amount::Amount;
use super::answers::{Analytics, Order, ProductOnSale};
use super::attempt::{Attempt, Outcome};
use super::payment::Purse;
use super::voucher::CodesSeen;

/// One invariant, checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The invariant, as a sentence.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// What was counted, or what breaks it.
    pub detail: String,
}

/// What is known when a sale is over.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// What was on sale.
    pub products: &'a [ProductOnSale],
    /// Units of each product.
    pub units_each: u32,
    /// The buyers' accounts, by number.
    pub buyer_ids: Vec<&'a str>,
    /// Every try, the preparations too.
    pub attempts: &'a [Attempt],
    /// What buyers did with their reservations, if those were to be paid. Then a unit may be sold more than once.
    pub purses: Option<&'a [Purse]>,
    /// What buyers were shown, if the units are codes.
    pub codes: Option<&'a CodesSeen>,
    /// The seller's orders.
    pub orders: &'a [Order],
    /// The seller's totals.
    pub analytics: &'a Analytics,
    /// What a buyer was told who came after the end.
    pub late: &'a Outcome,
    /// Keys of the event that the live store still has, besides the stopped status. None if nobody could look.
    pub leftover: Option<&'a Result<Vec<String>, String>>,
    /// Purchases that may stay without an answer.
    pub errors_max: usize,
}

/// Checks everything.
#[must_use]
pub fn check(evidence: &Evidence<'_>) -> Vec<Check> {
    let facts = Facts::new(evidence);
    let mut checks = vec![
        facts.counts_agree(),
        facts.accepted_have_one_order(),
        facts.orders_were_accepted(),
        facts.nothing_oversold(),
        facts.nobody_has_two(),
        facts.one_price(),
        facts.analytics_agree(),
    ];
    match evidence.purses {
        None => checks.push(facts.nothing_undersold()),
        Some(purses) => checks.extend(paid::check(purses, &facts.orders)),
    }
    if let Some(seen) = evidence.codes {
        checks.extend(codes::check(seen, &facts.orders));
    }
    checks.extend([facts.closed_after_the_end(), facts.everybody_answered()]);
    checks.extend(evidence.leftover.map(nothing_left));
    checks
}

/// A purchase that was promised to a buyer.
struct Promise<'a> {
    reservation: &'a str,
    buyer: &'a str,
    product: &'a str,
    price: Amount,
}

/// The evidence, with what several checks need.
struct Facts<'a> {
    evidence: &'a Evidence<'a>,
    promises: Vec<Promise<'a>>,
    /// Buyer and product of purchases that may or may not have been made.
    unknown: HashSet<(&'a str, &'a str)>,
    prices: HashMap<&'a str, Amount>,
    orders: HashMap<&'a str, Vec<&'a Order>>,
}

impl<'a> Facts<'a> {
    fn new(evidence: &'a Evidence<'a>) -> Self {
        let (mut promises, mut unknown) = (Vec::new(), HashSet::new());
        for attempt in evidence.attempts {
            let (buyer, product) =
                (evidence.buyer_ids[attempt.buyer], evidence.products[attempt.product].product_id.as_str());
            match &attempt.outcome {
                Outcome::Accepted { reservation_id, price } => {
                    promises.push(Promise { reservation: reservation_id, buyer, product, price: *price });
                }
                Outcome::Failed { unknown: true, .. } => {
                    unknown.insert((buyer, product));
                }
                _ => {}
            }
        }
        let mut orders: HashMap<&str, Vec<&Order>> = HashMap::new();
        for order in evidence.orders {
            orders.entry(order.reservation_id.as_str()).or_default().push(order);
        }
        let prices = evidence.products.iter().map(|product| (product.product_id.as_str(), product.price)).collect();
        Self { evidence, promises, unknown, prices, orders }
    }

    fn counts_agree(&self) -> Check {
        let (accepted, orders, open) = (self.promises.len(), self.evidence.orders.len(), self.unknown.len());
        let ok = (accepted..=accepted + open).contains(&orders);
        let mut detail = format!("{accepted} accepted, {orders} orders");
        if open > 0 {
            let _ = write!(detail, ", {open} of unknown outcome");
        }
        Check { name: "accepted purchases equal settled orders", ok, detail }
    }

    fn accepted_have_one_order(&self) -> Check {
        let mut named = HashSet::new();
        let mut wrong = Findings::default();
        for promise in &self.promises {
            let id = promise.reservation;
            if !named.insert(id) {
                wrong.add(format!("{id} was promised twice"));
            }
            match self.orders.get(id).map_or(&[][..], Vec::as_slice) {
                [] => wrong.add(format!("{id} has no order")),
                [order] if order.user_id != promise.buyer => wrong.add(format!("{id} became another buyer's order")),
                [order] if order.product_id != promise.product => {
                    wrong.add(format!("{id} became an order of another product"));
                }
                [_] => {}
                many => wrong.add(format!("{id} has {} orders", many.len())),
            }
        }
        wrong.check("every accepted reservation is exactly one order", || format!("{} reservations", named.len()))
    }

    fn orders_were_accepted(&self) -> Check {
        let promised: HashSet<&str> = self.promises.iter().map(|promise| promise.reservation).collect();
        let mut wrong = Findings::default();
        for order in self.evidence.orders {
            let open = || self.unknown.contains(&(order.user_id.as_str(), order.product_id.as_str()));
            if !promised.contains(order.reservation_id.as_str()) && !open() {
                wrong.add(format!("{} was promised to nobody", order.reservation_id));
            }
        }
        wrong.check("no order without an accepted purchase", || format!("{} orders", self.evidence.orders.len()))
    }

    fn nothing_oversold(&self) -> Check {
        let units = u64::from(self.evidence.units_each);
        let mut wrong = Findings::default();
        let promised = tally(self.promises.iter().map(|promise| (promise.product, 1)));
        // What comes back is promised again.
        let promised = if self.evidence.purses.is_some() { BTreeMap::new() } else { promised };
        for (side, sold) in [("promised", promised), ("ordered", self.ordered_units())] {
            for (product, count) in sold.iter().filter(|(_, count)| **count > units) {
                wrong.add(format!("{count} units of {product} were {side}, there were {units}"));
            }
        }
        wrong.check("no product sold beyond its units", || {
            format!("{} products of {units} each", self.evidence.products.len())
        })
    }

    fn nobody_has_two(&self) -> Check {
        let mut wrong = Findings::default();
        let promised = tally(self.promises.iter().map(|promise| ((promise.buyer, promise.product), 1)));
        let ordered = tally(self.evidence.orders.iter().map(|order| (owner(order), order.units())));
        for (side, held) in [("promised", &promised), ("ordered", &ordered)] {
            for ((buyer, product), count) in held.iter().filter(|(_, count)| **count > 1) {
                wrong.add(format!("buyer {buyer} has {count} units of {product} {side}"));
            }
        }
        wrong.check("no buyer holds more than one of a product", || format!("{} holders", ordered.len()))
    }

    fn one_price(&self) -> Check {
        let mut wrong = Findings::default();
        let told =
            self.promises.iter().map(|promise| ("the answer", promise.reservation, promise.product, promise.price));
        let kept = self
            .evidence
            .orders
            .iter()
            .map(|order| ("the order", order.reservation_id.as_str(), order.product_id.as_str(), order.price));
        for (side, reservation, product, price) in told.chain(kept) {
            match self.prices.get(product) {
                Some(listed) if *listed == price => {}
                Some(listed) => wrong.add(format!("{side} of {reservation} says {price}, the catalogue {listed}")),
                None => wrong.add(format!("{side} of {reservation} is of {product}, which was not on sale")),
            }
        }
        wrong.check("one price in catalogue, answer and order", || {
            let sum: Amount = self.promises.iter().map(|promise| promise.price).sum();
            format!("{sum} in all")
        })
    }

    fn analytics_agree(&self) -> Check {
        let (analytics, orders) = (self.evidence.analytics, self.evidence.orders);
        let count = orders.len() as u64;
        let revenue: Amount = orders
            .iter()
            .filter(|order| order.status == "CONFIRMED")
            .map(|order| order.price.times(order.units()))
            .sum();
        let statuses = tally(orders.iter().map(|order| (order.status.clone(), 1)));
        let mut wrong = Findings::default();
        if analytics.total_orders != count {
            wrong.add(format!("{} orders, there are {count}", analytics.total_orders));
        }
        if analytics.total_revenue != revenue {
            wrong.add(format!("revenue {}, the orders make {revenue}", analytics.total_revenue));
        }
        if analytics.status_breakdown.iter().filter(|(_, count)| **count > 0).ne(statuses.iter()) {
            wrong.add(format!("statuses {:?}, there are {statuses:?}", analytics.status_breakdown));
        }
        wrong.check("analytics agree with the orders", || format!("{count} orders, revenue {revenue}"))
    }

    /// A product is sold to the last unit if as many buyers tried as it has units, and nobody is sent away before.
    fn nothing_undersold(&self) -> Check {
        let mut tried: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        for attempt in self.evidence.attempts {
            if matches!(attempt.outcome, Outcome::Accepted { .. } | Outcome::SoldOut | Outcome::AlreadyBooked) {
                let product = self.evidence.products[attempt.product].product_id.as_str();
                tried.entry(product).or_default().insert(self.evidence.buyer_ids[attempt.buyer]);
            }
        }
        let units = u64::from(self.evidence.units_each);
        let sold = self.ordered_units();
        let mut wrong = Findings::default();
        for (product, buyers) in &tried {
            let (due, sold) = (units.min(buyers.len() as u64), sold.get(product).copied().unwrap_or(0));
            if sold < due {
                wrong.add(format!("{} buyers tried {product}, {sold} of {units} units were sold", buyers.len()));
            }
        }
        wrong.check("no unit left over while a buyer was refused", || format!("{} products were tried", tried.len()))
    }

    fn closed_after_the_end(&self) -> Check {
        let (ok, detail) = match self.evidence.late {
            Outcome::NotActive => (true, "refused: the sale is not active".to_owned()),
            Outcome::Accepted { reservation_id, .. } => (false, format!("accepted as {reservation_id}")),
            // Only a sale that goes on looks at stock and bookings.
            Outcome::SoldOut | Outcome::AlreadyBooked => (false, "the sale still decides".to_owned()),
            Outcome::Failed { code, unknown } => (!unknown, format!("refused: {code}")),
        };
        Check { name: "a purchase after the end is refused", ok, detail }
    }

    fn everybody_answered(&self) -> Check {
        let failed = |attempt: &&Attempt| matches!(attempt.outcome, Outcome::Failed { .. } | Outcome::NotActive);
        let (errors, all) = (self.evidence.attempts.iter().filter(failed).count(), self.evidence.attempts.len());
        let ok = errors <= self.evidence.errors_max;
        Check { name: "every purchase got an answer", ok, detail: format!("{} of {all}", all - errors) }
    }

    fn ordered_units(&self) -> BTreeMap<&'a str, u64> {
        tally(self.evidence.orders.iter().map(|order| (order.product_id.as_str(), order.units())))
    }
}

fn nothing_left(found: &Result<Vec<String>, String>) -> Check {
    let mut wrong = Findings::default();
    match found {
        Ok(keys) => keys.iter().for_each(|key| wrong.add(key.clone())),
        Err(error) => wrong.add(format!("cannot look: {error}")),
    }
    wrong.check("nothing of the event is left in Redis but its status", || "no key left".to_owned())
}

fn owner(order: &Order) -> (&str, &str) {
    (&order.user_id, &order.product_id)
}

fn tally<K: Ord>(items: impl Iterator<Item = (K, u64)>) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    for (key, count) in items {
        *counts.entry(key).or_insert(0) += count;
    }
    counts
}

/// What breaks an invariant: the first few in words, all of them counted.
#[derive(Default)]
struct Findings {
    count: usize,
    first: Vec<String>,
}

impl Findings {
    const SHOWN: usize = 3;

    fn add(&mut self, finding: String) {
        self.count += 1;
        if self.first.len() < Self::SHOWN {
            self.first.push(finding);
        }
    }

    fn check(self, name: &'static str, fine: impl FnOnce() -> String) -> Check {
        if self.count == 0 {
            return Check { name, ok: true, detail: fine() };
        }
        let mut detail = self.first.join("; ");
        if self.count > self.first.len() {
            let _ = write!(detail, "; and {} more", self.count - self.first.len());
        }
        Check { name, ok: false, detail }
    }
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
