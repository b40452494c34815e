//! Collection `revocations`: what has changed since session tokens were made. Read by every process several times a
//! second; a TTL index removes entries that no living token can need.

use std::time::Duration;

use bson::{DateTime, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::within;

use crate::domain::account::{Revocation, Standing};
use crate::domain::ids::UserId;
use crate::error::Result;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RevocationDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<ObjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
    at: DateTime,
    expires_at: DateTime,
}

/// A change as it was stored.
#[derive(Debug, Clone)]
pub struct StoredRevocation {
    /// When it was made, in milliseconds since 1970.
    pub at_ms: i64,
    /// Until when it is needed, in seconds since 1970.
    pub until_s: i64,
    /// The change.
    pub revocation: Revocation,
}

/// Changes of accounts and sessions.
#[derive(Debug)]
pub struct Revocations {
    collection: Collection<RevocationDocument>,
    deadline: Duration,
}

impl Revocations {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("revocations"), deadline }
    }

    /// Stores a change made at `now`, needed for `ttl_s`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(&self, revocation: &Revocation, now: chrono::DateTime<chrono::Utc>, ttl_s: i64) -> Result<()> {
        let (session, account, standing) = match revocation {
            Revocation::Session { jti } => (Some(jti.clone()), None, None),
            Revocation::Account { user, standing } => (None, Some(ObjectId::from_bytes(user.bytes())), Some(*standing)),
        };
        let document = RevocationDocument {
            id: ObjectId::new(),
            session,
            account,
            standing,
            at: DateTime::from_chrono(now),
            expires_at: DateTime::from_chrono(now + chrono::Duration::seconds(ttl_s)),
        };
        within(self.deadline, "storing a revocation", self.collection.insert_one(document)).await.map(|_| ())
    }

    /// Changes made at or after a moment (milliseconds since 1970), oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn since(&self, at_ms: i64) -> Result<Vec<StoredRevocation>> {
        let call = async {
            let filter = doc! { "at": { "$gte": DateTime::from_millis(at_ms) } };
            self.collection.find(filter).sort(doc! { "at": 1, "_id": 1 }).await?.try_collect::<Vec<_>>().await
        };
        let rows = within(self.deadline, "reading revocations", call).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let revocation = match (row.session, row.account, row.standing) {
                    (Some(jti), _, _) => Revocation::Session { jti },
                    (None, Some(user), Some(standing)) => {
                        Revocation::Account { user: UserId::from_bytes(user.bytes()), standing }
                    }
                    _ => return None,
                };
                let until_s = row.expires_at.timestamp_millis() / 1000;
                Some(StoredRevocation { at_ms: row.at.timestamp_millis(), until_s, revocation })
            })
            .collect())
    }
}
