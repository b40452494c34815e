//! Payments by the page, beside the orders that they are for.

use std::collections::HashMap;

use bson::{Document, doc};
use futures::TryStreamExt;

use super::error::within;
use super::orders::of_event;
use super::payments::Payments;
use crate::domain::ids::EventId;
use crate::domain::payment::{Payment, PaymentState};
use crate::error::Result;

impl Payments {
    /// An event's payments whose money is there, by the names of their reservations, after this one or from the start.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn succeeded_of(&self, event: EventId, after: Option<&str>, limit: u32) -> Result<Vec<Payment>> {
        let mut filter = of_event(event);
        filter.insert("state", PaymentState::Succeeded.as_str());
        if let Some(after) = after {
            filter.insert("_id", doc! { "$gt": after });
        }
        self.read(filter, i64::from(limit)).await
    }

    /// The payments for these reservations.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_reservations(&self, reservations: &[String]) -> Result<HashMap<String, Payment>> {
        if reservations.is_empty() {
            return Ok(HashMap::new());
        }
        let found = self.read(doc! { "_id": { "$in": reservations } }, 0).await?;
        Ok(found.into_iter().map(|payment| (payment.reservation.clone(), payment)).collect())
    }

    /// A limit of 0 is none.
    async fn read(&self, filter: Document, limit: i64) -> Result<Vec<Payment>> {
        let find = self.collection.find(filter).sort(doc! { "_id": 1 }).limit(limit);
        let call = async { find.await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "listing payments", call).await?.into_iter().map(Payment::try_from).collect()
    }
}
