//! Collection `deadLetters`: bookings that settlement could not read or write, whole, until somebody looks.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bson::{DateTime, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::within;
use crate::domain::ids::EventId;
use crate::error::Result;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLetterDocument {
    event_id: ObjectId,
    /// The Redis key, which is kept.
    key: String,
    reason: String,
    /// Every field as it was read.
    raw: HashMap<String, String>,
    at: DateTime,
}

/// What settlement could not write.
#[derive(Debug)]
pub struct DeadLetters {
    collection: Collection<DeadLetterDocument>,
    deadline: Duration,
}

impl DeadLetters {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("deadLetters"), deadline }
    }

    /// Records one, or the newest state of one that is recorded already.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record(
        &self,
        event: EventId,
        key: &str,
        reason: &str,
        raw: &HashMap<String, String>,
        now: chrono::DateTime<chrono::Utc>,
    ) -> Result<()> {
        let raw: bson::Document = raw.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let which = doc! { "eventId": ObjectId::from_bytes(event.bytes()), "key": key };
        let change = doc! { "$set": { "reason": reason, "raw": raw, "at": DateTime::from_chrono(now) } };
        let call = self.collection.update_one(which, change).upsert(true);
        within(self.deadline, "recording a dead letter", call).await.map(|_| ())
    }

    /// Forgets one that has been settled after all.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn resolve(&self, event: EventId, keys: &HashSet<String>) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let which = doc! {
            "eventId": ObjectId::from_bytes(event.bytes()),
            "key": { "$in": keys.iter().collect::<Vec<_>>() },
        };
        within(self.deadline, "resolving dead letters", self.collection.delete_many(which)).await.map(|_| ())
    }

    /// Forgets every one of an event that has no booking left.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn resolve_all(&self, event: EventId) -> Result<()> {
        let which = doc! { "eventId": ObjectId::from_bytes(event.bytes()) };
        within(self.deadline, "resolving dead letters", self.collection.delete_many(which)).await.map(|_| ())
    }

    /// The keys recorded for an event.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn keys_of_event(&self, event: EventId) -> Result<HashSet<String>> {
        let call = async {
            let which = doc! { "eventId": ObjectId::from_bytes(event.bytes()) };
            self.collection.find(which).await?.map_ok(|letter| letter.key).try_collect().await
        };
        within(self.deadline, "reading dead letters", call).await
    }
}
