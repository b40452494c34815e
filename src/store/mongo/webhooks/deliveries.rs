//! Collection `webhookDeliveries`. A delivery is claimed by moving its next attempt behind the time that an attempt can
//! take: a process that dies leaves it due again, and one that was only slow finds that it has lost it.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::error::{unreadable, within};
use super::super::query::{self, Order as ListOrder};
use super::insert_missing;
use crate::domain::ids::{DeliveryId, WebhookId};
use crate::domain::message::{Message, MessageKind};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::webhook::{Attempt, Delivery, DeliveryState, LOG_ATTEMPTS_MAX};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    endpoint_id: ObjectId,
    message_id: String,
    kind: String,
    state: String,
    attempts: i64,
    next_at: DateTime,
    /// Which claim is in force, if it is being tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<String>,
    created_at: DateTime,
    expires_at: DateTime,
    #[serde(default)]
    log: Vec<AttemptDocument>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttemptDocument {
    number: i64,
    at: DateTime,
    took_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl TryFrom<DeliveryDocument> for Delivery {
    type Error = Error;

    fn try_from(document: DeliveryDocument) -> Result<Self> {
        let broken = |what: &str| unreadable("reading a delivery", format!("{what} of delivery {}", document.id));
        Ok(Self {
            id: DeliveryId::from_bytes(document.id.bytes()),
            webhook: WebhookId::from_bytes(document.endpoint_id.bytes()),
            kind: MessageKind::parse(&document.kind).ok_or_else(|| broken("kind"))?,
            state: DeliveryState::parse(&document.state).ok_or_else(|| broken("state"))?,
            attempts: u32::try_from(document.attempts).map_err(|_| broken("attempts"))?,
            message: document.message_id,
            next_at: document.next_at.to_chrono(),
            created_at: document.created_at.to_chrono(),
            log: document.log.into_iter().map(Attempt::from).collect(),
        })
    }
}

impl From<AttemptDocument> for Attempt {
    fn from(document: AttemptDocument) -> Self {
        Self {
            number: u32::try_from(document.number).unwrap_or(0),
            at: document.at.to_chrono(),
            took_ms: u64::try_from(document.took_ms).unwrap_or(0),
            status: document.status.and_then(|status| u16::try_from(status).ok()),
            error: document.error,
        }
    }
}

/// A delivery that this process has in hand.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The delivery.
    pub delivery: Delivery,
    /// Names the claim.
    pub claim: String,
}

/// What becomes of a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has arrived.
    Delivered,
    /// It is tried again at this time.
    Again(chrono::DateTime<chrono::Utc>),
    /// Nothing more is tried.
    Failed,
}

/// Messages on their way.
#[derive(Debug)]
pub struct Deliveries {
    collection: Collection<DeliveryDocument>,
    deadline: Duration,
    kept: Duration,
}

/// Follows from the message and the endpoint: making a delivery twice leaves one, and two endpoints have two.
fn delivery_id(message: &str, webhook: WebhookId) -> ObjectId {
    let digest = Sha256::digest(format!("{message} {webhook}").as_bytes());
    let mut id = [0; 12];
    id.copy_from_slice(&digest[..12]);
    ObjectId::from_bytes(id)
}

fn due(now: DateTime) -> Document {
    doc! { "state": DeliveryState::Pending.as_str(), "nextAt": { "$lte": now } }
}

