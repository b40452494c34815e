//! Collection `payments`: the money for reservations, one document for each, named by the reservation.
//!
//! Everything moves by guarded updates: a write that finds something else than it expects changes nothing. `dueAt` is when
//! there is something to be done. Taking a payment moves it into the future, so that nobody else works on it meanwhile, and
//! whatever the one who took it leaves undone is due again by itself.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use chrono::Utc;
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unless_duplicate, unreadable, within};
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::payment::{Applied, Paid, Payment, PaymentOutcome, PaymentState};
use crate::error::{Error, Result};

type Moment = chrono::DateTime<Utc>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentDocument {
    #[serde(rename = "_id")]
    reservation_id: String,
    user_id: ObjectId,
    product_id: ObjectId,
    event_id: ObjectId,
    quantity: i64,
    price_minor: i64,
    amount_minor: i64,
    currency: String,
    expires_at: DateTime,
    intent_id: Option<String>,
    state: String,
    paid: Option<PaidDocument>,
    applied: Option<AppliedDocument>,
    refunded_minor: i64,
    refunding: Option<RefundingDocument>,
    #[serde(default)]
    attempts: i64,
    due_at: Option<DateTime>,
    created_at: DateTime,
}

#[derive(Debug, Serialize, Deserialize)]
struct PaidDocument {
    minor: i64,
    currency: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct AppliedDocument {
    outcome: String,
    revision: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefundingDocument {
    target_minor: i64,
    #[serde(default)]
    refusals: i64,
}

impl TryFrom<PaymentDocument> for Payment {
    type Error = Error;

    fn try_from(document: PaymentDocument) -> Result<Self> {
        let broken =
            |what: &str| unreadable("reading a payment", format!("{what} of payment {}", document.reservation_id));
        let applied = |applied: &AppliedDocument| {
            Some(Applied {
                outcome: PaymentOutcome::parse(&applied.outcome)?,
                revision: u32::try_from(applied.revision).ok()?,
            })
        };
        Ok(Self {
            user: UserId::from_bytes(document.user_id.bytes()),
            product: ProductId::from_bytes(document.product_id.bytes()),
            event: EventId::from_bytes(document.event_id.bytes()),
            quantity: u32::try_from(document.quantity).map_err(|_| broken("quantity"))?,
            price: Money {
                minor: document.price_minor,
                currency: money::currency(&document.currency).ok_or_else(|| broken("currency"))?,
            },
            amount_minor: document.amount_minor,
            expires_at: document.expires_at.to_chrono(),
            intent: document.intent_id.clone(),
            state: PaymentState::parse(&document.state).ok_or_else(|| broken("state"))?,
            paid: document.paid.as_ref().map(|paid| Paid { minor: paid.minor, currency: paid.currency.clone() }),
            applied: match &document.applied {
                Some(document) => Some(applied(document).ok_or_else(|| broken("applied"))?),
                None => None,
            },
            refunded_minor: document.refunded_minor,
            refunding_minor: document.refunding.as_ref().map(|refunding| refunding.target_minor),
            refusals: u32::try_from(document.refunding.as_ref().map_or(0, |refunding| refunding.refusals))
                .map_err(|_| broken("refusals"))?,
            attempts: u32::try_from(document.attempts).map_err(|_| broken("attempts"))?,
            due_at: document.due_at.map(DateTime::to_chrono),
            created_at: document.created_at.to_chrono(),
            reservation: document.reservation_id,
        })
    }
}

/// Payments.
#[derive(Debug)]
pub struct Payments {
    pub(super) collection: Collection<PaymentDocument>,
    pub(super) deadline: Duration,
}

fn at(moment: Moment) -> DateTime {
    DateTime::from_chrono(moment)
}

fn due_at(due: Option<Moment>) -> Document {
    due.map_or_else(|| doc! { "dueAt": null }, |due| doc! { "dueAt": at(due) })
}

impl Payments {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("payments"), deadline }
    }

