//! The money of one sale, compared with its orders, on the database as it is now.
//!
//! Reads page by page, and holds a page at a time. Money moves a moment after units do, so what does not agree is looked at
//! again by itself: what is still to be done about it is said to be unknown, and only what nobody will do is wrong.

use super::{PaymentRecords, Payments};
use crate::domain::event::Event;
use crate::domain::ids::EventId;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::page::Page;
use crate::domain::payment::{Payment, PaymentState};
use crate::error::{Code, Result};
use crate::sale::check::{Check, Verdict};
use crate::store::live::link::Link;

/// Payments, or orders, that are held at once.
const PER_PAGE: u32 = 500;
/// How often a payment that moves is looked at again.
const LOOKS_MAX: u32 = 5;
/// Reservations that are named; the others are counted.
const NAMED_MAX: usize = 5;

/// What was found of one invariant.
#[derive(Default)]
struct Found {
    looked_at: usize,
    waiting: usize,
    wrong: usize,
    named: Vec<String>,
}

impl Found {
    fn add(&mut self, reservation: &str, verdict: Verdict) {
        match verdict {
            Verdict::Holds => {}
            Verdict::Unknown => self.waiting += 1,
            Verdict::Violated => {
                self.wrong += 1;
                if self.named.len() < NAMED_MAX {
                    self.named.push(reservation.to_owned());
                }
            }
        }
    }

    fn check(self, number: u8, name: &'static str, of: &str) -> Check {
        let verdict = match (self.wrong, self.waiting) {
            (0, 0) => Verdict::Holds,
            (0, _) => Verdict::Unknown,
            _ => Verdict::Violated,
        };
        let mut detail = format!(
            "{} {of}, {} that something is still to be done about, {} wrong",
            self.looked_at, self.waiting, self.wrong
        );
        if !self.named.is_empty() {
            let more = if self.wrong > self.named.len() { " ..." } else { "" };
            detail.push_str(&format!(": {}{more}", self.named.join(" ")));
        }
        Check { number, name, verdict, detail }
    }
}

impl<L: Link, D: PaymentRecords> Payments<L, D> {
    /// Checks every invariant about the money of an event's reservations; there are none if it is not sold for money here.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn check(&self, event: &Event) -> Result<Vec<Check>> {
        if event.terms.payment_window_s == 0 {
            return Ok(Vec::new());
        }
        Ok(vec![self.check_money(event.id).await?, self.check_units(event.id).await?])
    }

    async fn check_money(&self, event: EventId) -> Result<Check> {
        let (mut found, mut after) = (Found::default(), None);
        loop {
            let page = self.durable.payments_succeeded(event, after.as_deref(), PER_PAGE).await?;
            let ids: Vec<String> = page.iter().map(|payment| payment.reservation.clone()).collect();
            let Some(last) = ids.last() else {
                return Ok(found.check(11, "money kept = price x units held, for each payment", "payments"));
            };
            after = Some(last.clone());
            found.looked_at += page.len();
            let orders = self.durable.orders_by_reservations(&ids).await?;
            for payment in page.iter().filter(|payment| !payment.balanced(orders.get(&payment.reservation))) {
                found.add(&payment.reservation, self.judge_money(payment).await?);
            }
        }
    }

    /// A payment that did not agree with its order. The two were read in two moments: only if the payment was the same
    /// before and after the order was read, and nobody has anything left to do about it, is it wrong.
    async fn judge_money(&self, payment: &Payment) -> Result<Verdict> {
        let mut before = payment.clone();
        for _ in 0..LOOKS_MAX {
            let order = self.durable.order(&payment.reservation).await?;
            let returned = self.durable.is_return_open(&payment.reservation).await?;
            let Some(now) = self.durable.payment(&payment.reservation).await? else {
                return Ok(Verdict::Violated);
            };
            if now.balanced(order.as_ref()) {
                return Ok(Verdict::Holds);
            }
            if now.due_at.is_some() || returned {
                return Ok(Verdict::Unknown);
            }
            if now == before {
                return Ok(Verdict::Violated);
            }
            before = now;
        }
        Ok(Verdict::Unknown)
    }

    async fn check_units(&self, event: EventId) -> Result<Check> {
        let (mut found, mut after) = (Found::default(), None);
        loop {
            let page = self.durable.orders(event, Page { limit: PER_PAGE, after }).await?;
            let confirmed: Vec<&Order> = page.items.iter().filter(|order| has_units(order)).collect();
            found.looked_at += confirmed.len();
            // Read after the orders: the money is recorded before it confirms anything.
            let ids: Vec<String> = confirmed.iter().map(|order| order.reservation_id.clone()).collect();
            let payments = self.durable.payments(&ids).await?;
            for order in confirmed {
                let verdict = match payments.get(&order.reservation_id) {
                    Some(payment) if pays(payment) => Verdict::Holds,
                    Some(payment) if payment.due_at.is_some() => Verdict::Unknown,
                    _ => self.judge_units(order).await?,
                };
                found.add(&order.reservation_id, verdict);
            }
            after = page.next;
            if after.is_none() {
                return Ok(found.check(12, "every confirmed order is paid for", "confirmed orders"));
            }
        }
    }

    /// A confirmed order that nobody has paid for. An order is up to two seconds behind the live store, where its units may
    /// have gone back by now.
    async fn judge_units(&self, order: &Order) -> Result<Verdict> {
        let found = match self.sale.reservation_of(order.user, order.product, order.event).await {
            Ok(found) => found,
            Err(error) if error.code() == Code::NotFound => return Ok(Verdict::Unknown),
            Err(error) => return Err(error),
        };
        let held = found.id == order.reservation_id && found.status == OrderStatus::Confirmed && found.units_held() > 0;
        Ok(if held { Verdict::Violated } else { Verdict::Unknown })
    }
}

fn has_units(order: &Order) -> bool {
    order.status == OrderStatus::Confirmed && order.units_held() > 0
}

/// Whether this money is there, and was not refused: it bought the units, or is about to.
fn pays(payment: &Payment) -> bool {
    payment.state == PaymentState::Succeeded && payment.applied.is_none_or(|applied| applied.outcome.confirmed())
}
