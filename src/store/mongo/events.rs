//! Collection `events`. The phase of the sale moves by guarded updates only: a write that finds another phase than it
//! expects changes nothing.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unreadable, within};
use super::query::{self, Order};
use crate::domain::event::{Event, SalePhase, Terms};
use crate::domain::ids::{EventId, UserId};
use crate::domain::journal::EntryId;
use crate::domain::page::{Cursor, Listed, Page};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    seller_id: ObjectId,
    slug: String,
    event_name: String,
    description: String,
    scheduled_at: DateTime,
    #[serde(default)]
    auto_open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<DateTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    #[serde(default)]
    payment_window_s: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_until: Option<DateTime>,
    #[serde(default)]
    refund_keeps_slot: bool,
    /// The inherited flag: true from opening to End.
    is_live: bool,
    sale_phase: String,
    /// The token of the opening that made this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    sale_run: Option<String>,
    image_banner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    banner_key: Option<String>,
    created_at: DateTime,
    updated_at: DateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<DateTime>,
    /// How far the journal was read: written before the orders behind it, never moved back.
    #[serde(skip_serializing_if = "Option::is_none")]
    drained: Option<PositionDocument>,
    /// Counted once: whoever asks later does not walk over a million orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_orders: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PositionDocument {
    ms: i64,
    seq: i64,
}

impl TryFrom<EventDocument> for Event {
    type Error = Error;

    fn try_from(document: EventDocument) -> Result<Self> {
        Ok(Self {
            id: EventId::from_bytes(document.id.bytes()),
            seller: UserId::from_bytes(document.seller_id.bytes()),
            slug: document.slug,
            name: document.event_name,
            description: document.description,
            scheduled_at: document.scheduled_at.to_chrono(),
            auto_open: document.auto_open,
            ends_at: document.ends_at.map(DateTime::to_chrono),
            time_zone: document.time_zone,
            terms: Terms {
                payment_window_s: u32::try_from(document.payment_window_s)
                    .map_err(|_| unreadable("reading an event", "paymentWindowS".to_owned()))?,
                cancel_until: document.cancel_until.map(DateTime::to_chrono),
                refund_keeps_slot: document.refund_keeps_slot,
            },
            phase: SalePhase::parse(&document.sale_phase)
                .ok_or_else(|| unreadable("reading an event", document.sale_phase))?,
            banner_url: document.image_banner,
            banner_key: document.banner_key,
            created_at: document.created_at.to_chrono(),
            updated_at: document.updated_at.to_chrono(),
            drained: document
                .drained
                .map(|position| EntryId { ms: position.ms.unsigned_abs(), seq: position.seq.unsigned_abs() }),
            settled_orders: document.settled_orders.map(i64::unsigned_abs),
        })
    }
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        Self {
            id: ObjectId::from_bytes(event.id.bytes()),
            seller_id: ObjectId::from_bytes(event.seller.bytes()),
            slug: event.slug.clone(),
            event_name: event.name.clone(),
            description: event.description.clone(),
            scheduled_at: DateTime::from_chrono(event.scheduled_at),
            auto_open: event.auto_open,
            ends_at: event.ends_at.map(DateTime::from_chrono),
            time_zone: event.time_zone.clone(),
            payment_window_s: event.terms.payment_window_s.into(),
            cancel_until: event.terms.cancel_until.map(DateTime::from_chrono),
            refund_keeps_slot: event.terms.refund_keeps_slot,
            is_live: event.phase == SalePhase::Live,
            sale_phase: event.phase.as_str().to_owned(),
            sale_run: None,
            image_banner: event.banner_url.clone(),
            banner_key: event.banner_key.clone(),
            created_at: DateTime::from_chrono(event.created_at),
            updated_at: DateTime::from_chrono(event.updated_at),
            deleted_at: None,
            drained: None,
            settled_orders: None,
        }
    }
}

/// What a seller changes about an event. `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct EventChange {
    /// The title.
    pub name: Option<String>,
    /// The text.
    pub description: Option<String>,
    /// The schedule.
    pub scheduled_at: Option<chrono::DateTime<chrono::Utc>>,
    /// The banner: its address, and its key if we keep it.
    pub banner: Option<(String, Option<String>)>,
    /// What its sale is opened with. Only an event whose sale was never opened takes these.
    pub plan: PlanChange,
}

