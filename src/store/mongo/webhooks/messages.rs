//! Collection `webhookMessages`: the outbox. A message waits until it has a delivery for each endpoint, and stays until
//! it expires, so that it can be sent again.

use std::time::Duration;

use bson::{DateTime, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::super::error::{unreadable, within};
use super::insert_missing;
use crate::domain::ids::UserId;
use crate::domain::message::{Message, MessageKind};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageDocument {
    #[serde(rename = "_id")]
    id: String,
    seller_id: ObjectId,
    kind: String,
    body: String,
    at: DateTime,
    /// Absent once it has its deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_since: Option<DateTime>,
    expires_at: DateTime,
}

impl TryFrom<MessageDocument> for Message {
    type Error = Error;

    fn try_from(document: MessageDocument) -> Result<Self> {
        let kind = MessageKind::parse(&document.kind)
            .ok_or_else(|| unreadable("reading a message", format!("kind of message {}", document.id)))?;
        let seller = UserId::from_bytes(document.seller_id.bytes());
        Ok(Self { id: document.id, seller, kind, body: document.body, at: document.at.to_chrono() })
    }
}

/// What sellers are told.
#[derive(Debug)]
pub struct Messages {
    collection: Collection<MessageDocument>,
    deadline: Duration,
    kept: Duration,
}

impl Messages {
    /// `kept` is how long a message stays.
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration, kept: Duration) -> Self {
        Self { collection: database.collection("webhookMessages"), deadline, kept }
    }

    /// Writes messages. Those that are there already stay as they are.
    ///
    /// # Errors
    /// When the database does not answer: writing them again is safe.
    pub async fn store(&self, messages: &[Message]) -> Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let documents: Vec<_> = messages.iter().map(|message| self.document(message)).collect();
        let call = self.collection.insert_many(documents).ordered(false);
        insert_missing(self.deadline, "writing messages", call).await
    }

    fn document(&self, message: &Message) -> MessageDocument {
        let at = DateTime::from_chrono(message.at);
        MessageDocument {
            id: message.id.clone(),
            seller_id: ObjectId::from_bytes(message.seller.bytes()),
            kind: message.kind.as_str().to_owned(),
            body: message.body.clone(),
            at,
            waiting_since: Some(at),
            expires_at: at.saturating_add_duration(self.kept),
        }
    }

    /// Messages that have no deliveries yet, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn waiting(&self, limit: u32) -> Result<Vec<Message>> {
        let call = async {
            let filter = doc! { "waitingSince": { "$gt": DateTime::from_millis(0) } };
            let found = self.collection.find(filter).sort(doc! { "waitingSince": 1 }).limit(i64::from(limit)).await?;
            found.try_collect::<Vec<_>>().await
        };
        within(self.deadline, "listing messages", call).await?.into_iter().map(Message::try_from).collect()
    }

    /// These messages have their deliveries.
    ///
    /// # Errors
    /// When the database does not answer: doing it all again is safe.
    pub async fn dispatched(&self, ids: &[&str]) -> Result<()> {
        let which = doc! { "_id": { "$in": ids } };
        let call = self.collection.update_many(which, doc! { "$unset": { "waitingSince": "" } });
        within(self.deadline, "marking messages", call).await.map(|_| ())
    }

    /// The message with this id, unless it has expired.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: &str) -> Result<Option<Message>> {
        let call = self.collection.find_one(doc! { "_id": id });
        within(self.deadline, "reading a message", call).await?.map(Message::try_from).transpose()
    }
}
