//! All of an event's orders, page by page: a million of them take no more memory than a page.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{self, Stream};

use super::Reports;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::order::Order;
use crate::domain::page::{Cursor, Page};
use crate::error::Result;

/// Orders that are read at once. Each page has a deadline of its own; a caller who reads slowly holds nothing open.
const ORDERS_PER_PAGE: u32 = 1_000;

/// A page of orders.
#[derive(Debug, Clone)]
pub struct ExportedPage {
    /// Newest first.
    pub orders: Vec<Order>,
    /// The titles of their products, those that were deleted as well.
    pub titles: HashMap<ProductId, String>,
}

/// Where the next page begins.
enum At {
    Start,
    After(Cursor),
    End,
}

impl Reports {
    /// Every order of an event, newest first. What is ordered meanwhile is newer than what was read, and is left out. The
    /// stream ends with its first error.
    pub fn export(&self, event: EventId) -> impl Stream<Item = Result<ExportedPage>> + Send + 'static {
        let mongo = Arc::clone(&self.mongo);
        stream::try_unfold(At::Start, move |at| {
            let mongo = Arc::clone(&mongo);
            async move {
                let after = match at {
                    At::Start => None,
                    At::After(cursor) => Some(cursor),
                    At::End => return Ok(None),
                };
                let listed = mongo.orders.of_event(event, Page { limit: ORDERS_PER_PAGE, after }).await?;
                let mut products: Vec<ProductId> = listed.items.iter().map(|order| order.product).collect();
                products.sort_unstable();
                products.dedup();
                let titles = mongo.products.titles(&products).await?;
                let next = listed.next.map_or(At::End, At::After);
                Ok(Some((ExportedPage { orders: listed.items, titles }, next)))
            }
        })
    }
}
