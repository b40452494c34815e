//! Collections `voucherOrders`; `inwardLogs`: which unit, of which vendor, really filled an item; and `voucherViews`: who has
//! seen codes, and when.
//!
//! An order that is to be looked at again has `dueAt`: while it is pending, and for a while after it was cancelled, since
//! a unit may have been given to one of its items by a write that came late.

use std::collections::HashSet;
use std::time::Duration;

use bson::{Bson, DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ClientId, EventId, ProductId, UserId, VoucherOrderId, VoucherProductId};
use crate::domain::money::{self, Money};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::voucher::{Sold, Unit, VoucherLine, VoucherOrder, VoucherOrderStatus};
use crate::error::{Error, Result};
use crate::store::mongo::error::{unless_duplicate, unreadable, within};
use crate::store::mongo::query::{self, Order};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineDocument {
    product_id: ObjectId,
    denomination_minor: i64,
    currency: String,
    quantity: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    client_id: ObjectId,
    reference: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_id: Option<ObjectId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buyer_id: Option<ObjectId>,
    items: Vec<LineDocument>,
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    round: i64,
    created_at: DateTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_at: Option<DateTime>,
}

impl TryFrom<OrderDocument> for VoucherOrder {
    type Error = Error;

    fn try_from(document: OrderDocument) -> Result<Self> {
        let broken = || unreadable("reading a voucher order", document.id.to_string());
        let line = |line: LineDocument| {
            let currency = money::currency(&line.currency)?;
            Some(VoucherLine {
                product: VoucherProductId::from_bytes(line.product_id.bytes()),
                denomination: Money { minor: line.denomination_minor, currency },
                quantity: u32::try_from(line.quantity).ok()?,
            })
        };
        Ok(Self {
            id: VoucherOrderId::from_bytes(document.id.bytes()),
            client: ClientId::from_bytes(document.client_id.bytes()),
            reference: document.reference,
            sold: document.event_id.zip(document.buyer_id).map(|(event, buyer)| Sold {
                event: EventId::from_bytes(event.bytes()),
                // They are kept for the product.
                product: ProductId::from_bytes(document.client_id.bytes()),
                buyer: UserId::from_bytes(buyer.bytes()),
            }),
            lines: document.items.into_iter().map(line).collect::<Option<_>>().ok_or_else(broken)?,
            status: VoucherOrderStatus::parse(&document.status).ok_or_else(broken)?,
            reason: document.reason,
            round: u32::try_from(document.round).map_err(|_| broken())?,
            created_at: document.created_at.to_chrono(),
        })
    }
}

/// Orders of vouchers.
#[derive(Debug)]
pub struct VoucherOrders {
    collection: Collection<OrderDocument>,
    inward: Collection<Document>,
    views: Collection<Document>,
    deadline: Duration,
}

fn by_id(id: VoucherOrderId) -> Document {
    doc! { "_id": ObjectId::from_bytes(id.bytes()) }
}

