//! The catalogue as buyers see it.
//!
//! While a sale runs, products come from the live store: the price on the page is the price that a reservation takes,
//! and a live store that does not answer is an error, never "0 in stock".

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use super::Catalogue;
use crate::domain::event::{Event, SalePhase, is_slug};
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::Money;
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::product::{LiveProduct, Product};
use crate::domain::sale::SaleStatus;
use crate::error::{Code, Error, Result};

/// A product on a buyer's page.
#[derive(Debug, Clone)]
pub struct ProductView {
    /// Its id.
    pub id: ProductId,
    /// Its title.
    pub title: String,
    /// Its text.
    pub description: String,
    /// What a reservation takes.
    pub price: Money,
    /// Public address of the picture.
    pub image_url: String,
    /// Units that can be reserved now.
    pub available_units: u64,
    /// Units at the start.
    pub initial_units: u64,
    /// Units that one buyer may reserve.
    pub per_buyer_limit: u32,
}

/// An event on a buyer's page.
#[derive(Debug, Clone)]
pub struct EventPage {
    /// The event.
    pub event: Event,
    /// What its sale is doing.
    pub status: SaleStatus,
    /// The live store's time.
    pub now: DateTime<Utc>,
    /// Its products.
    pub products: Listed<ProductView>,
}

impl Catalogue {
    /// Events whose sale is open (live or paused), oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn open_events(&self, page: Page) -> Result<Listed<Event>> {
        self.mongo.events.in_phases(&[SalePhase::Live], page).await
    }

    /// The published event with this id or slug.
    ///
    /// # Errors
    /// [`Code::MalformedId`] for a text that is neither; [`Code::NotFound`] also for an event that was never opened: what
    /// is being prepared is its seller's business, unless it is announced.
    pub async fn published_event(&self, id_or_slug: &str) -> Result<Event> {
        let event = match id_or_slug.parse::<EventId>() {
            Ok(id) => self.mongo.events.by_id(id).await?,
            Err(_) if is_slug(id_or_slug) => self.mongo.events.by_slug(id_or_slug).await?,
            Err(_) => return Err(Error::refused(Code::MalformedId, "invalid event ID")),
        };
        let unknown = || Error::not_found("event not found");
        let event = event.ok_or_else(unknown)?;
        let unopened = matches!(event.phase, SalePhase::Draft | SalePhase::Opening);
        if unopened
            && !(event.announced(self.clock.now()) && self.may_sell(&[event.seller]).await?.contains(&event.seller))
        {
            return Err(unknown());
        }
        Ok(event)
    }

    /// Events that are to open by themselves, oldest first; only of sellers who may open one. A page may have fewer items
    /// than there are on later pages.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn upcoming_events(&self, page: Page) -> Result<Listed<Event>> {
        let now = self.clock.now();
        let mut listed = self.mongo.events.announced(page).await?;
        let sellers: Vec<UserId> = listed.items.iter().map(|event| event.seller).collect();
        let approved = self.may_sell(&sellers).await?;
        listed.items.retain(|event| event.announced(now) && approved.contains(&event.seller));
        Ok(listed)
    }

    /// Announcing is publishing: it takes the approval that opening takes.
    async fn may_sell(&self, sellers: &[UserId]) -> Result<HashSet<UserId>> {
        self.mongo.accounts.approved_among(sellers).await
    }

    /// An event with a page of its products.
    ///
    /// # Errors
    /// As [`Self::published_event`]; and when a store does not answer.
    pub async fn event_page(&self, id_or_slug: &str, page: Page) -> Result<EventPage> {
        let event = self.published_event(id_or_slug).await?;
        let (status, now_ms) = self.live.status_and_time(event.id).await?;
        let now = DateTime::from_timestamp_millis(now_ms).unwrap_or_default();
        let status = event.status_at(status, now);
        let products = match status {
            SaleStatus::Live | SaleStatus::Paused => self.live_products(event.id, page).await?,
            SaleStatus::NotStarted | SaleStatus::Stopped => self.past_products(event.id, page).await?,
        };
        // The stopped status expires in Redis; the phase does not.
        let status = if event.phase.over() { SaleStatus::Stopped } else { status };
        Ok(EventPage { event, status, now, products })
    }

    async fn live_products(&self, event: EventId, page: Page) -> Result<Listed<ProductView>> {
        let after = page.after.map(|cursor| ProductId::from_bytes(cursor.id));
        let ids = self.live.product_ids(event, after, page.limit as usize + 1).await?;
        let listed = Listed::from_rows(ids, page, |id| Cursor { created_at_ms: 0, id: id.bytes() });
        let products = self.live.products(event, &listed.items).await?;
        Ok(Listed { items: products.into_iter().map(ProductView::from).collect(), next: listed.next })
    }

    /// Nothing of an ended sale can be reserved.
    async fn past_products(&self, event: EventId, page: Page) -> Result<Listed<ProductView>> {
        let listed = self.mongo.products.of_event(event, page).await?;
        Ok(Listed { items: listed.items.into_iter().map(ProductView::from).collect(), next: listed.next })
    }
}

impl From<LiveProduct> for ProductView {
    fn from(product: LiveProduct) -> Self {
        Self {
            id: product.id,
            title: product.title,
            description: product.description,
            price: product.price,
            image_url: product.image_url,
            available_units: product.available_units,
            initial_units: product.initial_units,
            per_buyer_limit: product.per_buyer_limit,
        }
    }
}

impl From<Product> for ProductView {
    fn from(product: Product) -> Self {
        Self {
            id: product.id,
            title: product.title,
            description: product.description,
            price: product.price,
            image_url: product.image_url,
            available_units: 0,
            initial_units: product.units.into(),
            per_buyer_limit: product.per_buyer_limit,
        }
    }
}
