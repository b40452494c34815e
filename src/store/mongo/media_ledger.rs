//! Collection `mediaDeletions`: images that are to be deleted from the media store.
//!
//! An image is entered before it is uploaded, due later, and struck off once a record shows it; a replaced one is
//! entered due at once. So whatever stops half-way, no image stays that nothing shows.

use std::time::Duration;

use bson::{DateTime, doc};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::within;
use crate::error::Result;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryDocument {
    #[serde(rename = "_id")]
    key: String,
    due_at: DateTime,
}

/// Images to delete.
#[derive(Debug)]
pub struct MediaLedger {
    collection: Collection<EntryDocument>,
    deadline: Duration,
}

impl MediaLedger {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("mediaDeletions"), deadline }
    }

    /// Enters an image, due at a moment.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn enter(&self, key: &str, due_at: chrono::DateTime<chrono::Utc>) -> Result<()> {
        let change = doc! { "$set": { "dueAt": DateTime::from_chrono(due_at) } };
        let call = self.collection.update_one(doc! { "_id": key }, change).upsert(true);
        within(self.deadline, "entering an image", call).await.map(|_| ())
    }

    /// Strikes an image off: a record shows it, or it is gone.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn strike(&self, key: &str) -> Result<()> {
        within(self.deadline, "striking an image", self.collection.delete_one(doc! { "_id": key })).await.map(|_| ())
    }

    /// Images that are due, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn due(&self, now: chrono::DateTime<chrono::Utc>, limit: i64) -> Result<Vec<String>> {
        let call = async {
            let due = doc! { "dueAt": { "$lte": DateTime::from_chrono(now) } };
            let cursor = self.collection.find(due).sort(doc! { "dueAt": 1 }).limit(limit).await?;
            cursor.map_ok(|entry| entry.key).try_collect().await
        };
        within(self.deadline, "reading due images", call).await
    }
}
