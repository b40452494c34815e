//! Collection `restocks`: units added to running sales, or withdrawn. Recorded before the live store decides, so that no
//! unit is on sale that a rebuilt sale would not have.

use std::collections::HashMap;
use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unless_duplicate, unreadable, within};
use crate::domain::ids::{EventId, ProductId};
use crate::domain::restock::{Restock, RestockState};
use crate::error::{Dependency, Error, Result};

/// How often an operation is written that others discard at the same time.
const RECORD_ATTEMPTS: usize = 5;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RestockDocument {
    /// The event and the operation: `event operation`.
    #[serde(rename = "_id")]
    id: String,
    operation: String,
    event_id: ObjectId,
    product_id: ObjectId,
    units: i64,
    state: String,
    at: DateTime,
}

impl TryFrom<RestockDocument> for Restock {
    type Error = Error;

    fn try_from(document: RestockDocument) -> Result<Self> {
        Ok(Self {
            event: EventId::from_bytes(document.event_id.bytes()),
            product: ProductId::from_bytes(document.product_id.bytes()),
            units: document.units,
            state: RestockState::parse(&document.state)
                .ok_or_else(|| unreadable("reading a restocking", document.state))?,
            at: document.at.to_chrono(),
            operation: document.operation,
        })
    }
}

/// Restockings.
#[derive(Debug)]
pub struct Restocks {
    collection: Collection<RestockDocument>,
    deadline: Duration,
}

fn name(event: EventId, operation: &str) -> String {
    format!("{event} {operation}")
}

fn in_state(event: EventId, state: RestockState) -> Document {
    doc! { "eventId": ObjectId::from_bytes(event.bytes()), "state": state.as_str() }
}

impl Restocks {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("restocks"), deadline }
    }

    /// Records a restocking, unless its operation is recorded; returns what is recorded.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record(&self, restock: &Restock) -> Result<Restock> {
        const DOING: &str = "recording a restocking";
        let document = RestockDocument {
            id: name(restock.event, &restock.operation),
            operation: restock.operation.clone(),
            event_id: ObjectId::from_bytes(restock.event.bytes()),
            product_id: ObjectId::from_bytes(restock.product.bytes()),
            units: restock.units,
            state: restock.state.as_str().into(),
            at: DateTime::from_chrono(restock.at),
        };
        // What is recorded can be discarded before it is read: then there is room for this one.
        for _ in 0..RECORD_ATTEMPTS {
            let insert = self.collection.insert_one(&document);
            if unless_duplicate(self.deadline, DOING, insert).await?.is_some() {
                return document.try_into();
            }
            let find = self.collection.find_one(doc! { "_id": &document.id });
            if let Some(recorded) = within(self.deadline, DOING, find).await? {
                return recorded.try_into();
            }
        }
        Err(Error::unavailable(Dependency::Database, DOING, "the same operation is refused again and again"))
    }

    /// The live store has it: from now on it counts.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn applied(&self, restock: &Restock) -> Result<()> {
        let set = doc! {
            "operation": &restock.operation,
            "eventId": ObjectId::from_bytes(restock.event.bytes()),
            "productId": ObjectId::from_bytes(restock.product.bytes()),
            "units": restock.units,
            "state": RestockState::Applied.as_str(),
            "at": DateTime::from_chrono(restock.at),
        };
        // Made again if another process, refused a moment before, has discarded it.
        let which = doc! { "_id": name(restock.event, &restock.operation) };
        let call = self.collection.update_one(which, doc! { "$set": set }).upsert(true);
        within(self.deadline, "finishing a restocking", call).await.map(|_| ())
    }

    /// The live store refused it: as if it had never been asked for.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn discard(&self, restock: &Restock) -> Result<()> {
        let open = doc! { "_id": name(restock.event, &restock.operation), "state": RestockState::Pending.as_str() };
        within(self.deadline, "discarding a restocking", self.collection.delete_one(open)).await.map(|_| ())
    }

    /// An event's restockings in a state.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn in_state(&self, event: EventId, state: RestockState) -> Result<Vec<Restock>> {
        let call = async { self.collection.find(in_state(event, state)).await?.try_collect::<Vec<_>>().await };
        let rows = within(self.deadline, "listing restockings", call).await?;
        rows.into_iter().map(Restock::try_from).collect()
    }

    /// Units added to a product since the sale was opened, less those withdrawn, with those that are about to be.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn recorded(&self, event: EventId, product: ProductId) -> Result<i64> {
        let mut units = 0;
        for state in [RestockState::Pending, RestockState::Applied] {
            let rows = self.in_state(event, state).await?;
            units += rows.iter().filter(|restock| restock.product == product).map(|restock| restock.units).sum::<i64>();
        }
        Ok(units)
    }

    /// Units added to each product since the sale was opened, less those withdrawn.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn sums(&self, event: EventId) -> Result<HashMap<ProductId, i64>> {
        let mut sums = HashMap::new();
        for restock in self.in_state(event, RestockState::Applied).await? {
            *sums.entry(restock.product).or_default() += restock.units;
        }
        Ok(sums)
    }
}
