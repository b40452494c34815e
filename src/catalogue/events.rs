//! Events, as their sellers prepare them.

use chrono::{DateTime, Utc};

use super::Catalogue;
use crate::domain::event::{Event, SalePhase, Terms, slug};
use crate::domain::ids::{EventId, UserId};
use crate::domain::media::ImageKind;
use crate::domain::page::{Listed, Page};
use crate::error::{Code, Error, Result};
use crate::store::mongo::events::{EventChange, PlanChange};
use crate::store::mongo::new_id;

/// A new event.
#[derive(Debug)]
pub struct EventDraft {
    /// Its title.
    pub title: String,
    /// Its text.
    pub description: String,
    /// When the seller means to open it.
    pub scheduled_at: DateTime<Utc>,
    /// The banner, as it was uploaded.
    pub banner: bytes::Bytes,
    /// What its sale is opened with.
    pub plan: PlanChange,
}

/// A change of an event. `None` leaves a field as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EventEdit {
    /// Its title.
    pub title: Option<String>,
    /// Its text.
    pub description: Option<String>,
    /// When the seller means to open it.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// The address of a banner that the seller keeps elsewhere.
    pub banner_url: Option<String>,
    /// What its sale is opened with.
    pub plan: PlanChange,
}

impl Catalogue {
    /// Adds an event.
    ///
    /// # Errors
    /// [`Code::ImageRejected`], or when a store does not answer.
    pub async fn create_event(&self, seller: UserId, draft: EventDraft) -> Result<EventId> {
        let id = EventId::from_bytes(new_id());
        let banner = self.upload(id, ImageKind::Banner, draft.banner).await?;
        let now = self.clock.now();
        let event = Event {
            id,
            seller,
            slug: slug(&draft.title, id),
            name: draft.title,
            description: draft.description,
            scheduled_at: draft.scheduled_at,
            auto_open: draft.plan.auto_open.unwrap_or_default(),
            ends_at: draft.plan.ends_at.flatten(),
            time_zone: draft.plan.time_zone.flatten(),
            terms: Terms {
                payment_window_s: draft.plan.payment_window_s.unwrap_or_default(),
                cancel_until: draft.plan.cancel_until.flatten(),
                refund_keeps_slot: draft.plan.refund_keeps_slot.unwrap_or_default(),
            },
            phase: SalePhase::Draft,
            banner_url: banner.url,
            banner_key: Some(banner.key.clone()),
            created_at: now,
            updated_at: now,
            drained: None,
            settled_orders: None,
        };
        self.mongo.events.insert(&event).await?;
        self.picture_shown(&banner.key).await;
        Ok(id)
    }

    /// The event with this id, whoever owns it.
    ///
    /// # Errors
    /// [`Code::NotFound`], or when the database does not answer.
    pub async fn event(&self, id: EventId) -> Result<Event> {
        self.mongo.events.by_id(id).await?.ok_or_else(|| Error::not_found("event not found"))
    }

    /// A seller's events, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn events_of(&self, seller: UserId, page: Page) -> Result<Listed<Event>> {
        self.mongo.events.of_seller(seller, page).await
    }

    /// Changes an event. Its texts may change while its sale runs; what the sale is opened with may not.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::CatalogueFrozen`], or when the database does not answer.
    pub async fn edit_event(&self, event: EventId, edit: EventEdit) -> Result<()> {
        let change = EventChange {
            name: edit.title,
            description: edit.description,
            scheduled_at: edit.scheduled_at,
            banner: edit.banner_url.map(|url| (url, None)),
            plan: edit.plan,
        };
        let replaces_banner = change.banner.is_some();
        let Some(before) = self.mongo.events.update(event, &change).await? else {
            self.event(event).await?;
            return Err(Error::refused(
                Code::CatalogueFrozen,
                "the sale was opened with its terms and its schedule; they cannot change any more",
            ));
        };
        if let Some(key) = before.banner_key.filter(|_| replaces_banner) {
            self.picture_hidden(&key).await;
        }
        Ok(())
    }

    /// Deletes an event with its products and pictures. Its orders stay.
    ///
    /// # Errors
    /// [`Code::CatalogueFrozen`] while its sale opens or runs; [`Code::SettlementIncomplete`] until every reservation is
    /// an order.
    pub async fn delete_event(&self, event: &Event) -> Result<()> {
        if !self.mongo.events.delete(event.id).await? {
            let found = self.event(event.id).await?;
            return Err(if found.phase == SalePhase::Stopped {
                Error::refused(
                    Code::SettlementIncomplete,
                    "the sale has reservations that are not settled yet; End it again",
                )
            } else {
                Error::refused(Code::CatalogueFrozen, "the sale is open; End it before you delete the event")
            });
        }
        self.mongo.products.delete_of_event(event.id).await?;
        self.pictures_hidden(event.id, event.banner_key.as_deref()).await
    }
}
