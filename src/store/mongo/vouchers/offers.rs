//! Collection `inventories`, seen from the vouchers: products of sales whose units are codes.
//!
//! `codesKept` says that units are kept for a product, and by which opening; [`GOING_BACK`] says that they go back to the
//! client that they came from. Whoever changes the mark says which one they have seen, so an opening and the giving back of
//! an earlier one never work on one product together.

use std::time::Duration;

use bson::{Bson, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ClientId, EventId, ProductId, VendorId, VoucherProductId};
use crate::domain::money::{self, Money};
use crate::domain::product::VoucherOffer;
use crate::error::{Error, Result};
use crate::store::mongo::error::{unreadable, within};

/// The mark of units that go back.
pub const GOING_BACK: &str = "going back";

/// What a product's document says of its vouchers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::store::mongo) struct OfferDocument {
    product_id: ObjectId,
    denomination_minor: i64,
    currency: String,
    client_id: ObjectId,
    #[serde(default)]
    vendor_ids: Vec<ObjectId>,
}

impl TryFrom<OfferDocument> for VoucherOffer {
    type Error = Error;

    fn try_from(document: OfferDocument) -> Result<Self> {
        let currency = money::currency(&document.currency)
            .ok_or_else(|| unreadable("reading a product's vouchers", document.currency))?;
        Ok(Self {
            product: VoucherProductId::from_bytes(document.product_id.bytes()),
            denomination: Money { minor: document.denomination_minor, currency },
            client: ClientId::from_bytes(document.client_id.bytes()),
            vendors: document.vendor_ids.iter().map(|id| VendorId::from_bytes(id.bytes())).collect(),
        })
    }
}

impl From<&VoucherOffer> for OfferDocument {
    fn from(offer: &VoucherOffer) -> Self {
        Self {
            product_id: ObjectId::from_bytes(offer.product.bytes()),
            denomination_minor: offer.denomination.minor,
            currency: offer.denomination.currency.code().to_owned(),
            client_id: ObjectId::from_bytes(offer.client.bytes()),
            vendor_ids: offer.vendors.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferedDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    event_id: ObjectId,
    title: String,
    frequency: i64,
    voucher: OfferDocument,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    codes_kept: Option<String>,
}

/// A product of a sale whose units are codes.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The product.
    pub product: ProductId,
    /// Where it is sold.
    pub event: EventId,
    /// Its title.
    pub title: String,
    /// Units for sale, as it was prepared.
    pub units: u64,
    /// Which vouchers they are.
    pub offer: VoucherOffer,
    /// The opening that keeps units for it, or [`GOING_BACK`].
    pub mark: Option<String>,
}

impl Offered {
    /// Whether what is kept for it goes back.
    #[must_use]
    pub fn going_back(&self) -> bool {
        self.mark.as_deref() == Some(GOING_BACK)
    }
}

impl TryFrom<OfferedDocument> for Offered {
    type Error = Error;

    fn try_from(document: OfferedDocument) -> Result<Self> {
        Ok(Self {
            product: ProductId::from_bytes(document.id.bytes()),
            event: EventId::from_bytes(document.event_id.bytes()),
            title: document.title,
            units: u64::try_from(document.frequency).unwrap_or(0),
            offer: document.voucher.try_into()?,
            mark: document.codes_kept,
        })
    }
}

/// Products of sales whose units are codes.
#[derive(Debug)]
pub struct VoucherOffers {
    collection: Collection<OfferedDocument>,
    deadline: Duration,
    long: Duration,
}

fn by_id(product: ProductId) -> Document {
    doc! { "_id": ObjectId::from_bytes(product.bytes()) }
}

impl VoucherOffers {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration, long: Duration) -> Self {
        Self { collection: database.collection("inventories"), deadline, long }
    }

    async fn list(&self, filter: Document) -> Result<Vec<Offered>> {
        let call = async { self.collection.find(filter).sort(doc! { "_id": 1 }).await?.try_collect::<Vec<_>>().await };
        within(self.long, "listing vouchers on sale", call).await?.into_iter().map(Offered::try_from).collect()
    }

    /// Those of an event, of deleted products as well.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_event(&self, event: EventId) -> Result<Vec<Offered>> {
        let event = ObjectId::from_bytes(event.bytes());
        self.list(doc! { "eventId": event, "voucher.productId": { "$exists": true } }).await
    }

    /// Those that an opening has stamped.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn frozen(&self, event: EventId, run: &str) -> Result<Vec<Offered>> {
        let event = ObjectId::from_bytes(event.bytes());
        self.list(
            doc! { "eventId": event, "voucher.productId": { "$exists": true }, "deletedAt": null, "saleRun": run },
        )
        .await
    }

    /// One product; `None` if its units are no vouchers, or it does not exist.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_product(&self, product: ProductId) -> Result<Option<Offered>> {
        let mut filter = by_id(product);
        filter.insert("voucher", doc! { "$exists": true });
        let call = self.collection.find_one(filter);
        within(self.deadline, "reading vouchers on sale", call).await?.map(Offered::try_from).transpose()
    }

    /// Those for which units are kept.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn kept(&self) -> Result<Vec<Offered>> {
        self.list(doc! { "codesKept": { "$exists": true } }).await
    }

    /// Changes the mark, if it is the one that was seen; false if it is not.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn mark(&self, seen: &Offered, mark: Option<&str>) -> Result<bool> {
        let mut filter = by_id(seen.product);
        filter.insert("codesKept", seen.mark.as_deref().map_or(Bson::Null, Bson::from));
        let change = match mark {
            Some(mark) => doc! { "$set": { "codesKept": mark } },
            None => doc! { "$unset": { "codesKept": "" } },
        };
        let call = self.collection.update_one(filter, change);
        Ok(within(self.deadline, "marking vouchers on sale", call).await?.matched_count == 1)
    }
}
