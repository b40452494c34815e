//! Collection `inventories`.
//!
//! A product that is part of a sale is frozen: its record is stamped with the opening's token (`saleRun`) before it is
//! read for projection. Edits and deletions match only records without a stamp. So each edit either happens before the
//! stamp, and buyers pay what it says, or it is refused; there is no moment in between, and no transaction is needed.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::{Stream, StreamExt, TryStreamExt};
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{fault, unreadable, within};
use super::query::{self, Order};
use super::vouchers::offers::OfferDocument;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::product::Product;
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    seller_id: ObjectId,
    event_id: ObjectId,
    title: String,
    description: String,
    price_minor: i64,
    currency: String,
    /// Units for sale.
    frequency: i64,
    per_buyer_limit: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    voucher: Option<OfferDocument>,
    image: String,
    image_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sale_run: Option<String>,
    created_at: DateTime,
    updated_at: DateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<DateTime>,
}

impl TryFrom<ProductDocument> for Product {
    type Error = Error;

    fn try_from(document: ProductDocument) -> Result<Self> {
        let broken = |what: &str| unreadable("reading a product", format!("{what} of product {}", document.id));
        Ok(Self {
            id: ProductId::from_bytes(document.id.bytes()),
            seller: UserId::from_bytes(document.seller_id.bytes()),
            event: EventId::from_bytes(document.event_id.bytes()),
            title: document.title,
            description: document.description,
            price: Money {
                minor: document.price_minor,
                currency: money::currency(&document.currency).ok_or_else(|| broken("currency"))?,
            },
            units: u32::try_from(document.frequency).map_err(|_| broken("frequency"))?,
            per_buyer_limit: u32::try_from(document.per_buyer_limit).map_err(|_| broken("perBuyerLimit"))?,
            voucher: document.voucher.map(TryInto::try_into).transpose()?,
            image_url: document.image,
            image_key: document.image_key,
            created_at: document.created_at.to_chrono(),
            updated_at: document.updated_at.to_chrono(),
        })
    }
}

impl From<&Product> for ProductDocument {
    fn from(product: &Product) -> Self {
        Self {
            id: ObjectId::from_bytes(product.id.bytes()),
            seller_id: ObjectId::from_bytes(product.seller.bytes()),
            event_id: ObjectId::from_bytes(product.event.bytes()),
            title: product.title.clone(),
            description: product.description.clone(),
            price_minor: product.price.minor,
            currency: product.price.currency.code().to_owned(),
            frequency: product.units.into(),
            per_buyer_limit: product.per_buyer_limit.into(),
            voucher: product.voucher.as_ref().map(OfferDocument::from),
            image: product.image_url.clone(),
            image_key: product.image_key.clone(),
            sale_run: None,
            created_at: DateTime::from_chrono(product.created_at),
            updated_at: DateTime::from_chrono(product.updated_at),
            deleted_at: None,
        }
    }
}

/// What a seller changes about a product. `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct ProductChange {
    /// The title.
    pub title: Option<String>,
    /// The text.
    pub description: Option<String>,
    /// The price of one unit.
    pub price: Option<Money>,
    /// Units for sale.
    pub units: Option<u32>,
    /// Units that one buyer may reserve.
    pub per_buyer_limit: Option<u32>,
    /// The picture: its address and its key.
    pub image: Option<(String, String)>,
}

/// Which products an edit may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// Only those that no sale has taken.
    Spare,
    /// Any: the sale is over for good.
    Touch,
}

/// A stream of products from the database, in no order.
pub type ProductStream = Pin<Box<dyn Stream<Item = Result<Product>> + Send>>;

/// Products.
#[derive(Debug)]
pub struct Products {
    collection: Collection<ProductDocument>,
    deadline: Duration,
    long: Duration,
}

fn of_event(event: EventId) -> Document {
    doc! { "eventId": ObjectId::from_bytes(event.bytes()), "deletedAt": null }
}

fn one(event: EventId, id: ProductId, frozen: Frozen) -> Document {
    let mut filter = of_event(event);
    filter.insert("_id", ObjectId::from_bytes(id.bytes()));
    if frozen == Frozen::Spare {
        filter.insert("saleRun", bson::Bson::Null);
    }
    filter
}

impl Products {
    pub(super) fn new(database: &Database, deadline: Duration, long: Duration) -> Self {
        Self { collection: database.collection("inventories"), deadline, long }
    }

