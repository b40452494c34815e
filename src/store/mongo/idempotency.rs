//! Collection `idempotency`: requests that are answered once. A request that runs is held by a process under a lease; an
//! answer stays for a day.

use std::time::Duration;

use bson::{DateTime, doc};
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unless_duplicate, within};
use crate::error::Result;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestDocument {
    #[serde(rename = "_id")]
    id: String,
    fingerprint: String,
    holder: String,
    lease_until: DateTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerDocument>,
    expires_at: DateTime,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerDocument {
    status: i64,
    content_type: String,
    sealed: String,
}

/// A request that is to run, by everything that tells it from others.
#[derive(Debug, Clone)]
pub struct KeyedRequest {
    /// Whose key on which route.
    pub id: String,
    /// What is asked for: the same for the same request only.
    pub fingerprint: String,
    /// Who runs it.
    pub holder: String,
}

/// An answer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The type of its body.
    pub content_type: String,
    /// Its body, sealed.
    pub sealed: String,
}

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Nothing: it is the asker's to run.
    Now,
    /// It runs.
    Running,
    /// It was answered.
    Answered(SealedAnswer),
    /// Its key belongs to another request.
    Another,
    /// It changed while it was looked at: ask again.
    Changed,
}

/// Requests that are answered once.
#[derive(Debug)]
pub struct Requests {
    collection: Collection<RequestDocument>,
    deadline: Duration,
    kept: Duration,
}

impl Requests {
    /// `kept` is how long a request stays.
    pub(super) fn new(database: &Database, deadline: Duration, kept: Duration) -> Self {
        Self { collection: database.collection("idempotency"), deadline, kept }
    }

    /// Takes a request to run it, or says what is known of it. One whose process died can be taken when its lease is over.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn begin(
        &self,
        request: &KeyedRequest,
        now: chrono::DateTime<chrono::Utc>,
        lease: Duration,
    ) -> Result<Begun> {
        const DOING: &str = "beginning a request";
        let now = DateTime::from_chrono(now);
        let document = RequestDocument {
            id: request.id.clone(),
            fingerprint: request.fingerprint.clone(),
            holder: request.holder.clone(),
            lease_until: now.saturating_add_duration(lease),
            answer: None,
            expires_at: now.saturating_add_duration(self.kept),
        };
        if unless_duplicate(self.deadline, DOING, self.collection.insert_one(document)).await?.is_some() {
            return Ok(Begun::Now);
        }
        let found = within(self.deadline, DOING, self.collection.find_one(doc! { "_id": &request.id })).await?;
        let Some(found) = found else { return Ok(Begun::Changed) };
        // The server removes what has expired about once a minute.
        if found.expires_at <= now {
            let expired = doc! { "_id": &request.id, "expiresAt": found.expires_at };
            within(self.deadline, DOING, self.collection.delete_one(expired)).await?;
            return Ok(Begun::Changed);
        }
        if found.fingerprint != request.fingerprint {
            return Ok(Begun::Another);
        }
        if let Some(answer) = found.answer {
            let status = u16::try_from(answer.status).unwrap_or(500);
            let answer = SealedAnswer { status, content_type: answer.content_type, sealed: answer.sealed };
            return Ok(Begun::Answered(answer));
        }
        if found.lease_until > now {
            return Ok(Begun::Running);
        }
        let left = doc! { "_id": &request.id, "holder": found.holder, "answer": null };
        let take = doc! { "holder": &request.holder, "leaseUntil": now.saturating_add_duration(lease) };
        let call = self.collection.update_one(left, doc! { "$set": take });
        let taken = within(self.deadline, DOING, call).await?.matched_count == 1;
        Ok(if taken { Begun::Now } else { Begun::Changed })
    }

    /// Goes on holding a request that runs.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn renew(
        &self,
        request: &KeyedRequest,
        now: chrono::DateTime<chrono::Utc>,
        lease: Duration,
    ) -> Result<()> {
        let until = DateTime::from_chrono(now).saturating_add_duration(lease);
        let held = doc! { "_id": &request.id, "holder": &request.holder };
        let call = self.collection.update_one(held, doc! { "$set": { "leaseUntil": until } });
        within(self.deadline, "holding a request", call).await.map(|_| ())
    }

    /// Keeps an answer, if the request is still the asker's.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn answer(&self, request: &KeyedRequest, answer: &SealedAnswer) -> Result<()> {
        let held = doc! { "_id": &request.id, "holder": &request.holder };
        let answer = doc! {
            "status": i64::from(answer.status),
            "contentType": &answer.content_type,
            "sealed": &answer.sealed,
        };
        let call = self.collection.update_one(held, doc! { "$set": { "answer": answer } });
        within(self.deadline, "keeping an answer", call).await.map(|_| ())
    }

    /// Forgets a request, if it is still the asker's: the next one with its key runs.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn free(&self, request: &KeyedRequest) -> Result<()> {
        let held = doc! { "_id": &request.id, "holder": &request.holder };
        within(self.deadline, "freeing a key", self.collection.delete_one(held)).await.map(|_| ())
    }
}
