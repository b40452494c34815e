//! What payments need of the durable store, beside what a sale needs: see [`crate::sale::durable`].

use std::collections::HashMap;
use std::future::Future;

use chrono::{DateTime, Utc};

use crate::domain::ids::EventId;
use crate::domain::order::Order;
use crate::domain::payment::{Applied, Paid, Payment};
use crate::error::Result;
use crate::sale::Durable;
use crate::sale::durable::durable;
use crate::store::mongo::Mongo;
use crate::store::mongo::returns::Return;

durable! {
    /// The durable side of payments. What each call does is said at the repository behind it. Every call fails when the
    /// store does not answer in time.
    trait PaymentRecords: Durable;
    /// Records that a buyer is asked to pay, unless it is recorded; returns what is recorded.
    fn begin_payment(&self, payment: &Payment) -> Payment = payments.begin;
    /// The payment for this reservation.
    fn payment(&self, reservation: &str) -> Option<Payment> = payments.by_reservation;
    /// The payment of this name at the gateway.
    fn payment_by_intent(&self, intent: &str) -> Option<Payment> = payments.by_intent;
    /// The payments for these reservations.
    fn payments(&self, reservations: &[String]) -> HashMap<String, Payment> = payments.by_reservations;
    /// An event's payments whose money is there, page by page.
    fn payments_succeeded(&self, event: EventId, after: Option<&str>, limit: u32) -> Vec<Payment> = payments.succeeded_of;
    /// Remembers the gateway's name for a payment, unless it has one; returns what is recorded then.
    fn attach_intent(&self, reservation: &str, intent: &str, ask_at: Option<DateTime<Utc>>) -> Payment = payments.attach;
    /// The money is there: recorded once, and taken by the one whom this returns the payment to.
    fn succeed_payment(&self, reservation: &str, intent: &str, paid: &Paid, until: DateTime<Utc>) -> Option<Payment> = payments.succeed;
    /// An attempt to pay has failed; ignored if the money is there.
    fn fail_payment(&self, intent: &str) -> () = payments.fail;
    /// Reservations whose payments are due.
    fn payments_due(&self, now: DateTime<Utc>, limit: u32) -> Vec<String> = payments.due;
    /// Takes a payment that is due.
    fn claim_payment(&self, reservation: &str, now: DateTime<Utc>, until: DateTime<Utc>) -> Option<Payment> = payments.claim;
    /// Takes a payment that is due and whose money has done nothing yet.
    fn claim_unapplied(&self, reservation: &str, now: DateTime<Utc>, until: DateTime<Utc>) -> Option<Payment> = payments.claim_unapplied;
    /// Records what the money did, unless that is recorded; returns what is recorded then.
    fn apply_payment(&self, reservation: &str, applied: Applied, due: DateTime<Utc>) -> Payment = payments.apply;
    /// Gives a payment back that was taken, after so many failures.
    fn give_payment_back(&self, payment: &Payment, attempts: u32, due: Option<DateTime<Utc>>) -> () = payments.give_back;
    /// Leaves a payment to a person.
    fn give_payment_up(&self, payment: &Payment, now: DateTime<Utc>) -> () = payments.give_up;
    /// Makes those of these payments due whose money did what it does.
    fn wake_payments(&self, reservations: &[&str], now: DateTime<Utc>) -> () = payments.wake;
    /// Makes a payment due that has not succeeded yet.
    fn ask_payment_at(&self, reservation: &str, moment: DateTime<Utc>) -> () = payments.ask_at;
    /// A refund is about to be made; false if another one is under way, or as much has gone back.
    fn start_refund(&self, reservation: &str, target_minor: i64) -> bool = payments.start_refund;
    /// The gateway has refused the refund that is under way.
    fn refuse_refund(&self, reservation: &str, target_minor: i64) -> () = payments.refuse_refund;
    /// The refund that was under way is made; false if it was recorded before.
    fn finish_refund(&self, reservation: &str, target_minor: i64) -> bool = payments.finish_refund;
    /// How many payments have succeeded and did nothing yet, and how many refunds wait for a person.
    fn payment_backlog(&self) -> (u64, u64) = payments.backlog;
    /// Whether the callback of this id was dealt with.
    fn callback_seen(&self, id: &str) -> bool = payment_events.seen;
    /// The callback of this id is dealt with.
    fn record_callback(&self, id: &str, now: DateTime<Utc>) -> () = payment_events.record;
    /// Some of the orders that gave units back and whose money nobody has looked at.
    fn returns_open(&self, limit: u32) -> Vec<Return> = returns.open;
    /// Whether this reservation gave units back whose money nobody has looked at.
    fn is_return_open(&self, reservation: &str) -> bool = returns.is_open;
    /// The money of these was looked at, where nothing has changed since.
    fn close_returns(&self, looked_at: &[Return]) -> () = returns.close;
    /// The orders of these reservations.
    fn orders_by_reservations(&self, reservations: &[String]) -> HashMap<String, Order> = orders.by_reservations;
}
