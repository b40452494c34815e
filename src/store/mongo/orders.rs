//! Collection `orders`. `reservationId` is unique: writing an order twice leaves one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::Hint;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::bulk::{self, Statements};
use super::error::{unreadable, within};
use super::query::{self, Order as ListOrder};
use super::webhooks::mark;
use crate::domain::ids::{EventId, OrderId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    reservation_id: String,
    user_id: ObjectId,
    product_id: ObjectId,
    event_id: ObjectId,
    quantity: i64,
    price_minor: i64,
    currency: String,
    status: String,
    created_at: DateTime,
    updated_at: DateTime,
    revision: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime>,
    #[serde(default)]
    returned: i64,
    #[serde(default)]
    slot_kept: bool,
    #[serde(default)]
    operation: String,
}

impl TryFrom<OrderDocument> for Order {
    type Error = Error;

    fn try_from(document: OrderDocument) -> Result<Self> {
        let broken = |what: &str| unreadable("reading an order", format!("{what} of order {}", document.id));
        Ok(Self {
            id: OrderId::from_bytes(document.id.bytes()),
            user: UserId::from_bytes(document.user_id.bytes()),
            product: ProductId::from_bytes(document.product_id.bytes()),
            event: EventId::from_bytes(document.event_id.bytes()),
            quantity: u32::try_from(document.quantity).map_err(|_| broken("quantity"))?,
            price: Money {
                minor: document.price_minor,
                currency: money::currency(&document.currency).ok_or_else(|| broken("currency"))?,
            },
            status: OrderStatus::parse(&document.status).ok_or_else(|| broken("status"))?,
            reservation_id: document.reservation_id,
            created_at: document.created_at.to_chrono(),
            updated_at: document.updated_at.to_chrono(),
            expires_at: document.expires_at.map(DateTime::to_chrono),
            returned: u32::try_from(document.returned).map_err(|_| broken("returned"))?,
            slot_kept: document.slot_kept,
            operation: document.operation,
            revision: u32::try_from(document.revision).map_err(|_| broken("revision"))?,
            idempotency_key: document.idempotency_key.unwrap_or_default(),
        })
    }
}

/// One line of an event's totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusTotal {
    /// Orders of this status...
    pub status: String,
    /// ...in this currency.
    pub currency: String,
    /// How many.
    pub orders: u64,
    /// Units in them.
    pub units: u64,
    /// Their worth in minor units.
    pub minor: i64,
}

/// What the database said to a page of orders.
#[derive(Debug, Clone, Default)]
pub struct Upserted {
    /// Orders of the page that the database holds now.
    pub confirmed: usize,
    /// Positions in the page that it refused, and why.
    pub refused: Vec<(usize, String)>,
}

/// An event's orders, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there are.
    pub orders: u64,
    /// How many changes they have been through, all together.
    pub changes: u64,
}

/// Settled reservations.
#[derive(Debug)]
pub struct Orders {
    database: Database,
    pub(super) collection: Collection<OrderDocument>,
    deadline: Duration,
    pub(super) long: Duration,
}

/// Units that are the buyer's, as an expression.
pub(super) fn units_held() -> Document {
    doc! { "$subtract": ["$quantity", { "$ifNull": ["$returned", 0] }] }
}

pub(super) fn of_event(event: EventId) -> Document {
    doc! { "eventId": ObjectId::from_bytes(event.bytes()) }
}

impl Orders {
    pub(super) fn new(database: &Database, deadline: Duration, long: Duration) -> Self {
        Self { database: database.clone(), collection: database.collection("orders"), deadline, long }
    }

    /// Writes a page of reservations as orders, each one on its own: a refused one does not hold up the others. Only a
    /// newer revision changes an order that is there; an older or equal one changes nothing and counts as confirmed.
    ///
    /// A first revision cannot be newer than anything, so it is a plain insert, which costs a server a fraction of an
    /// upsert. Most are.
    ///
    /// # Errors
    /// When the database does not confirm the page as a whole; then nothing is known of any of it.
    pub async fn upsert(&self, reservations: &[Reservation]) -> Result<Upserted> {
        let (first, later): (Vec<usize>, Vec<usize>) =
            (0..reservations.len()).partition(|index| reservations[*index].revision == 1);
        let inserts = first.iter().map(|index| first_state(&reservations[*index])).collect();
        let updates = later.iter().map(|index| upsert_one(&reservations[*index])).collect();
        let mut all = self.write(Statements::Insert, inserts, &first).await?;
        let updated = self.write(Statements::Update, updates, &later).await?;
        all.confirmed += updated.confirmed;
        all.refused.extend(updated.refused);
        Ok(all)
    }