impl VoucherOrders {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        Self {
            collection: database.collection("voucherOrders"),
            inward: database.collection("inwardLogs"),
            views: database.collection("voucherViews"),
            deadline,
        }
    }

    /// Writes a new order, to be looked at again at `due_at`; false if the client has one of this reference.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn create(&self, order: &VoucherOrder, due_at: chrono::DateTime<chrono::Utc>) -> Result<bool> {
        let line = |line: &VoucherLine| LineDocument {
            product_id: ObjectId::from_bytes(line.product.bytes()),
            denomination_minor: line.denomination.minor,
            currency: line.denomination.currency.code().to_owned(),
            quantity: line.quantity.into(),
        };
        let document = OrderDocument {
            id: ObjectId::from_bytes(order.id.bytes()),
            client_id: ObjectId::from_bytes(order.client.bytes()),
            reference: order.reference.clone(),
            event_id: order.sold.map(|sold| ObjectId::from_bytes(sold.event.bytes())),
            buyer_id: order.sold.map(|sold| ObjectId::from_bytes(sold.buyer.bytes())),
            items: order.lines.iter().map(line).collect(),
            status: order.status.as_str().to_owned(),
            reason: order.reason.clone(),
            round: order.round.into(),
            created_at: DateTime::from_chrono(order.created_at),
            due_at: Some(DateTime::from_chrono(due_at)),
        };
        let call = self.collection.insert_one(document);
        unless_duplicate(self.deadline, "writing a voucher order", call).await.map(|inserted| inserted.is_some())
    }

    /// The order with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: VoucherOrderId) -> Result<Option<VoucherOrder>> {
        let call = self.collection.find_one(by_id(id));
        within(self.deadline, "reading a voucher order", call).await?.map(VoucherOrder::try_from).transpose()
    }

    /// The client's order of this reference.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_reference(&self, client: ClientId, reference: &str) -> Result<Option<VoucherOrder>> {
        let filter = doc! { "clientId": ObjectId::from_bytes(client.bytes()), "reference": reference };
        let call = self.collection.find_one(filter);
        within(self.deadline, "reading a voucher order", call).await?.map(VoucherOrder::try_from).transpose()
    }

    /// Which of these references the client has orders of.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn known(&self, client: ClientId, references: &[&str]) -> Result<HashSet<String>> {
        #[derive(Deserialize)]
        struct Row {
            reference: String,
        }
        let filter = doc! { "clientId": ObjectId::from_bytes(client.bytes()), "reference": { "$in": references } };
        let rows = self.collection.clone_with_type::<Row>();
        let find = rows.find(filter).projection(doc! { "_id": 0, "reference": 1 });
        let call = async { find.await?.map_ok(|row| row.reference).try_collect().await };
        within(self.deadline, "looking for voucher orders", call).await
    }

    /// Items of pending orders for this client.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn pending_items(&self, client: ClientId) -> Result<u64> {
        #[derive(Deserialize)]
        struct Row {
            items: i64,
        }
        let pending = doc! {
            "clientId": ObjectId::from_bytes(client.bytes()),
            "status": VoucherOrderStatus::Pending.as_str(),
        };
        let sum = doc! { "_id": null, "items": { "$sum": { "$sum": "$items.quantity" } } };
        let pipeline = vec![doc! { "$match": pending }, doc! { "$group": sum }];
        let call =
            async { self.collection.aggregate(pipeline).with_type::<Row>().await?.try_collect::<Vec<_>>().await };
        let rows = within(self.deadline, "counting voucher orders", call).await?;
        Ok(rows.first().map_or(0, |row| u64::try_from(row.items).unwrap_or(0)))
    }

    /// Orders of these references are looked at at this moment, those that are there and in one of these statuses.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn look_again(
        &self,
        client: ClientId,
        references: &[&str],
        statuses: &[VoucherOrderStatus],
        at: chrono::DateTime<chrono::Utc>,
    ) -> Result<()> {
        let statuses: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
        let filter = doc! {
            "clientId": ObjectId::from_bytes(client.bytes()),
            "reference": { "$in": references },
            "status": { "$in": statuses },
        };
        let change = doc! { "$set": { "dueAt": DateTime::from_chrono(at) } };
        let call = self.collection.update_many(filter, change);
        within(self.deadline, "changing voucher orders", call).await.map(|_| ())
    }

    /// Moves an order to another status, if it is in one of these and in this round; false if it is not.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn advance(
        &self,
        order: &VoucherOrder,
        from: &[VoucherOrderStatus],
        to: VoucherOrderStatus,
        reason: Option<&str>,
        due_at: Option<chrono::DateTime<chrono::Utc>>,
    ) -> Result<bool> {
        let mut filter = by_id(order.id);
        let from: Vec<&str> = from.iter().map(|status| status.as_str()).collect();
        filter.insert("status", doc! { "$in": from });
        filter.insert("round", i64::from(order.round));
        let mut set = doc! { "status": to.as_str(), "reason": reason };
        let mut change = doc! {};
        match due_at {
            Some(at) => {
                set.insert("dueAt", DateTime::from_chrono(at));
            }
            None => {
                change.insert("$unset", doc! { "dueAt": "" });
            }
        }
        if to == VoucherOrderStatus::Pending {
            change.insert("$inc", doc! { "round": 1_i64 });
        }
        change.insert("$set", set);
        let call = self.collection.update_one(filter, change);
        Ok(within(self.deadline, "changing a voucher order", call).await?.matched_count == 1)
    }

    /// Orders that are to be looked at again.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn due(&self, now: chrono::DateTime<chrono::Utc>, limit: u32) -> Result<Vec<VoucherOrder>> {
        let find = self.collection.find(doc! { "dueAt": { "$lte": DateTime::from_chrono(now) } }).limit(limit.into());
        let call = async { find.sort(doc! { "dueAt": 1 }).await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "listing voucher orders", call).await?.into_iter().map(VoucherOrder::try_from).collect()
    }

    /// The order is not looked at any more, if it is as it was seen.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn rest(&self, seen: &VoucherOrder) -> Result<()> {
        let mut filter = by_id(seen.id);
        filter.insert("status", seen.status.as_str());
        filter.insert("round", i64::from(seen.round));
        let call = self.collection.update_one(filter, doc! { "$unset": { "dueAt": "" } });
        within(self.deadline, "changing a voucher order", call).await.map(|_| ())
    }

    /// A client's orders, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_client(&self, client: ClientId, page: Page) -> Result<Listed<VoucherOrder>> {
        let filter = doc! { "clientId": ObjectId::from_bytes(client.bytes()) };
        let (rows, doing) = (&self.collection, "listing voucher orders");
        let rows = query::page(rows, self.deadline, doing, filter, Order::NewestFirst, page).await?;
        let rows = rows.into_iter().map(VoucherOrder::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// Records which units filled an order. Recording them again changes nothing.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn log_inward(&self, order: VoucherOrderId, units: &[Unit]) -> Result<()> {
        for unit in units {
            let Some(item) = &unit.item else { continue };
            let entry = doc! {
                "orderId": ObjectId::from_bytes(order.bytes()),
                "item": item,
                "unit": i64::try_from(unit.id.number()).unwrap_or(i64::MAX),
                "vendorId": ObjectId::from_bytes(unit.vendor.bytes()),
                "productId": ObjectId::from_bytes(unit.product.bytes()),
                "denominationMinor": unit.denomination.minor,
                "currency": unit.denomination.currency.code(),
                "at": DateTime::now(),
            };
            let which = doc! { "_id": format!("{item} {}", unit.id) };
            let call = self.inward.update_one(which, doc! { "$setOnInsert": entry }).upsert(true);
            within(self.deadline, "logging vouchers", call).await?;
        }
        Ok(())
    }

    /// Records that somebody has seen the codes of an order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn log_view(&self, order: VoucherOrderId, by: UserId, at: chrono::DateTime<chrono::Utc>) -> Result<()> {
        let entry = doc! {
            "orderId": ObjectId::from_bytes(order.bytes()),
            "by": ObjectId::from_bytes(by.bytes()),
            "at": DateTime::from_chrono(at),
        };
        within(self.deadline, "recording a view", self.views.insert_one(entry)).await.map(|_| ())
    }

    /// The orders with these ids, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_ids(&self, ids: &[VoucherOrderId]) -> Result<Vec<VoucherOrder>> {
        let ids: Vec<Bson> = ids.iter().map(|id| ObjectId::from_bytes(id.bytes()).into()).collect();
        let call = async { self.collection.find(doc! { "_id": { "$in": ids } }).await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "reading voucher orders", call).await?.into_iter().map(VoucherOrder::try_from).collect()
    }
}
