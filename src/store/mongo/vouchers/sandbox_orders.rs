//! Collection `sandboxVendorOrders`: what the voucher vendor of trials has sold. Codes are not in it; they follow from the
//! order.

use std::time::Duration;

use bson::DateTime;
use bson::doc;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::super::error::{unless_duplicate, unreadable, within};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderDocument {
    #[serde(rename = "_id")]
    external_id: String,
    count: i64,
    sold_at: DateTime,
}

/// Something that the sandbox has sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxVendorOrder {
    /// The buyer's name for it.
    pub external_id: String,
    /// Units.
    pub count: u32,
    /// When.
    pub sold_at: chrono::DateTime<chrono::Utc>,
}

impl TryFrom<OrderDocument> for SandboxVendorOrder {
    type Error = Error;

    fn try_from(document: OrderDocument) -> Result<Self> {
        let broken = |_| unreadable("reading a sandbox order", format!("count of {}", document.external_id));
        Ok(Self {
            count: u32::try_from(document.count).map_err(broken)?,
            sold_at: document.sold_at.to_chrono(),
            external_id: document.external_id,
        })
    }
}

/// What the sandbox has sold.
#[derive(Debug)]
pub struct SandboxVendorOrders {
    collection: Collection<OrderDocument>,
    deadline: Duration,
}

impl SandboxVendorOrders {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("sandboxVendorOrders"), deadline }
    }

    /// Sells, unless something was sold under this id; returns what was.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn sell(&self, order: &SandboxVendorOrder) -> Result<SandboxVendorOrder> {
        const DOING: &str = "recording a sandbox order";
        let document = OrderDocument {
            external_id: order.external_id.clone(),
            count: order.count.into(),
            sold_at: DateTime::from_chrono(order.sold_at),
        };
        unless_duplicate(self.deadline, DOING, self.collection.insert_one(document)).await?;
        self.by_id(&order.external_id).await?.ok_or_else(|| Error::internal(DOING, "it is gone"))
    }

    /// What was sold under this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, external_id: &str) -> Result<Option<SandboxVendorOrder>> {
        let call = self.collection.find_one(doc! { "_id": external_id });
        within(self.deadline, "reading a sandbox order", call).await?.map(SandboxVendorOrder::try_from).transpose()
    }
}