    /// `positions` are those of the statements in the page.
    async fn write(&self, kind: Statements, statements: Vec<Document>, positions: &[usize]) -> Result<Upserted> {
        let done = bulk::write(&self.database, self.long, "writing orders", "orders", kind, statements).await?;
        let mut written = Upserted { confirmed: done.count, refused: Vec::new() };
        for refused in done.refused {
            // The order is there in this revision or a newer one, so the insert met the index.
            if refused.duplicate {
                written.confirmed += 1;
            } else {
                let position = positions.get(refused.index).copied();
                written.refused.push((position.unwrap_or(usize::MAX), refused.reason));
            }
        }
        Ok(written)
    }

    /// Which of these reservations are orders now, and in which revision.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn revisions(&self, reservation_ids: &[String]) -> Result<HashMap<String, u32>> {
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "reservationId")]
            reservation_id: String,
            revision: i64,
        }
        if reservation_ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self.collection.clone_with_type::<Row>();
        let call = async {
            let filter = doc! { "reservationId": { "$in": reservation_ids } };
            let cursor = rows.find(filter).projection(doc! { "reservationId": 1, "revision": 1, "_id": 0 }).await?;
            cursor.map_ok(|row| (row.reservation_id, u32::try_from(row.revision).unwrap_or(0))).try_collect().await
        };
        within(self.deadline, "confirming orders", call).await
    }

    /// How many orders the event has and how many changes they have been through, of one moment and in one walk over them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn tally(&self, event: EventId) -> Result<Tally> {
        #[derive(Deserialize)]
        struct Row {
            orders: i64,
            changes: i64,
        }
        let sum = doc! { "$group": {
            "_id": null,
            "orders": { "$sum": 1_i64 },
            "changes": { "$sum": "$revision" },
        } };
        let pipeline = vec![doc! { "$match": of_event(event) }, sum];
        let call =
            async { self.collection.aggregate(pipeline).with_type::<Row>().await?.try_collect::<Vec<_>>().await };
        let rows = within(self.long, "summing changes", call).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let of_row = |row: &Row| Tally { orders: count(row.orders), changes: count(row.changes) };
        Ok(rows.first().map(of_row).unwrap_or_default())
    }

    /// How many orders the event has.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count_of_event(&self, event: EventId) -> Result<u64> {
        within(self.long, "counting orders", self.collection.count_documents(of_event(event))).await
    }

    /// An event's orders, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_event(&self, event: EventId, page: Page) -> Result<Listed<Order>> {
        self.list(of_event(event), page).await
    }

    /// A buyer's orders, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_user(&self, user: UserId, page: Page) -> Result<Listed<Order>> {
        self.list(doc! { "userId": ObjectId::from_bytes(user.bytes()) }, page).await
    }

    async fn list(&self, filter: Document, page: Page) -> Result<Listed<Order>> {
        let (collection, deadline) = (&self.collection, self.deadline);
        let rows = query::page(collection, deadline, "listing orders", filter, ListOrder::NewestFirst, page).await?;
        let rows = rows.into_iter().map(Order::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// A buyer's order of a product: the one that has units or waits for payment, else the newest.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_buyer(&self, event: EventId, product: ProductId, user: UserId) -> Result<Option<Order>> {
        let mut filter = of_event(event);
        filter.insert("userId", ObjectId::from_bytes(user.bytes()));
        filter.insert("productId", ObjectId::from_bytes(product.bytes()));
        let mut lasting = filter.clone();
        lasting
            .insert("status", doc! { "$in": [OrderStatus::Confirmed.as_str(), OrderStatus::PendingPayment.as_str()] });
        for filter in [lasting, filter] {
            // Without the hint a planner may walk over all orders of the event, which come in this order.
            let of_buyer = doc! { "eventId": 1, "userId": 1, "productId": 1 };
            let call = self.collection.find_one(filter).sort(doc! { "createdAt": -1 }).hint(Hint::Keys(of_buyer));
            if let Some(found) = within(self.deadline, "reading an order", call).await? {
                return found.try_into().map(Some);
            }
        }
        Ok(None)
    }

    /// An event's orders, summed per status and currency. Sums are of integers.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn totals(&self, event: EventId) -> Result<Vec<StatusTotal>> {
        #[derive(Deserialize)]
        struct Key {
            status: String,
            currency: String,
        }
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            key: Key,
            orders: i64,
            units: i64,
            minor: i64,
        }
        let pipeline = vec![
            doc! { "$match": of_event(event) },
            doc! { "$group": {
                "_id": { "status": "$status", "currency": "$currency" },
                "orders": { "$sum": 1_i64 },
                "units": { "$sum": units_held() },
                "minor": { "$sum": { "$multiply": ["$priceMinor", units_held()] } },
            } },
        ];
        let call =
            async { self.collection.aggregate(pipeline).with_type::<Row>().await?.try_collect::<Vec<_>>().await };
        let rows = within(self.long, "summing orders", call).await?;
        let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
        Ok(rows
            .into_iter()
            .map(|row| StatusTotal {
                status: row.key.status,
                currency: row.key.currency,
                orders: unsigned(row.orders),
                units: unsigned(row.units),
                minor: row.minor,
            })
            .collect())
    }

    /// Units ordered of each product of the event.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn units_per_product(&self, event: EventId) -> Result<BTreeMap<ProductId, u64>> {
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            product: ObjectId,
            units: i64,
        }
        let pipeline = vec![
            doc! { "$match": of_event(event) },
            doc! { "$group": { "_id": "$productId", "units": { "$sum": units_held() } } },
        ];
        let call =
            async { self.collection.aggregate(pipeline).with_type::<Row>().await?.try_collect::<Vec<_>>().await };
        let rows = within(self.long, "summing units", call).await?;
        Ok(rows
            .into_iter()
            .map(|row| (ProductId::from_bytes(row.product.bytes()), u64::try_from(row.units).unwrap_or(0)))
            .collect())
    }
}

