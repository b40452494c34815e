//! A process's access to payments in the database.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use orbit::domain::ids::EventId;
use orbit::domain::order::Order;
use orbit::domain::payment::{Applied, Paid, Payment};
use orbit::error::Result;
use orbit::payment::PaymentRecords;
use orbit::store::mongo::returns::Return;

use super::SimDurable;

type Moment = DateTime<Utc>;

impl PaymentRecords for SimDurable {
    async fn begin_payment(&self, payment: &Payment) -> Result<Payment> {
        let payment = payment.clone();
        self.ask("recording a payment", move |database| database.begin_payment(payment)).await
    }

    async fn payment(&self, reservation: &str) -> Result<Option<Payment>> {
        let id = reservation.to_owned();
        self.ask("reading a payment", move |database| database.payment(&id)).await
    }

    async fn payment_by_intent(&self, intent: &str) -> Result<Option<Payment>> {
        let intent = intent.to_owned();
        self.ask("reading a payment", move |database| database.payment_by_intent(&intent)).await
    }

    async fn payments(&self, reservations: &[String]) -> Result<HashMap<String, Payment>> {
        let ids = reservations.to_vec();
        self.ask("listing payments", move |database| database.payments_by(&ids)).await
    }

    async fn payments_succeeded(&self, event: EventId, after: Option<&str>, limit: u32) -> Result<Vec<Payment>> {
        let after = after.map(ToOwned::to_owned);
        self.ask("listing payments", move |database| database.payments_succeeded(event, after.as_deref(), limit)).await
    }

    async fn attach_intent(&self, reservation: &str, intent: &str, ask_at: Option<Moment>) -> Result<Payment> {
        let (id, intent) = (reservation.to_owned(), intent.to_owned());
        self.ask("naming a payment", move |database| database.attach_intent(&id, intent, ask_at)).await
    }

    async fn succeed_payment(
        &self,
        reservation: &str,
        intent: &str,
        paid: &Paid,
        until: Moment,
    ) -> Result<Option<Payment>> {
        let (id, intent, paid) = (reservation.to_owned(), intent.to_owned(), paid.clone());
        self.ask("taking a payment", move |database| database.succeed_payment(&id, &intent, paid, until)).await
    }

    async fn fail_payment(&self, intent: &str) -> Result<()> {
        let intent = intent.to_owned();
        self.ask("recording a failed payment", move |database| database.fail_payment(&intent)).await
    }

    async fn payments_due(&self, now: Moment, limit: u32) -> Result<Vec<String>> {
        self.ask("listing payments that are due", move |database| database.payments_due(now, limit)).await
    }

    async fn claim_payment(&self, reservation: &str, now: Moment, until: Moment) -> Result<Option<Payment>> {
        let id = reservation.to_owned();
        self.ask("taking a payment", move |database| database.claim_payment(&id, now, until, |_| true)).await
    }

    async fn claim_unapplied(&self, reservation: &str, now: Moment, until: Moment) -> Result<Option<Payment>> {
        let (id, unapplied) = (reservation.to_owned(), |payment: &Payment| payment.applied.is_none());
        self.ask("taking a payment", move |database| database.claim_payment(&id, now, until, unapplied)).await
    }

    async fn apply_payment(&self, reservation: &str, applied: Applied, due: Moment) -> Result<Payment> {
        let id = reservation.to_owned();
        self.ask("recording what a payment did", move |database| database.apply_payment(&id, applied, due)).await
    }

    async fn give_payment_back(&self, payment: &Payment, attempts: u32, due: Option<Moment>) -> Result<()> {
        let taken = payment.clone();
        self.ask("giving a payment back", move |database| database.give_payment_back(&taken, attempts, due)).await
    }

    async fn give_payment_up(&self, payment: &Payment, _now: Moment) -> Result<()> {
        let taken = payment.clone();
        self.ask("giving a refund up", move |database| database.give_payment_up(&taken)).await
    }

    async fn wake_payments(&self, reservations: &[&str], now: Moment) -> Result<()> {
        let ids: Vec<String> = reservations.iter().map(|id| (*id).to_owned()).collect();
        self.ask("waking payments", move |database| database.wake_payments(&ids, now)).await
    }

    async fn ask_payment_at(&self, reservation: &str, moment: Moment) -> Result<()> {
        let id = reservation.to_owned();
        self.ask("waking a payment", move |database| database.ask_payment_at(&id, moment)).await
    }

    async fn start_refund(&self, reservation: &str, target_minor: i64) -> Result<bool> {
        let id = reservation.to_owned();
        self.ask("starting a refund", move |database| database.start_refund(&id, target_minor)).await
    }

    async fn refuse_refund(&self, reservation: &str, target_minor: i64) -> Result<()> {
        let id = reservation.to_owned();
        self.ask("recording a refused refund", move |database| database.refuse_refund(&id, target_minor)).await
    }

    async fn finish_refund(&self, reservation: &str, target_minor: i64) -> Result<bool> {
        let id = reservation.to_owned();
        self.ask("recording a refund", move |database| database.finish_refund(&id, target_minor)).await
    }

    async fn payment_backlog(&self) -> Result<(u64, u64)> {
        self.ask("counting payments", |database| database.payment_backlog()).await
    }

    async fn callback_seen(&self, id: &str) -> Result<bool> {
        let id = id.to_owned();
        self.ask("looking for a payment event", move |database| database.callback_seen(&id)).await
    }

    async fn record_callback(&self, id: &str, _now: Moment) -> Result<()> {
        let id = id.to_owned();
        self.ask("recording a payment event", move |database| database.record_callback(id)).await
    }

    async fn returns_open(&self, limit: u32) -> Result<Vec<Return>> {
        self.ask("listing returned units", move |database| database.returns_open(limit)).await
    }

    async fn is_return_open(&self, reservation: &str) -> Result<bool> {
        let id = reservation.to_owned();
        self.ask("looking for returned units", move |database| database.is_return_open(&id)).await
    }

    async fn close_returns(&self, looked_at: &[Return]) -> Result<()> {
        if looked_at.is_empty() {
            return Ok(());
        }
        let looked_at = looked_at.to_vec();
        let cut = self.line.faults().cut(looked_at.len());
        let work = move |database: &mut super::Database| {
            database.close_returns(&looked_at[..cut.unwrap_or(looked_at.len())]);
            cut.is_none().then_some(())
        };
        self.ask_or_cut("closing returned units", work).await
    }

    async fn orders_by_reservations(&self, reservations: &[String]) -> Result<HashMap<String, Order>> {
        let ids = reservations.to_vec();
        self.ask("reading orders", move |database| database.orders_by_reservations(&ids)).await
    }
}
