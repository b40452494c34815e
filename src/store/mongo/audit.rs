//! Collection `audit`: every repair, when, by which process, and what it found.

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
pub(super) struct AuditDocument {
    at: DateTime,
    event_id: ObjectId,
    kind: String,
    detail: String,
    process: String,
}

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When.
    pub at: chrono::DateTime<chrono::Utc>,
    /// Of which sale.
    pub event: EventId,
    /// What kind of repair; the metric has the same name.
    pub kind: String,
    /// What was found and done.
    pub detail: String,
    /// Which process did it.
    pub process: String,
}

/// Repairs.
#[derive(Debug)]
pub struct Audit {
    collection: Collection<AuditDocument>,
    deadline: Duration,
}

impl Audit {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("audit"), deadline }
    }

    /// Records a repair.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record(&self, entry: &AuditEntry) -> Result<()> {
        let document = AuditDocument {
            at: DateTime::from_chrono(entry.at),
            event_id: ObjectId::from_bytes(entry.event.bytes()),
            kind: entry.kind.clone(),
            detail: entry.detail.clone(),
            process: entry.process.clone(),
        };
        within(self.deadline, "recording a repair", self.collection.insert_one(document)).await.map(|_| ())
    }

    /// The newest repairs of a sale, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_event(&self, event: EventId, limit: u32) -> Result<Vec<AuditEntry>> {
        let which = doc! { "eventId": ObjectId::from_bytes(event.bytes()) };
        let call = async {
            let cursor = self.collection.find(which).sort(doc! { "at": -1 }).limit(i64::from(limit)).await?;
            cursor.try_collect::<Vec<_>>().await
        };
        let rows = within(self.deadline, "reading repairs", call).await?;
        Ok(rows
            .into_iter()
            .map(|row| AuditEntry {
                at: row.at.to_chrono(),
                event,
                kind: row.kind,
                detail: row.detail,
                process: row.process,
            })
            .collect())
    }
}