/// What changes about an order.
fn state_of(reservation: &Reservation) -> Document {
    let mut state = doc! {
        "status": reservation.status.as_str(),
        "revision": i64::from(reservation.revision),
        "returned": i64::from(reservation.returned),
        "slotKept": reservation.slot_kept,
        "operation": &reservation.operation,
        "expiresAt": reservation.expires_at_ms.map(DateTime::from_millis),
        "updatedAt": DateTime::now(),
    };
    if reservation.returned > 0 {
        // Written with the units, so that no return can be missed: see `returns`, which clears it.
        state.insert(super::returns::OPEN, true);
    }
    state
}

/// What never changes about an order.
fn origin_of(reservation: &Reservation) -> Document {
    let mut origin = doc! {
        "userId": ObjectId::from_bytes(reservation.user.bytes()),
        "productId": ObjectId::from_bytes(reservation.product.bytes()),
        "eventId": ObjectId::from_bytes(reservation.event.bytes()),
        "quantity": i64::from(reservation.quantity),
        "priceMinor": reservation.price.minor,
        "currency": reservation.price.currency.code(),
        "createdAt": DateTime::from_millis(reservation.booked_at_ms),
    };
    if !reservation.idempotency_key.is_empty() {
        origin.insert("idempotencyKey", &reservation.idempotency_key);
    }
    origin
}

fn first_state(reservation: &Reservation) -> Document {
    let mut order = doc! { "_id": ObjectId::new(), "reservationId": &reservation.id };
    order.extend(origin_of(reservation));
    order.extend(state_of(reservation));
    order
}

fn upsert_one(reservation: &Reservation) -> Document {
    doc! {
        "q": { "reservationId": &reservation.id, "revision": { "$lt": i64::from(reservation.revision) } },
        "u": { "$set": state_of(reservation), "$setOnInsert": origin_of(reservation) },
        "upsert": true,
        "multi": false,
    }
}

impl Orders {
    /// The order of this reservation.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_reservation(&self, reservation: &str) -> Result<Option<Order>> {
        let call = self.collection.find_one(doc! { "reservationId": reservation });
        within(self.deadline, "reading an order", call).await?.map(Order::try_from).transpose()
    }

    /// The orders of these reservations.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_reservations(&self, reservations: &[String]) -> Result<HashMap<String, Order>> {
        if reservations.is_empty() {
            return Ok(HashMap::new());
        }
        let filter = doc! { "reservationId": { "$in": reservations } };
        let call = async { self.collection.find(filter).await?.try_collect::<Vec<_>>().await };
        let found = within(self.deadline, "reading orders", call).await?.into_iter().map(Order::try_from);
        found.map(|order| order.map(|order| (order.reservation_id.clone(), order))).collect()
    }

    /// Changes an order whose reservation no live store has any more: only from the revision before; false if it is in
    /// another one. The change is marked, in the same write, as one that its seller is to be told of.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn change(&self, after: &Reservation) -> Result<bool> {
        let before = doc! { "reservationId": &after.id, "revision": i64::from(after.revision) - 1 };
        let change = doc! { "$set": state_of(after), "$push": { "untold": mark(after) } };
        let call = self.collection.update_one(before, change);
        Ok(within(self.deadline, "changing an order", call).await?.matched_count == 1)
    }

    /// Orders that wait for payment and whose time has passed, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn overdue(&self, before: chrono::DateTime<chrono::Utc>, limit: u32) -> Result<Vec<Order>> {
        let filter = doc! {
            "status": OrderStatus::PendingPayment.as_str(),
            "expiresAt": { "$lt": DateTime::from_chrono(before) },
        };
        let call = async { self.collection.find(filter).limit(limit.into()).await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "listing overdue orders", call).await?.into_iter().map(Order::try_from).collect()
    }

    /// Whether the unique index that makes settlement idempotent is there. A sale does not open without it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn has_unique_index(&self) -> Result<bool> {
        let call = async { self.collection.list_indexes().await?.try_collect::<Vec<_>>().await };
        let indexes = within(self.deadline, "looking at indexes", call).await?;
        Ok(indexes.iter().any(|index| {
            index.keys.keys().eq(["reservationId"])
                && index.options.as_ref().and_then(|options| options.unique) == Some(true)
        }))
    }
}
