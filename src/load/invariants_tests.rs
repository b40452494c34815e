use std::time::Duration;

use super::*;

/// A sale of two single units: buyer 0 gets product 0, buyer 1 comes too late for it, buyer 2 gets product 1.
struct Sale {
    products: Vec<ProductOnSale>,
    attempts: Vec<Attempt>,
    orders: Vec<Order>,
    analytics: Analytics,
    late: Outcome,
    leftover: Option<Result<Vec<String>, String>>,
    units_each: u32,
    errors_max: usize,
}

const BUYERS: [&str; 4] = ["b0", "b1", "b2", "b3"];

fn price(product: usize) -> Amount {
    Amount::new(100 + u32::try_from(product).unwrap(), 50)
}

fn accepted(product: usize, reservation: &str) -> Outcome {
    Outcome::Accepted { reservation_id: reservation.to_owned(), price: price(product) }
}

fn attempt(buyer: usize, product: usize, outcome: Outcome) -> Attempt {
    let (arrived, sent, answered) = (Duration::ZERO, Duration::ZERO, Duration::from_millis(1));
    Attempt { buyer, product, key: String::new(), outcome, arrived, sent, answered, measured: true, asked_again: false }
}

fn order(buyer: usize, product: usize, reservation: &str) -> Order {
    Order {
        reservation_id: reservation.to_owned(),
        user_id: BUYERS[buyer].to_owned(),
        product_id: format!("p{product}"),
        price: price(product),
        status: "CONFIRMED".to_owned(),
        quantity: 1,
        returned: 0,
        price_minor: 0,
    }
}

fn unknown() -> Outcome {
    Outcome::Failed { code: "no_answer_in_time".to_owned(), unknown: true }
}

impl Sale {
    fn sound() -> Self {
        let product =
            |number| ProductOnSale { product_id: format!("p{number}"), price: price(number), available_stock: 1 };
        let mut sale = Self {
            products: vec![product(0), product(1)],
            attempts: vec![
                attempt(0, 0, accepted(0, "r0")),
                attempt(1, 0, Outcome::SoldOut),
                attempt(2, 1, accepted(1, "r2")),
            ],
            orders: vec![order(2, 1, "r2"), order(0, 0, "r0")],
            analytics: Analytics {
                total_orders: 0,
                total_revenue: Amount::default(),
                status_breakdown: BTreeMap::new(),
            },
            late: Outcome::NotActive,
            leftover: Some(Ok(Vec::new())),
            units_each: 1,
            errors_max: 0,
        };
        sale.count();
        sale
    }

    /// Makes the analytics agree with the orders.
    fn count(&mut self) {
        self.analytics.total_orders = self.orders.len() as u64;
        self.analytics.total_revenue = self.orders.iter().map(|order| order.price.times(order.quantity)).sum();
        self.analytics.status_breakdown = tally(self.orders.iter().map(|order| (order.status.clone(), 1)));
    }

    fn checks(&self) -> Vec<Check> {
        check(&Evidence {
            codes: None,
            purses: None,
            products: &self.products,
            units_each: self.units_each,
            buyer_ids: BUYERS.to_vec(),
            attempts: &self.attempts,
            orders: &self.orders,
            analytics: &self.analytics,
            late: &self.late,
            leftover: self.leftover.as_ref(),
            errors_max: self.errors_max,
        })
    }

    /// Names of the invariants that do not hold.
    fn broken(&self) -> Vec<&'static str> {
        self.checks().into_iter().filter(|check| !check.ok).map(|check| check.name).collect()
    }
}

/// Breaks a sound sale, and counts the orders anew so that only the intended invariants show it.
fn broken_by(change: impl FnOnce(&mut Sale)) -> Vec<&'static str> {
    let mut sale = Sale::sound();
    change(&mut sale);
    sale.count();
    sale.broken()
}

const COUNTS: &str = "accepted purchases equal settled orders";
const ONE_ORDER: &str = "every accepted reservation is exactly one order";
const NO_ORPHAN: &str = "no order without an accepted purchase";
const OVERSOLD: &str = "no product sold beyond its units";
const ONE_EACH: &str = "no buyer holds more than one of a product";
const ONE_PRICE: &str = "one price in catalogue, answer and order";
const ANALYTICS: &str = "analytics agree with the orders";
const UNDERSOLD: &str = "no unit left over while a buyer was refused";
const CLOSED: &str = "a purchase after the end is refused";
const ANSWERED: &str = "every purchase got an answer";
const CLEAN: &str = "nothing of the event is left in Redis but its status";

#[test]
fn all_invariants_hold_for_a_sound_sale() {
    let checks = Sale::sound().checks();
    assert!(checks.iter().all(|check| check.ok), "{checks:#?}");
    let names: Vec<_> = checks.iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        [COUNTS, ONE_ORDER, NO_ORPHAN, OVERSOLD, ONE_EACH, ONE_PRICE, ANALYTICS, UNDERSOLD, CLOSED, ANSWERED, CLEAN]
    );
}

#[test]
fn a_lost_order_shows() {
    assert_eq!(broken_by(|sale| drop(sale.orders.pop())), [COUNTS, ONE_ORDER, UNDERSOLD]);
}

#[test]
fn an_order_written_twice_shows() {
    let broken = broken_by(|sale| sale.orders.push(order(0, 0, "r0")));
    assert_eq!(broken, [COUNTS, ONE_ORDER, OVERSOLD, ONE_EACH]);
}