/// A change of what a sale is opened with. `None` leaves a field as it is; an inner `None` takes it away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanChange {
    /// Whether it opens by itself.
    pub auto_open: Option<bool>,
    /// When it ends by itself.
    pub ends_at: Option<Option<chrono::DateTime<chrono::Utc>>>,
    /// The zone that times are shown in.
    pub time_zone: Option<Option<String>>,
    /// Seconds to pay in.
    pub payment_window_s: Option<u32>,
    /// Until when a buyer may cancel.
    pub cancel_until: Option<Option<chrono::DateTime<chrono::Utc>>>,
    /// Whether a cancelled buyer may not reserve again.
    pub refund_keeps_slot: Option<bool>,
}

impl PlanChange {
    fn set(&self) -> Document {
        let mut set = doc! {};
        if let Some(auto_open) = self.auto_open {
            set.insert("autoOpen", auto_open);
        }
        if let Some(at) = self.ends_at {
            set.insert("endsAt", at.map(DateTime::from_chrono));
        }
        if let Some(zone) = &self.time_zone {
            set.insert("timeZone", zone.clone());
        }
        if let Some(seconds) = self.payment_window_s {
            set.insert("paymentWindowS", i64::from(seconds));
        }
        if let Some(at) = self.cancel_until {
            set.insert("cancelUntil", at.map(DateTime::from_chrono));
        }
        if let Some(keeps) = self.refund_keeps_slot {
            set.insert("refundKeepsSlot", keeps);
        }
        set
    }
}

/// Events.
#[derive(Debug)]
pub struct Events {
    pub(super) collection: Collection<EventDocument>,
    pub(super) deadline: Duration,
}

pub(super) fn by_id(id: EventId) -> Document {
    doc! { "_id": ObjectId::from_bytes(id.bytes()), "deletedAt": null }
}

pub(super) fn in_phases(phases: &[SalePhase]) -> Document {
    doc! { "$in": phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>() }
}

