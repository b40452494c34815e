//! Collection `leases`: work that one process at a time should do. A lease expires, so a process that died gives it up;
//! whatever is done under one is idempotent, since a process that stalls may find that it has lost it.

use std::time::Duration;

use bson::{DateTime, doc};
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unless_duplicate, within};
use crate::error::Result;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseDocument {
    #[serde(rename = "_id")]
    name: String,
    holder: String,
    expires_at: DateTime,
}

/// Who does what.
#[derive(Debug)]
pub struct Leases {
    collection: Collection<LeaseDocument>,
    deadline: Duration,
}

impl Leases {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("leases"), deadline }
    }

    /// Takes a lease, or renews it; false if another holder has it. `now` is the caller's clock: clocks that disagree by
    /// more than the time to live let two processes do the work, which is slower and still right.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn take(
        &self,
        name: &str,
        holder: &str,
        now: chrono::DateTime<chrono::Utc>,
        ttl: Duration,
    ) -> Result<bool> {
        let now = DateTime::from_chrono(now);
        let expires_at = now.saturating_add_duration(ttl);
        let free = doc! { "_id": name, "$or": [ { "holder": holder }, { "expiresAt": { "$lt": now } } ] };
        let change = doc! { "$set": { "holder": holder, "expiresAt": expires_at } };
        // Somebody else's lease does not match, and then the insert meets its name.
        let call = self.collection.update_one(free, change).upsert(true);
        Ok(unless_duplicate(self.deadline, "taking a lease", call).await?.is_some())
    }

    /// Gives a lease up before its time.
    ///
    /// # Errors
    /// When the database does not answer; then the lease expires.
    pub async fn give_up(&self, name: &str, holder: &str) -> Result<()> {
        let call = self.collection.delete_one(doc! { "_id": name, "holder": holder });
        within(self.deadline, "giving up a lease", call).await.map(|_| ())
    }
}