#[test]
fn an_order_that_nobody_placed_shows() {
    let broken = broken_by(|sale| {
        sale.units_each = 2;
        sale.attempts[1].outcome = accepted(0, "r1");
        sale.orders.push(order(3, 0, "r9"));
    });
    assert_eq!(broken, [ONE_ORDER, NO_ORPHAN]);
}

#[test]
fn an_order_of_another_buyer_or_product_shows() {
    assert_eq!(broken_by(|sale| sale.orders[0].user_id = BUYERS[3].to_owned()), [ONE_ORDER]);
    let broken = broken_by(|sale| {
        sale.units_each = 2;
        sale.attempts.remove(1);
        sale.orders[0] = Order { product_id: "p0".to_owned(), price: price(0), ..sale.orders[0].clone() };
    });
    assert_eq!(broken, [ONE_ORDER, UNDERSOLD]);
}

#[test]
fn one_reservation_promised_to_two_buyers_shows() {
    let broken = broken_by(|sale| sale.attempts[1].outcome = accepted(0, "r0"));
    assert_eq!(broken, [COUNTS, ONE_ORDER, OVERSOLD]);
}

#[test]
fn an_oversold_product_shows_even_if_its_orders_add_up() {
    let broken = broken_by(|sale| {
        sale.attempts[1].outcome = accepted(0, "r1");
        sale.orders.push(order(1, 0, "r1"));
    });
    assert_eq!(broken, [OVERSOLD]);
}

#[test]
fn a_second_unit_for_the_same_buyer_shows() {
    let broken = broken_by(|sale| {
        sale.units_each = 2;
        sale.attempts[1] = attempt(0, 0, accepted(0, "r1"));
        sale.orders.push(order(0, 0, "r1"));
    });
    assert_eq!(broken, [ONE_EACH]);
    assert_eq!(broken_by(|sale| sale.orders[0].quantity = 2), [OVERSOLD, ONE_EACH]);
}

#[test]
fn another_price_shows_in_the_answer_and_in_the_order() {
    assert_eq!(broken_by(|sale| sale.orders[0].price = Amount::new(101, 51)), [ONE_PRICE]);
    let cheaper = Outcome::Accepted { reservation_id: "r0".to_owned(), price: Amount::new(1, 0) };
    assert_eq!(broken_by(|sale| sale.attempts[0].outcome = cheaper), [ONE_PRICE]);
    assert!(broken_by(|sale| sale.orders[0].product_id = "p7".to_owned()).contains(&ONE_PRICE));
}

#[test]
fn analytics_that_miscount_show() {
    let changes: [fn(&mut Analytics); 3] = [
        |analytics| analytics.total_orders += 1,
        |analytics| analytics.total_revenue = Amount::new(202, 1),
        |analytics| analytics.status_breakdown.extend([("CANCELLED".to_owned(), 1)]),
    ];
    for change in changes {
        let mut sale = Sale::sound();
        change(&mut sale.analytics);
        assert_eq!(sale.broken(), [ANALYTICS]);
    }
    // A status that nothing has may be listed or not.
    let mut sale = Sale::sound();
    sale.analytics.status_breakdown.insert("CANCELLED".to_owned(), 0);
    assert!(sale.broken().is_empty());
}

#[test]
fn an_unsold_unit_shows_if_somebody_was_told_it_was_gone() {
    let broken = broken_by(|sale| {
        sale.attempts.remove(0);
        sale.orders.pop();
    });
    assert_eq!(broken, [UNDERSOLD]);
    // More stock than buyers is no fault.
    assert!(
        broken_by(|sale| {
            sale.units_each = 9;
            sale.attempts.remove(1);
        })
        .is_empty()
    );
}

#[test]
fn a_purchase_after_the_end_shows() {
    assert_eq!(broken_by(|sale| sale.late = accepted(0, "r9")), [CLOSED]);
    assert_eq!(broken_by(|sale| sale.late = unknown()), [CLOSED]);
    assert_eq!(broken_by(|sale| sale.late = Outcome::SoldOut), [CLOSED]);
}

#[test]
fn an_unknown_outcome_may_have_an_order_or_none_but_is_an_error() {
    assert_eq!(broken_by(|sale| sale.attempts.push(attempt(3, 1, unknown()))), [ANSWERED]);
    let with_order = |sale: &mut Sale| {
        sale.units_each = 2;
        sale.attempts.remove(1);
        sale.attempts.push(attempt(3, 1, unknown()));
        sale.orders.push(order(3, 1, "r9"));
        sale.errors_max = 1;
    };
    assert!(broken_by(with_order).is_empty());
    // An outcome that is known to be a failure excuses no order.
    let broken = broken_by(|sale| {
        with_order(sale);
        sale.attempts[2].outcome = Outcome::Failed { code: "product_not_found".to_owned(), unknown: false };
    });
    assert_eq!(broken, [COUNTS, NO_ORPHAN]);
}

#[test]
fn a_key_that_stays_shows_and_so_does_not_being_able_to_look() {
    let key = "event:{e}:product:p0:winners".to_owned();
    assert_eq!(broken_by(|sale| sale.leftover = Some(Ok(vec![key]))), [CLEAN]);
    assert_eq!(broken_by(|sale| sale.leftover = Some(Err("away".to_owned()))), [CLEAN]);
    let mut sale = Sale::sound();
    sale.leftover = None;
    assert!(sale.checks().iter().all(|check| check.name != CLEAN), "nobody looked, so nothing is claimed");
}

#[test]
fn many_findings_are_counted_and_a_few_are_shown() {
    let mut findings = Findings::default();
    (0..5).for_each(|number| findings.add(number.to_string()));
    assert_eq!(findings.check("x", String::new).detail, "0; 1; 2; and 2 more");
}