    /// Records that a buyer is asked to pay, unless it is recorded; returns what is recorded.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn begin(&self, payment: &Payment) -> Result<Payment> {
        let document = PaymentDocument {
            reservation_id: payment.reservation.clone(),
            user_id: ObjectId::from_bytes(payment.user.bytes()),
            product_id: ObjectId::from_bytes(payment.product.bytes()),
            event_id: ObjectId::from_bytes(payment.event.bytes()),
            quantity: payment.quantity.into(),
            price_minor: payment.price.minor,
            amount_minor: payment.amount_minor,
            currency: payment.price.currency.code().to_owned(),
            expires_at: at(payment.expires_at),
            intent_id: None,
            state: PaymentState::Created.as_str().to_owned(),
            paid: None,
            applied: None,
            refunded_minor: 0,
            refunding: None,
            attempts: 0,
            due_at: None,
            created_at: at(payment.created_at),
        };
        unless_duplicate(self.deadline, "recording a payment", self.collection.insert_one(document)).await?;
        self.recorded(&payment.reservation).await
    }

    /// The payment for this reservation.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_reservation(&self, reservation: &str) -> Result<Option<Payment>> {
        self.find(doc! { "_id": reservation }).await
    }

    /// The payment of this name at the gateway.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_intent(&self, intent: &str) -> Result<Option<Payment>> {
        self.find(doc! { "intentId": intent }).await
    }

    /// Remembers the gateway's name for a payment, unless it has one; returns what is recorded then.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn attach(&self, reservation: &str, intent: &str, ask_at: Option<Moment>) -> Result<Payment> {
        let mut set = due_at(ask_at);
        set.insert("intentId", intent);
        let call = self.collection.update_one(doc! { "_id": reservation, "intentId": null }, doc! { "$set": set });
        within(self.deadline, "naming a payment", call).await?;
        self.recorded(reservation).await
    }

    /// The money is there: recorded once, and taken until `until` by the one whom this returns the payment to. `None` if it
    /// was recorded before, or there is no payment of these names.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn succeed(
        &self,
        reservation: &str,
        intent: &str,
        paid: &Paid,
        until: Moment,
    ) -> Result<Option<Payment>> {
        let which = doc! {
            "_id": reservation,
            "intentId": { "$in": [intent, null] },
            "state": { "$ne": PaymentState::Succeeded.as_str() },
        };
        let set = doc! {
            "state": PaymentState::Succeeded.as_str(),
            "intentId": intent,
            "paid": { "minor": paid.minor, "currency": &paid.currency },
            "attempts": 0_i64,
            "dueAt": at(until),
        };
        self.take(which, doc! { "$set": set, "$currentDate": { "succeededAt": true } }).await
    }

    /// An attempt to pay has failed; ignored if the money is there.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn fail(&self, intent: &str) -> Result<()> {
        let which = doc! { "intentId": intent, "state": PaymentState::Created.as_str() };
        let call = self.collection.update_one(which, doc! { "$set": { "state": PaymentState::Failed.as_str() } });
        within(self.deadline, "recording a failed payment", call).await.map(|_| ())
    }

    /// Reservations whose payments are due, the longest due first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn due(&self, now: Moment, limit: u32) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            reservation: String,
        }
        let rows = self.collection.clone_with_type::<Row>();
        let call = async {
            let find = rows.find(doc! { "dueAt": { "$lte": at(now) } }).sort(doc! { "dueAt": 1 });
            let cursor = find.limit(limit.into()).projection(doc! { "_id": 1 }).await?;
            cursor.map_ok(|row| row.reservation).try_collect().await
        };
        within(self.deadline, "listing payments that are due", call).await
    }

    /// Takes a payment that is due until `until`; `None` if it is not, or somebody else has it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn claim(&self, reservation: &str, now: Moment, until: Moment) -> Result<Option<Payment>> {
        let which = doc! { "_id": reservation, "dueAt": { "$lte": at(now) } };
        self.take(which, doc! { "$set": { "dueAt": at(until) } }).await
    }

    /// As [`Self::claim`], of a payment whose money has done nothing yet.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn claim_unapplied(&self, reservation: &str, now: Moment, until: Moment) -> Result<Option<Payment>> {
        let which = doc! { "_id": reservation, "applied": null, "dueAt": { "$lte": at(now) } };
        self.take(which, doc! { "$set": { "dueAt": at(until) } }).await
    }

    /// Records what the money did, unless that is recorded; returns what is recorded then. It is due at `due`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn apply(&self, reservation: &str, applied: Applied, due: Moment) -> Result<Payment> {
        let outcome = doc! { "outcome": applied.outcome.as_str(), "revision": i64::from(applied.revision) };
        let set = doc! { "applied": outcome, "attempts": 0_i64, "dueAt": at(due) };
        let call = self.collection.update_one(doc! { "_id": reservation, "applied": null }, doc! { "$set": set });
        within(self.deadline, "recording what a payment did", call).await?;
        self.recorded(reservation).await
    }

    /// Gives a payment back that was taken until `taken`: it is due at `due`, after so many failures. Nothing happens if
    /// something has made it due meanwhile.
    ///
    /// # Errors
    /// When the database does not answer; then it is due when its time runs out.
    pub async fn give_back(&self, payment: &Payment, attempts: u32, due: Option<Moment>) -> Result<()> {
        let mut set = due_at(due);
        set.insert("attempts", i64::from(attempts));
        let change = doc! { "$set": set, "$unset": { "stuckSince": "" } };
        self.change_taken("giving a payment back", payment, change).await
    }

    /// Leaves a payment to a person.
    ///
    /// # Errors
    /// When the database does not answer; then it is tried once more.
    pub async fn give_up(&self, payment: &Payment, now: Moment) -> Result<()> {
        let set = doc! { "dueAt": null, "stuckSince": at(now) };
        self.change_taken("giving a refund up", payment, doc! { "$set": set }).await
    }

    async fn change_taken(&self, doing: &'static str, payment: &Payment, change: Document) -> Result<()> {
        let mut taken = due_at(payment.due_at);
        taken.insert("_id", &payment.reservation);
        within(self.deadline, doing, self.collection.update_one(taken, change)).await.map(|_| ())
    }

    /// Makes those of these payments due whose money did what it does.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn wake(&self, reservations: &[&str], now: Moment) -> Result<()> {
        let which = doc! { "_id": { "$in": reservations }, "applied": { "$ne": null } };
        let call = self.collection.update_many(which, doc! { "$set": { "dueAt": at(now) } });
        within(self.deadline, "waking payments", call).await.map(|_| ())
    }

    /// Makes a payment due that has not succeeded yet: its gateway is to be asked.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn ask_at(&self, reservation: &str, moment: Moment) -> Result<()> {
        let open = doc! { "_id": reservation, "state": { "$ne": PaymentState::Succeeded.as_str() } };
        let call = self.collection.update_one(open, doc! { "$set": { "dueAt": at(moment) } });
        within(self.deadline, "waking a payment", call).await.map(|_| ())
    }

    /// A refund is about to be made, after which so much will have gone back in all; false if another one is under way, or
    /// as much has gone back.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn start_refund(&self, reservation: &str, target_minor: i64) -> Result<bool> {
        let which = doc! { "_id": reservation, "refunding": null, "refundedMinor": { "$lt": target_minor } };
        let set = doc! { "refunding": { "targetMinor": target_minor } };
        let call = self.collection.update_one(which, doc! { "$set": set });
        Ok(within(self.deadline, "starting a refund", call).await?.matched_count == 1)
    }

    /// The gateway has refused the refund that is under way.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn refuse_refund(&self, reservation: &str, target_minor: i64) -> Result<()> {
        let which = doc! { "_id": reservation, "refunding.targetMinor": target_minor };
        let call = self.collection.update_one(which, doc! { "$inc": { "refunding.refusals": 1_i64 } });
        within(self.deadline, "recording a refused refund", call).await.map(|_| ())
    }

    /// The refund that was under way is made; false if it was recorded before.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn finish_refund(&self, reservation: &str, target_minor: i64) -> Result<bool> {
        let which = doc! { "_id": reservation, "refunding.targetMinor": target_minor };
        let set = doc! { "refunding": null, "refundedMinor": target_minor };
        let call = self.collection.update_one(which, doc! { "$set": set });
        Ok(within(self.deadline, "recording a refund", call).await?.matched_count == 1)
    }

    /// How many payments have succeeded and did nothing yet, and how many refunds wait for a person.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn backlog(&self) -> Result<(u64, u64)> {
        // What is not applied is due some time: the index of that holds little else.
        let unapplied = doc! { "dueAt": { "$gt": DateTime::from_millis(0) }, "state": "SUCCEEDED", "applied": null };
        let stuck = doc! { "stuckSince": { "$gt": DateTime::from_millis(0) } };
        let unapplied = self.collection.count_documents(unapplied);
        let unapplied = within(self.deadline, "counting payments", unapplied).await?;
        let stuck = within(self.deadline, "counting refunds", self.collection.count_documents(stuck)).await?;
        Ok((unapplied, stuck))
    }

    async fn find(&self, filter: Document) -> Result<Option<Payment>> {
        let call = self.collection.find_one(filter);
        within(self.deadline, "reading a payment", call).await?.map(Payment::try_from).transpose()
    }

    async fn recorded(&self, reservation: &str) -> Result<Payment> {
        let missing = || unreadable("reading a payment", format!("payment {reservation} is gone"));
        self.by_reservation(reservation).await?.ok_or_else(missing)
    }

    async fn take(&self, which: Document, change: Document) -> Result<Option<Payment>> {
        let call = self.collection.find_one_and_update(which, change).return_document(ReturnDocument::After);
        within(self.deadline, "taking a payment", call).await?.map(Payment::try_from).transpose()
    }
}
