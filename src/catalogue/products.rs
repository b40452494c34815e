//! Products, as their sellers prepare them. Once an opening has taken them they cannot be edited: what is shown, what
//! is charged and what is stored stay one.

use super::Catalogue;
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, ProductId};
use crate::domain::media::ImageKind;
use crate::domain::money::Money;
use crate::domain::page::{Listed, Page};
use crate::domain::product::{Product, VoucherOffer};
use crate::error::{Code, Error, Result};
use crate::store::mongo::new_id;
use crate::store::mongo::products::{Frozen, ProductChange};

/// A new product.
#[derive(Debug)]
pub struct ProductDraft {
    /// Its title.
    pub title: String,
    /// Its text.
    pub description: String,
    /// Of one unit.
    pub price: Money,
    /// Units for sale.
    pub units: u32,
    /// Units that one buyer may reserve.
    pub per_buyer_limit: u32,
    /// If its units are vouchers: which. It cannot be changed afterwards.
    pub voucher: Option<VoucherOffer>,
    /// The picture, as it was uploaded.
    pub image: bytes::Bytes,
}

/// A change of a product. `None` leaves a field as it is.
#[derive(Debug, Default)]
pub struct ProductEdit {
    /// Its title.
    pub title: Option<String>,
    /// Its text.
    pub description: Option<String>,
    /// Of one unit.
    pub price: Option<Money>,
    /// Units for sale.
    pub units: Option<u32>,
    /// Units that one buyer may reserve.
    pub per_buyer_limit: Option<u32>,
    /// The picture, as it was uploaded.
    pub image: Option<bytes::Bytes>,
}

impl Catalogue {
    /// Adds a product to an event whose sale has not been opened.
    ///
    /// # Errors
    /// [`Code::CatalogueFrozen`]; [`Code::ImageRejected`]; or when a store does not answer.
    pub async fn add_product(&self, event: &Event, draft: ProductDraft) -> Result<ProductId> {
        require_draft(event)?;
        let picture = self.upload(event.id, ImageKind::Product, draft.image).await?;
        let now = self.clock.now();
        let product = Product {
            id: ProductId::from_bytes(new_id()),
            seller: event.seller,
            event: event.id,
            title: draft.title,
            description: draft.description,
            price: draft.price,
            units: draft.units,
            per_buyer_limit: draft.per_buyer_limit,
            voucher: draft.voucher,
            image_url: picture.url,
            image_key: picture.key.clone(),
            created_at: now,
            updated_at: now,
        };
        self.mongo.products.insert(&product).await?;
        // The sale may have begun to open since the event was read. The opener first moves the phase, then stamps the
        // products: if the phase has moved and this product has no stamp, the sale goes on without it, so it must go.
        if self.event(event.id).await?.phase != SalePhase::Draft
            && self.mongo.products.delete(event.id, product.id, Frozen::Spare).await?.is_some()
        {
            self.picture_hidden(&picture.key).await;
            return Err(frozen());
        }
        self.picture_shown(&picture.key).await;
        Ok(product.id)
    }

    /// An event's products, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn products_of(&self, event: EventId, page: Page) -> Result<Listed<Product>> {
        self.mongo.products.of_event(event, page).await
    }

    /// One product of an event.
    ///
    /// # Errors
    /// [`Code::NotFound`] also for a product of another event; or when the database does not answer.
    pub async fn product(&self, event: EventId, id: ProductId) -> Result<Product> {
        self.mongo.products.by_id(event, id).await?.ok_or_else(unknown)
    }

    /// Changes a product.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::CatalogueFrozen`]; [`Code::ImageRejected`]; or when a store does not answer.
    pub async fn edit_product(&self, event: &Event, id: ProductId, edit: ProductEdit) -> Result<()> {
        require_draft(event)?;
        self.product(event.id, id).await?;
        let picture = match edit.image {
            Some(bytes) => Some(self.upload(event.id, ImageKind::Product, bytes).await?),
            None => None,
        };
        let change = ProductChange {
            title: edit.title,
            description: edit.description,
            price: edit.price,
            units: edit.units,
            per_buyer_limit: edit.per_buyer_limit,
            image: picture.as_ref().map(|picture| (picture.url.clone(), picture.key.clone())),
        };
        let before = self.mongo.products.update(event.id, id, &change, Frozen::Spare).await?;
        match (before, picture) {
            (Some(before), Some(picture)) => {
                self.picture_shown(&picture.key).await;
                self.picture_hidden(&before.image_key).await;
                Ok(())
            }
            (Some(_), None) => Ok(()),
            (None, picture) => {
                if let Some(picture) = picture {
                    self.picture_hidden(&picture.key).await;
                }
                Err(self.why_not(event.id, id).await)
            }
        }
    }

    /// Deletes a product: before its sale opens, or after the sale is over and settled.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::CatalogueFrozen`]; [`Code::SettlementIncomplete`]; or when the database does not
    /// answer.
    pub async fn delete_product(&self, event: &Event, id: ProductId) -> Result<()> {
        let frozen = match event.phase {
            SalePhase::Settled => Frozen::Touch,
            SalePhase::Stopped => {
                return Err(Error::refused(
                    Code::SettlementIncomplete,
                    "the sale has reservations that are not settled yet; End it again",
                ));
            }
            SalePhase::Draft | SalePhase::Opening | SalePhase::Live => Frozen::Spare,
        };
        match self.mongo.products.delete(event.id, id, frozen).await? {
            Some(deleted) => {
                self.picture_hidden(&deleted.image_key).await;
                Ok(())
            }
            None => Err(self.why_not(event.id, id).await),
        }
    }

    /// Why a guarded write matched nothing.
    async fn why_not(&self, event: EventId, id: ProductId) -> Error {
        match self.product(event, id).await {
            Ok(_) => frozen(),
            Err(error) => error,
        }
    }
}

fn require_draft(event: &Event) -> Result<()> {
    if event.phase == SalePhase::Draft { Ok(()) } else { Err(frozen()) }
}

fn frozen() -> Error {
    Error::refused(Code::CatalogueFrozen, "the sale has been opened; its products cannot be changed any more")
}

fn unknown() -> Error {
    Error::not_found("product not found")
}
