//! Collection `sandboxIntents`: what the payment gateway of trials remembers.

use std::time::Duration;

use bson::{Document, doc};
use mongodb::{Collection, Database};
use serde::Deserialize;

use super::error::{unless_duplicate, unreadable, within};
use crate::domain::money::{self, Money};
use crate::domain::payment::PaymentState;
use crate::error::{Error, Result};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SandboxDocument {
    #[serde(rename = "_id")]
    id: String,
    reservation_id: String,
    amount_minor: i64,
    currency: String,
    state: String,
    #[serde(default)]
    refunds: Vec<RefundDocument>,
}

#[derive(Debug, Deserialize)]
struct RefundDocument {
    minor: i64,
}

/// Something to be paid in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxIntent {
    /// Its id.
    pub id: String,
    /// What it is for.
    pub reservation: String,
    /// How much.
    pub amount: Money,
    /// Whether it is paid.
    pub state: PaymentState,
    /// What went back, in minor units.
    pub refunded_minor: i64,
}

impl TryFrom<SandboxDocument> for SandboxIntent {
    type Error = Error;

    fn try_from(document: SandboxDocument) -> Result<Self> {
        let broken = |what: &str| unreadable("reading a sandbox intent", format!("{what} of {}", document.id));
        let currency = money::currency(&document.currency).ok_or_else(|| broken("currency"))?;
        Ok(Self {
            amount: Money { minor: document.amount_minor, currency },
            state: PaymentState::parse(&document.state).ok_or_else(|| broken("state"))?,
            refunded_minor: document.refunds.iter().map(|refund| refund.minor).sum(),
            reservation: document.reservation_id,
            id: document.id,
        })
    }
}

/// What the sandbox remembers.
#[derive(Debug)]
pub struct SandboxIntents {
    collection: Collection<Document>,
    deadline: Duration,
}

impl SandboxIntents {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("sandboxIntents"), deadline }
    }

    /// Remembers an intent, unless there is one of its id; returns what is remembered.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn create(&self, id: &str, reservation: &str, amount: Money) -> Result<SandboxIntent> {
        const DOING: &str = "creating a sandbox intent";
        let document = doc! {
            "_id": id,
            "reservationId": reservation,
            "amountMinor": amount.minor,
            "currency": amount.currency.code(),
            "state": PaymentState::Created.as_str(),
            "refunds": [],
        };
        unless_duplicate(self.deadline, DOING, self.collection.insert_one(document)).await?;
        self.by_id(id).await?.ok_or_else(|| Error::internal(DOING, "it is gone"))
    }

    /// The intent of this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: &str) -> Result<Option<SandboxIntent>> {
        let call = self.collection.find_one(doc! { "_id": id });
        decoded(within(self.deadline, "reading a sandbox intent", call).await?)
    }

    /// Pays an intent, or lets an attempt fail. What is paid stays paid. Returns what is remembered then.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn decide(&self, id: &str, state: PaymentState) -> Result<Option<SandboxIntent>> {
        let open = doc! { "_id": id, "state": { "$ne": PaymentState::Succeeded.as_str() } };
        let call = self.collection.update_one(open, doc! { "$set": { "state": state.as_str() } });
        within(self.deadline, "paying a sandbox intent", call).await?;
        self.by_id(id).await
    }

    /// Gives money back, once for each key; false if it is not there to be given back.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn refund(&self, id: &str, minor: i64, key: &str) -> Result<bool> {
        let Some(intent) = self.by_id(id).await? else { return Ok(false) };
        let left = intent.amount.minor - intent.refunded_minor;
        if intent.state == PaymentState::Succeeded && minor <= left {
            let new = doc! { "_id": id, "refunds.key": { "$ne": key } };
            let call = self.collection.update_one(new, doc! { "$push": { "refunds": { "key": key, "minor": minor } } });
            within(self.deadline, "refunding a sandbox intent", call).await?;
        }
        let made = self.collection.find_one(doc! { "_id": id, "refunds.key": key });
        Ok(within(self.deadline, "reading a sandbox refund", made).await?.is_some())
    }
}

fn decoded(document: Option<Document>) -> Result<Option<SandboxIntent>> {
    let decode = |document| {
        bson::deserialize_from_document::<SandboxDocument>(document)
            .map_err(|error| Error::internal("reading a sandbox intent", error))?
            .try_into()
    };
    document.map(decode).transpose()
}
