//! Collection `paymentEvents`: callbacks that were dealt with, for as long as a gateway repeats one (an index with an end).

use std::time::Duration;

use bson::{DateTime, Document, doc};
use mongodb::{Collection, Database};

use super::error::{unless_duplicate, within};
use crate::error::Result;

/// Callbacks that were dealt with.
#[derive(Debug)]
pub struct PaymentEvents {
    collection: Collection<Document>,
    deadline: Duration,
}

impl PaymentEvents {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("paymentEvents"), deadline }
    }

    /// Whether the event of this id was dealt with.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn seen(&self, id: &str) -> Result<bool> {
        let call = self.collection.find_one(doc! { "_id": id });
        Ok(within(self.deadline, "looking for a payment event", call).await?.is_some())
    }

    /// The event of this id is dealt with. Doing it again does nothing.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record(&self, id: &str, now: chrono::DateTime<chrono::Utc>) -> Result<()> {
        let call = self.collection.insert_one(doc! { "_id": id, "at": DateTime::from_chrono(now) });
        unless_duplicate(self.deadline, "recording a payment event", call).await.map(|_| ())
    }
}
