//! Paging, the same for every list.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::Collection;
use mongodb::action::Find;
use serde::de::DeserializeOwned;

use super::error::within;
use crate::domain::page::Page;
use crate::error::Result;

/// Which way a list runs.
#[derive(Clone, Copy)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

/// The rows of a page and one more, which says that there are more.
pub(super) async fn page<T: DeserializeOwned + Send + Sync + Unpin>(
    collection: &Collection<T>,
    deadline: Duration,
    doing: &'static str,
    filter: Document,
    order: Order,
    wanted: Page,
) -> Result<Vec<T>> {
    let find = find_page(collection, filter, order, wanted);
    within(deadline, doing, async { find.await?.try_collect().await }).await
}

/// As [`page`], before it is run: for a list that leaves fields out.
pub(super) fn find_page<T: DeserializeOwned + Send + Sync>(
    collection: &Collection<T>,
    mut filter: Document,
    order: Order,
    page: Page,
) -> Find<'_, T> {
    let (direction, beyond) = match order {
        Order::OldestFirst => (1, "$gt"),
        Order::NewestFirst => (-1, "$lt"),
    };
    if let Some(cursor) = page.after {
        let at = DateTime::from_millis(cursor.created_at_ms);
        let id = ObjectId::from_bytes(cursor.id);
        // The bound on createdAt alone lets the index seek; the rest breaks ties.
        let bound = if direction == 1 { "$gte" } else { "$lte" };
        filter.insert("createdAt", doc! { bound: at });
        filter.insert("$or", vec![doc! { "createdAt": { beyond: at } }, doc! { "_id": { beyond: id } }]);
    }
    collection.find(filter).sort(doc! { "createdAt": direction, "_id": direction }).limit(i64::from(page.limit) + 1)
}