    /// Adds a product.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(&self, product: &Product) -> Result<()> {
        let call = self.collection.insert_one(ProductDocument::from(product));
        within(self.deadline, "adding a product", call).await.map(|_| ())
    }

    /// The product of this event with this id: a product is only ever found through its own event.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, event: EventId, id: ProductId) -> Result<Option<Product>> {
        let call = self.collection.find_one(one(event, id, Frozen::Touch));
        within(self.deadline, "reading a product", call).await?.map(Product::try_from).transpose()
    }

    /// An event's products, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_event(&self, event: EventId, page: Page) -> Result<Listed<Product>> {
        let (collection, deadline) = (&self.collection, self.deadline);
        let filter = of_event(event);
        let rows = query::page(collection, deadline, "listing products", filter, Order::OldestFirst, page).await?;
        let rows = rows.into_iter().map(Product::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// Changes a product and returns it as it was before; `None` if it does not exist, or is frozen and to be spared.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn update(
        &self,
        event: EventId,
        id: ProductId,
        change: &ProductChange,
        frozen: Frozen,
    ) -> Result<Option<Product>> {
        let mut set = doc! {};
        if let Some(title) = &change.title {
            set.insert("title", title);
        }
        if let Some(description) = &change.description {
            set.insert("description", description);
        }
        if let Some(price) = change.price {
            set.insert("priceMinor", price.minor);
            set.insert("currency", price.currency.code());
        }
        if let Some(units) = change.units {
            set.insert("frequency", i64::from(units));
        }
        if let Some(limit) = change.per_buyer_limit {
            set.insert("perBuyerLimit", i64::from(limit));
        }
        if let Some((url, key)) = &change.image {
            set.insert("image", url);
            set.insert("imageKey", key);
        }
        let change = doc! { "$set": set, "$currentDate": { "updatedAt": true } };
        self.find_and_update(one(event, id, frozen), change).await
    }

    /// Deletes a product and returns it; `None` if it does not exist, or is frozen and to be spared. The record stays,
    /// marked, since orders refer to it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn delete(&self, event: EventId, id: ProductId, frozen: Frozen) -> Result<Option<Product>> {
        let change = doc! { "$currentDate": { "deletedAt": true, "updatedAt": true } };
        self.find_and_update(one(event, id, frozen), change).await
    }

    async fn find_and_update(&self, filter: Document, change: Document) -> Result<Option<Product>> {
        let call = self.collection.find_one_and_update(filter, change).return_document(ReturnDocument::Before);
        within(self.deadline, "changing a product", call).await?.map(Product::try_from).transpose()
    }

    /// Deletes every product of a deleted event.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn delete_of_event(&self, event: EventId) -> Result<()> {
        let change = doc! { "$currentDate": { "deletedAt": true, "updatedAt": true } };
        let call = self.collection.update_many(of_event(event), change);
        within(self.long, "deleting an event's products", call).await.map(|_| ())
    }

    /// Stamps every product of the event with an opening's token, and returns how many carry it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn freeze(&self, event: EventId, run: &str) -> Result<u64> {
        let call = self.collection.update_many(of_event(event), doc! { "$set": { "saleRun": run } });
        Ok(within(self.long, "freezing a catalogue", call).await?.matched_count)
    }

    /// Takes the stamp of a failed opening away.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn thaw(&self, event: EventId, run: &str) -> Result<()> {
        let mut filter = of_event(event);
        filter.insert("saleRun", run);
        let call = self.collection.update_many(filter, doc! { "$unset": { "saleRun": "" } });
        within(self.long, "thawing a catalogue", call).await.map(|_| ())
    }

    /// Every product that carries this opening's stamp, a batch in memory at a time.
    ///
    /// # Errors
    /// When the database does not answer. A product that cannot be read is an error in the stream: a sale never opens
    /// without it.
    pub async fn frozen(&self, event: EventId, run: &str) -> Result<ProductStream> {
        let mut filter = of_event(event);
        filter.insert("saleRun", run);
        let call = self.collection.find(filter).batch_size(200);
        let cursor = within(self.deadline, "reading a catalogue", call).await?;
        let products = cursor.map(|row| match row {
            Ok(document) => Product::try_from(document),
            Err(error) => Err(fault("reading a catalogue", error)),
        });
        Ok(Box::pin(products))
    }

    /// How many units each product of an event was prepared with.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn prepared_units(&self, event: EventId) -> Result<HashMap<ProductId, u64>> {
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            id: ObjectId,
            frequency: i64,
        }
        let rows = self.collection.clone_with_type::<Row>();
        let call = async {
            let cursor = rows.find(of_event(event)).projection(doc! { "frequency": 1 }).await?;
            let units = |row: Row| (ProductId::from_bytes(row.id.bytes()), u64::try_from(row.frequency).unwrap_or(0));
            cursor.map_ok(units).try_collect().await
        };
        within(self.long, "reading units", call).await
    }

    /// The titles of these products, of those that were deleted as well.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn titles(&self, ids: &[ProductId]) -> Result<HashMap<ProductId, String>> {
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            id: ObjectId,
            title: String,
        }
        let ids: Vec<ObjectId> = ids.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect();
        let rows = self.collection.clone_with_type::<Row>();
        let call = async {
            let cursor = rows.find(doc! { "_id": { "$in": ids } }).projection(doc! { "title": 1 }).await?;
            cursor.map_ok(|row| (ProductId::from_bytes(row.id.bytes()), row.title)).try_collect().await
        };
        within(self.deadline, "reading titles", call).await
    }

    /// The image keys of an event's products.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn image_keys(&self, event: EventId) -> Result<Pin<Box<dyn Stream<Item = Result<String>> + Send>>> {
        let call = self.collection.find(doc! { "eventId": ObjectId::from_bytes(event.bytes()) });
        let cursor = within(self.deadline, "listing an event's images", call).await?;
        Ok(Box::pin(cursor.map(|row| {
            row.map(|document| document.image_key).map_err(|error| fault("listing an event's images", error))
        })))
    }

    /// Whether a living product shows this image.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn shows_image(&self, key: &str) -> Result<bool> {
        let call = self.collection.find_one(doc! { "imageKey": key, "deletedAt": null });
        Ok(within(self.deadline, "looking for an image", call).await?.is_some())
    }
}
