//! Payments, callbacks that were dealt with, and orders that gave units back, with the guards of their repositories.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use orbit::domain::ids::EventId;
use orbit::domain::order::Order;
use orbit::domain::payment::{Applied, Paid, Payment, PaymentState};
use orbit::store::mongo::returns::Return;

use super::Database;

type Moment = DateTime<Utc>;

impl Database {
    /// On purpose, to see that it is found: a failure changes what has succeeded.
    pub const fn honour_failures(&mut self) {
        self.failures_honoured = true;
    }

    /// On purpose, to see that it is found: nothing says when to ask the gateway about a payment.
    pub const fn forget_questions(&mut self) {
        self.questions_forgotten = true;
    }

    pub fn payments(&self) -> impl Iterator<Item = &Payment> {
        self.payments.values()
    }

    /// Payments that were left to a person.
    pub fn stuck_payments(&self) -> usize {
        self.stuck.len()
    }

    /// Orders that gave units back whose money nobody has looked at.
    pub fn returns_left(&self) -> usize {
        self.returned.len()
    }

    pub fn payment(&self, reservation: &str) -> Option<Payment> {
        self.payments.get(reservation).cloned()
    }

    pub fn begin_payment(&mut self, payment: Payment) -> Payment {
        self.payments.entry(payment.reservation.clone()).or_insert(payment).clone()
    }

    pub fn payment_by_intent(&self, intent: &str) -> Option<Payment> {
        self.payments.values().find(|payment| payment.intent.as_deref() == Some(intent)).cloned()
    }

    pub fn payments_by(&self, reservations: &[String]) -> HashMap<String, Payment> {
        reservations.iter().filter_map(|id| Some((id.clone(), self.payment(id)?))).collect()
    }

    pub fn payments_succeeded(&self, event: EventId, after: Option<&str>, limit: u32) -> Vec<Payment> {
        let wanted = |payment: &&Payment| {
            payment.event == event
                && payment.state == PaymentState::Succeeded
                && after.is_none_or(|after| payment.reservation.as_str() > after)
        };
        self.payments.values().filter(wanted).take(limit as usize).cloned().collect()
    }

    pub fn attach_intent(&mut self, reservation: &str, intent: String, ask_at: Option<Moment>) -> Payment {
        let payment = self.payments.get_mut(reservation).unwrap();
        if payment.intent.is_none() {
            payment.intent = Some(intent);
            payment.due_at = ask_at.filter(|_| !self.questions_forgotten);
        }
        payment.clone()
    }

    pub fn succeed_payment(&mut self, reservation: &str, intent: &str, paid: Paid, until: Moment) -> Option<Payment> {
        let payment = self.payments.get_mut(reservation)?;
        let named = payment.intent.as_deref().is_none_or(|named| named == intent);
        if !named || payment.state == PaymentState::Succeeded {
            return None;
        }
        self.changes += 1;
        payment.state = PaymentState::Succeeded;
        payment.intent = Some(intent.to_owned());
        payment.paid = Some(paid);
        (payment.attempts, payment.due_at) = (0, Some(until));
        Some(payment.clone())
    }

    pub fn fail_payment(&mut self, intent: &str) {
        let honoured = self.failures_honoured;
        let open = |payment: &&mut Payment| {
            payment.intent.as_deref() == Some(intent) && (payment.state == PaymentState::Created || honoured)
        };
        if let Some(payment) = self.payments.values_mut().find(open) {
            payment.state = PaymentState::Failed;
            self.changes += 1;
        }
    }

    /// The longest due first.
    pub fn payments_due(&self, now: Moment, limit: u32) -> Vec<String> {
        let mut due: Vec<&Payment> =
            self.payments.values().filter(|payment| payment.due_at.is_some_and(|due| due <= now)).collect();
        due.sort_by_key(|payment| payment.due_at);
        due.into_iter().take(limit as usize).map(|payment| payment.reservation.clone()).collect()
    }

    pub fn claim_payment(
        &mut self,
        reservation: &str,
        now: Moment,
        until: Moment,
        wanted: impl FnOnce(&Payment) -> bool,
    ) -> Option<Payment> {
        let payment = self.payments.get_mut(reservation)?;
        if payment.due_at.is_none_or(|due| due > now) || !wanted(payment) {
            return None;
        }
        payment.due_at = Some(until);
        Some(payment.clone())
    }

