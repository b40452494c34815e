//! Changes of settled orders that sellers have not been told of. A change carries its mark in the same write
//! ([`super::super::orders::Orders::change`]), so that a process that dies after it leaves something to be told.

use std::time::Duration;

use bson::{Document, doc};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::Deserialize;

use super::super::error::within;
use super::super::orders::OrderDocument;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};

/// A mark: what of an order's state changes, as it was then.
#[derive(Debug, Deserialize)]
struct Mark {
    revision: i64,
    status: String,
    returned: i64,
    operation: String,
}

/// An order's changes.
#[derive(Debug, Clone)]
pub struct Untold {
    /// Each state that it has been in since, oldest first; at least one.
    pub states: Vec<Reservation>,
}

/// Orders with marks.
#[derive(Debug)]
pub struct UntoldOrders {
    collection: Collection<Document>,
    deadline: Duration,
}

/// The mark of a change, for the write that makes it.
pub(in crate::store::mongo) fn mark(after: &Reservation) -> Document {
    doc! {
        "revision": i64::from(after.revision),
        "status": after.status.as_str(),
        "returned": i64::from(after.returned),
        "operation": &after.operation,
    }
}

impl UntoldOrders {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("orders"), deadline }
    }

    /// Orders with marks, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn some(&self, limit: u32) -> Result<Vec<Untold>> {
        let call = async {
            let marked = doc! { "untold.revision": { "$gt": 0_i64 } };
            self.collection.find(marked).limit(i64::from(limit)).await?.try_collect::<Vec<_>>().await
        };
        within(self.deadline, "listing changes of orders", call).await?.into_iter().map(read).collect()
    }

    /// Takes the marks of these states away.
    ///
    /// # Errors
    /// When the database does not answer: telling them again is safe.
    pub async fn told(&self, order: &Untold) -> Result<()> {
        let Some(first) = order.states.first() else { return Ok(()) };
        let revisions: Vec<_> = order.states.iter().map(|state| i64::from(state.revision)).collect();
        let change = doc! { "$pull": { "untold": { "revision": { "$in": revisions } } } };
        let call = self.collection.update_one(doc! { "reservationId": &first.id }, change);
        within(self.deadline, "marking a change of an order", call).await.map(|_| ())
    }
}

fn read(document: Document) -> Result<Untold> {
    #[derive(Deserialize)]
    struct Marks {
        untold: Vec<Mark>,
    }
    let broken = |error: bson::error::Error| Error::internal("reading changes of an order", error);
    let marks: Marks = bson::deserialize_from_document(document.clone()).map_err(broken)?;
    let order: OrderDocument = bson::deserialize_from_document(document).map_err(broken)?;
    let order = Order::try_from(order)?;
    let state = |mark: Mark| {
        let mut state = order.reservation();
        state.revision = u32::try_from(mark.revision).unwrap_or(0);
        state.status = OrderStatus::parse(&mark.status).unwrap_or(order.status);
        state.returned = u32::try_from(mark.returned).unwrap_or(0);
        state.operation = mark.operation;
        state
    };
    Ok(Untold { states: marks.untold.into_iter().map(state).collect() })
}