impl Events {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("events"), deadline }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(&self, event: &Event) -> Result<()> {
        let call = self.collection.insert_one(EventDocument::from(event));
        within(self.deadline, "adding an event", call).await.map(|_| ())
    }

    /// The event with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: EventId) -> Result<Option<Event>> {
        self.find(by_id(id)).await
    }

    /// The event with this slug.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_slug(&self, slug: &str) -> Result<Option<Event>> {
        self.find(doc! { "slug": slug, "deletedAt": null }).await
    }

    async fn find(&self, filter: Document) -> Result<Option<Event>> {
        let call = self.collection.find_one(filter);
        within(self.deadline, "reading an event", call).await?.map(Event::try_from).transpose()
    }

    /// A seller's events, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_seller(&self, seller: UserId, page: Page) -> Result<Listed<Event>> {
        self.list(doc! { "sellerId": ObjectId::from_bytes(seller.bytes()), "deletedAt": null }, page).await
    }

    /// Events in these phases, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn in_phases(&self, phases: &[SalePhase], page: Page) -> Result<Listed<Event>> {
        self.list(doc! { "salePhase": in_phases(phases), "deletedAt": null }, page).await
    }

    pub(super) async fn list(&self, filter: Document, page: Page) -> Result<Listed<Event>> {
        let (collection, deadline) = (&self.collection, self.deadline);
        let rows = query::page(collection, deadline, "listing events", filter, Order::OldestFirst, page).await?;
        let rows = rows.into_iter().map(Event::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// Changes an event and returns it as it was before; `None` if there is none, or if the change is of what its sale is
    /// opened with and it was opened.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn update(&self, id: EventId, change: &EventChange) -> Result<Option<Event>> {
        let mut set = doc! {};
        if let Some(name) = &change.name {
            set.insert("eventName", name);
        }
        if let Some(description) = &change.description {
            set.insert("description", description);
        }
        if let Some(at) = change.scheduled_at {
            set.insert("scheduledAt", DateTime::from_chrono(at));
        }
        if let Some((url, key)) = &change.banner {
            set.insert("imageBanner", url);
            set.insert("bannerKey", key.clone());
        }
        let mut filter = by_id(id);
        let plan = change.plan.set();
        let replanned = !plan.is_empty() || change.scheduled_at.is_some();
        if !plan.is_empty() {
            filter.insert("salePhase", SalePhase::Draft.as_str());
            set.extend(plan);
        }
        let mut change = doc! { "$set": set, "$currentDate": { "updatedAt": true } };
        if replanned {
            // What stood in the way of the plan before says nothing of this one.
            change.insert("$unset", doc! { "scheduleProblem": "", "scheduleRetryAt": "" });
        }
        let call = self.collection.find_one_and_update(filter, change).return_document(ReturnDocument::Before);
        within(self.deadline, "changing an event", call).await?.map(Event::try_from).transpose()
    }

    /// Moves the sale's phase from one of `from` to `to`; false if it has another phase. `run` marks the opening.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn move_phase(&self, id: EventId, from: &[SalePhase], to: SalePhase, run: Option<&str>) -> Result<bool> {
        let mut set = doc! { "salePhase": to.as_str(), "isLive": to == SalePhase::Live };
        if let Some(run) = run {
            set.insert("saleRun", run);
        }
        let mut filter = by_id(id);
        filter.insert("salePhase", in_phases(from));
        let change = doc! { "$set": set, "$currentDate": { "updatedAt": true } };
        let call = self.collection.update_one(filter, change);
        Ok(within(self.deadline, "moving a sale's phase", call).await?.matched_count == 1)
    }

    /// As [`Self::move_phase`], but only while the event is marked with this opening.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn move_phase_of_run(&self, id: EventId, run: &str, from: &[SalePhase], to: SalePhase) -> Result<bool> {
        let mut filter = by_id(id);
        filter.insert("salePhase", in_phases(from));
        filter.insert("saleRun", run);
        let set = doc! { "salePhase": to.as_str(), "isLive": to == SalePhase::Live };
        let change = doc! { "$set": set, "$currentDate": { "updatedAt": true } };
        let call = self.collection.update_one(filter, change);
        Ok(within(self.deadline, "moving a sale's phase", call).await?.matched_count == 1)
    }

    /// The sale is settled, and came to so many orders.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn settle(&self, id: EventId, orders: u64) -> Result<bool> {
        let mut filter = by_id(id);
        filter.insert("salePhase", SalePhase::Stopped.as_str());
        let orders = i64::try_from(orders).unwrap_or(i64::MAX);
        let set = doc! { "salePhase": SalePhase::Settled.as_str(), "isLive": false, "settledOrders": orders };
        let call = self.collection.update_one(filter, doc! { "$set": set, "$currentDate": { "updatedAt": true } });
        Ok(within(self.deadline, "settling a sale", call).await?.matched_count == 1)
    }

    /// Remembers how far the sale's journal has been read, unless it was read further.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record_drained(&self, id: EventId, position: EntryId) -> Result<()> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (ms, seq) = (signed(position.ms), signed(position.seq));
        let mut filter = by_id(id);
        filter.insert(
            "$or",
            vec![
                doc! { "drained": null },
                doc! { "drained.ms": { "$lt": ms } },
                doc! { "drained.ms": ms, "drained.seq": { "$lt": seq } },
            ],
        );
        let call = self.collection.update_one(filter, doc! { "$set": { "drained": { "ms": ms, "seq": seq } } });
        within(self.deadline, "remembering how far a journal was read", call).await.map(|_| ())
    }

    /// Sales that were settled since `since`, oldest event first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn settled_since(&self, since: chrono::DateTime<chrono::Utc>, page: Page) -> Result<Listed<Event>> {
        let since = doc! { "$gte": DateTime::from_chrono(since) };
        self.list(doc! { "salePhase": SalePhase::Settled.as_str(), "deletedAt": null, "updatedAt": since }, page).await
    }

    /// Deletes an event that has no running or unsettled sale; false if it has one, or does not exist. The record
    /// stays, marked, since orders refer to it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn delete(&self, id: EventId) -> Result<bool> {
        let mut filter = by_id(id);
        filter.insert("salePhase", in_phases(&[SalePhase::Draft, SalePhase::Settled]));
        let call =
            self.collection.update_one(filter, doc! { "$currentDate": { "deletedAt": true, "updatedAt": true } });
        Ok(within(self.deadline, "deleting an event", call).await?.matched_count == 1)
    }

    /// Whether a living event shows this image.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn shows_image(&self, key: &str) -> Result<bool> {
        let call = self.collection.find_one(doc! { "bannerKey": key, "deletedAt": null });
        Ok(within(self.deadline, "looking for an image", call).await?.is_some())
    }
}