    pub fn apply_payment(&mut self, reservation: &str, applied: Applied, due: Moment) -> Payment {
        let payment = self.payments.get_mut(reservation).unwrap();
        if payment.applied.is_none() {
            self.changes += 1;
            payment.applied = Some(applied);
            (payment.attempts, payment.due_at) = (0, Some(due));
        }
        payment.clone()
    }

    /// Unless something has made it due meanwhile.
    pub fn give_payment_back(&mut self, taken: &Payment, attempts: u32, due: Option<Moment>) {
        if let Some(payment) = self.taken(taken) {
            (payment.attempts, payment.due_at) = (attempts, due);
            self.stuck.remove(&taken.reservation);
        }
    }

    pub fn give_payment_up(&mut self, taken: &Payment) {
        if let Some(payment) = self.taken(taken) {
            payment.due_at = None;
            self.stuck.insert(taken.reservation.clone());
        }
    }

    fn taken(&mut self, taken: &Payment) -> Option<&mut Payment> {
        self.payments.get_mut(&taken.reservation).filter(|payment| payment.due_at == taken.due_at)
    }

    pub fn wake_payments(&mut self, reservations: &[String], now: Moment) {
        for id in reservations {
            if let Some(payment) = self.payments.get_mut(id).filter(|payment| payment.applied.is_some()) {
                payment.due_at = Some(now);
            }
        }
    }

    pub fn ask_payment_at(&mut self, reservation: &str, moment: Moment) {
        let open = |payment: &&mut Payment| payment.state != PaymentState::Succeeded;
        if let Some(payment) = self.payments.get_mut(reservation).filter(open) {
            payment.due_at = Some(moment);
        }
    }

    pub fn start_refund(&mut self, reservation: &str, target_minor: i64) -> bool {
        let payment = self.payments.get_mut(reservation);
        let Some(payment) = payment.filter(|one| one.refunding_minor.is_none() && one.refunded_minor < target_minor)
        else {
            return false;
        };
        (payment.refunding_minor, payment.refusals) = (Some(target_minor), 0);
        true
    }

    pub fn refuse_refund(&mut self, reservation: &str, target_minor: i64) {
        if let Some(payment) = self.refunding(reservation, target_minor) {
            payment.refusals += 1;
        }
    }

    pub fn finish_refund(&mut self, reservation: &str, target_minor: i64) -> bool {
        let Some(payment) = self.refunding(reservation, target_minor) else { return false };
        (payment.refunding_minor, payment.refusals, payment.refunded_minor) = (None, 0, target_minor);
        self.changes += 1;
        true
    }

    fn refunding(&mut self, reservation: &str, target_minor: i64) -> Option<&mut Payment> {
        self.payments.get_mut(reservation).filter(|payment| payment.refunding_minor == Some(target_minor))
    }

    pub fn payment_backlog(&self) -> (u64, u64) {
        let waits = |payment: &&Payment| payment.state == PaymentState::Succeeded && payment.applied.is_none();
        (self.payments.values().filter(waits).count() as u64, self.stuck.len() as u64)
    }

    pub fn callback_seen(&self, id: &str) -> bool {
        self.callbacks.contains(id)
    }

    pub fn record_callback(&mut self, id: String) {
        self.callbacks.insert(id);
    }

    pub fn returns_open(&self, limit: u32) -> Vec<Return> {
        let orders = self.returned.iter().filter_map(|id| self.order(id));
        let open = orders.map(|one| Return { revision: i64::from(one.revision), reservation_id: one.reservation_id });
        open.take(limit as usize).collect()
    }

    pub fn is_return_open(&self, reservation: &str) -> bool {
        self.returned.contains(reservation)
    }

    pub fn close_returns(&mut self, looked_at: &[Return]) {
        for one in looked_at {
            if self.order(&one.reservation_id).is_some_and(|order| i64::from(order.revision) == one.revision) {
                self.returned.remove(&one.reservation_id);
            }
        }
    }

    pub fn orders_by_reservations(&self, ids: &[String]) -> HashMap<String, Order> {
        ids.iter().filter_map(|id| Some((id.clone(), self.order(id)?))).collect()
    }
}