impl Deliveries {
    /// `kept` is how long a delivery stays.
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration, kept: Duration) -> Self {
        Self { collection: database.collection("webhookDeliveries"), deadline, kept }
    }

    /// Makes deliveries, due at once. Those that are there already stay as they are.
    ///
    /// # Errors
    /// When the database does not answer: making them again is safe.
    pub async fn insert(&self, deliveries: &[(&Message, WebhookId)], now: chrono::DateTime<chrono::Utc>) -> Result<()> {
        if deliveries.is_empty() {
            return Ok(());
        }
        let now = DateTime::from_chrono(now);
        let document = |(message, webhook): &(&Message, WebhookId)| DeliveryDocument {
            id: delivery_id(&message.id, *webhook),
            endpoint_id: ObjectId::from_bytes(webhook.bytes()),
            message_id: message.id.clone(),
            kind: message.kind.as_str().to_owned(),
            state: DeliveryState::Pending.as_str().to_owned(),
            attempts: 0,
            next_at: now,
            claim: None,
            created_at: now,
            // With its message, which it cannot do without.
            expires_at: DateTime::from_chrono(message.at).saturating_add_duration(self.kept),
            log: Vec::new(),
        };
        let call = self.collection.insert_many(deliveries.iter().map(document)).ordered(false);
        insert_missing(self.deadline, "making deliveries", call).await
    }

    /// Takes the delivery that has been due for longest, but for those to endpoints that are `busy`. For `ttl` nobody
    /// else gets it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn claim(
        &self,
        busy: &[WebhookId],
        now: chrono::DateTime<chrono::Utc>,
        ttl: Duration,
    ) -> Result<Option<Claimed>> {
        let now = DateTime::from_chrono(now);
        let mut which = due(now);
        if !busy.is_empty() {
            let busy: Vec<_> = busy.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect();
            which.insert("endpointId", doc! { "$nin": busy });
        }
        let claim = uuid::Uuid::new_v4().simple().to_string();
        let change = doc! { "$set": { "claim": &claim, "nextAt": now.saturating_add_duration(ttl) } };
        let call = self
            .collection
            .find_one_and_update(which, change)
            .sort(doc! { "nextAt": 1 })
            .return_document(ReturnDocument::After);
        let found = within(self.deadline, "claiming a delivery", call).await?;
        found.map(|document| Ok(Claimed { delivery: document.try_into()?, claim })).transpose()
    }

    /// Records an attempt and what follows from it; false if the claim is no longer in force.
    ///
    /// # Errors
    /// When the database does not answer: the delivery is due again when its claim runs out.
    pub async fn finish(&self, claimed: &Claimed, attempt: &Attempt, verdict: Verdict) -> Result<bool> {
        let row = AttemptDocument {
            number: i64::from(attempt.number),
            at: DateTime::from_chrono(attempt.at),
            took_ms: i64::try_from(attempt.took_ms).unwrap_or(i64::MAX),
            status: attempt.status.map(i64::from),
            error: attempt.error.clone(),
        };
        let row = bson::serialize_to_document(&row).map_err(|error| Error::internal("recording an attempt", error))?;
        let mut set = doc! { "attempts": i64::from(attempt.number) };
        match verdict {
            Verdict::Delivered => drop(set.insert("state", DeliveryState::Delivered.as_str())),
            Verdict::Failed => drop(set.insert("state", DeliveryState::Failed.as_str())),
            Verdict::Again(at) => drop(set.insert("nextAt", DateTime::from_chrono(at))),
        }
        let change = doc! {
            "$set": set,
            "$unset": { "claim": "" },
            "$push": { "log": { "$each": [row], "$slice": -i64::from(LOG_ATTEMPTS_MAX) } },
        };
        let which = doc! { "_id": ObjectId::from_bytes(claimed.delivery.id.bytes()), "claim": &claimed.claim };
        let call = self.collection.update_one(which, change);
        Ok(within(self.deadline, "recording an attempt", call).await?.matched_count == 1)
    }

    /// Forgets a delivery in hand: its endpoint or its message is gone.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn forget(&self, id: DeliveryId) -> Result<()> {
        let call = self.collection.delete_one(doc! { "_id": ObjectId::from_bytes(id.bytes()) });
        within(self.deadline, "forgetting a delivery", call).await.map(|_| ())
    }

    /// Forgets every delivery to an endpoint.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn forget_all(&self, webhook: WebhookId) -> Result<()> {
        let call = self.collection.delete_many(doc! { "endpointId": ObjectId::from_bytes(webhook.bytes()) });
        within(self.deadline, "forgetting deliveries", call).await.map(|_| ())
    }

    /// Gives up what was still to be sent to an endpoint.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn give_up(&self, webhook: WebhookId) -> Result<()> {
        let pending = doc! {
            "endpointId": ObjectId::from_bytes(webhook.bytes()),
            "state": DeliveryState::Pending.as_str(),
        };
        let failed = doc! { "$set": { "state": DeliveryState::Failed.as_str() }, "$unset": { "claim": "" } };
        let call = self.collection.update_many(pending, failed);
        within(self.deadline, "giving up deliveries", call).await.map(|_| ())
    }

    /// An endpoint's deliveries, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_webhook(&self, webhook: WebhookId, page: Page) -> Result<Listed<Delivery>> {
        let filter = doc! { "endpointId": ObjectId::from_bytes(webhook.bytes()) };
        let (collection, deadline) = (&self.collection, self.deadline);
        let rows =
            query::page(collection, deadline, "listing deliveries", filter, ListOrder::NewestFirst, page).await?;
        let rows = rows.into_iter().map(Delivery::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// Has a delivery of an endpoint made again from its first attempt, now, unless it is being tried this moment; returns
    /// it as it is then, `None` if the endpoint has none of this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn replay(
        &self,
        webhook: WebhookId,
        id: DeliveryId,
        now: chrono::DateTime<chrono::Utc>,
    ) -> Result<Option<Delivery>> {
        let mut which = doc! {
            "_id": ObjectId::from_bytes(id.bytes()),
            "endpointId": ObjectId::from_bytes(webhook.bytes()),
        };
        let now = DateTime::from_chrono(now);
        let mut idle = which.clone();
        idle.insert("$or", vec![doc! { "claim": null }, due(now)]);
        let again = doc! { "$set": { "state": DeliveryState::Pending.as_str(), "attempts": 0_i64, "nextAt": now } };
        let call = self.collection.find_one_and_update(idle, again).return_document(ReturnDocument::After);
        let mut found = within(self.deadline, "replaying a delivery", call).await?;
        if found.is_none() {
            let call = self.collection.find_one(std::mem::take(&mut which));
            found = within(self.deadline, "reading a delivery", call).await?;
        }
        found.map(Delivery::try_from).transpose()
    }
}
