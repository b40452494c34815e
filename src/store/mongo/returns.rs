//! Orders that gave units back, until somebody has looked at their money.
//!
//! The mark is a field of the order, written in the same update as the units, so that no return can be missed whoever dies.
//! It is taken off only in the revision that it was seen in: units that go back meanwhile set it again.

use std::time::Duration;

use bson::{Document, doc};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::Deserialize;

use super::bulk::{self, Statements};
use super::error::within;
use crate::error::{Dependency, Error, Result};

/// The field's name.
pub(super) const OPEN: &str = "moneyOpen";

/// An order that gave units back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Return {
    /// Its reservation.
    pub reservation_id: String,
    /// The revision that it was seen in.
    pub revision: i64,
}

/// Orders that gave units back.
#[derive(Debug)]
pub struct Returns {
    database: Database,
    collection: Collection<Return>,
    deadline: Duration,
}

impl Returns {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { database: database.clone(), collection: database.collection("orders"), deadline }
    }

    /// Some of those whose money nobody has looked at, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn open(&self, limit: u32) -> Result<Vec<Return>> {
        let fields = doc! { "reservationId": 1, "revision": 1, "_id": 0 };
        let call = async {
            let found = self.collection.find(doc! { OPEN: true }).projection(fields).limit(limit.into());
            found.await?.try_collect().await
        };
        within(self.deadline, "listing returned units", call).await
    }

    /// Whether this reservation gave units back whose money nobody has looked at.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn is_open(&self, reservation: &str) -> Result<bool> {
        let call = self.collection.find_one(doc! { "reservationId": reservation, OPEN: true });
        Ok(within(self.deadline, "looking for returned units", call).await?.is_some())
    }

    /// Takes the marks of these off, where nothing has changed since.
    ///
    /// # Errors
    /// When the database does not answer; then some are looked at again.
    pub async fn close(&self, looked_at: &[Return]) -> Result<()> {
        const DOING: &str = "closing returned units";
        let close = |one: &Return| {
            doc! {
                "q": { "reservationId": &one.reservation_id, "revision": one.revision },
                "u": { "$unset": { OPEN: "" } },
            }
        };
        let updates: Vec<Document> = looked_at.iter().map(close).collect();
        let written = bulk::write(&self.database, self.deadline, DOING, "orders", Statements::Update, updates).await?;
        match written.refused.into_iter().next() {
            Some(refused) => Err(Error::unavailable(Dependency::Database, DOING, refused.reason)),
            None => Ok(()),
        }
    }
}
