//! Records that are entered under a name: collections `vendors`, `clients` and `voucherProducts`. No two names of a
//! collection differ only in case, since spreadsheets name them.

use std::marker::PhantomData;
use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ClientId, UserId, VendorId, VoucherProductId};
use crate::domain::money;
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::voucher::{Client, Vendor, VoucherProduct};
use crate::error::{Error, Result};
use crate::store::mongo::error::{unless_duplicate, unreadable, within};
use crate::store::mongo::query::{self, Order};

/// A record and its document.
pub trait Named: Sized + Clone + Send + Sync {
    /// Everything but id, name and time.
    type Fields: Serialize + DeserializeOwned + Send + Sync + Unpin;
    /// The collection.
    const COLLECTION: &'static str;
    /// The name that it is entered under.
    fn name(&self) -> &str;
    /// Its id and when it was entered.
    fn stamp(&self) -> ([u8; 12], chrono::DateTime<chrono::Utc>);
    /// What is stored.
    fn fields(&self) -> Self::Fields;
    /// Reads it; `None` if a field cannot be what it should be.
    fn read(id: [u8; 12], name: String, at: chrono::DateTime<chrono::Utc>, fields: Self::Fields) -> Option<Self>;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedDocument<F> {
    #[serde(rename = "_id")]
    id: ObjectId,
    name: String,
    name_key: String,
    created_at: DateTime,
    #[serde(flatten)]
    fields: F,
}

/// A collection of them.
#[derive(Debug)]
pub struct NamedRecords<T: Named> {
    collection: Collection<NamedDocument<T::Fields>>,
    deadline: Duration,
    record: PhantomData<fn() -> T>,
}

/// What names are compared by.
#[must_use]
pub fn name_key(name: &str) -> String {
    name.trim().to_lowercase()
}

fn read<T: Named>(document: NamedDocument<T::Fields>) -> Result<T> {
    let id = document.id;
    T::read(id.bytes(), document.name, document.created_at.to_chrono(), document.fields)
        .ok_or_else(|| unreadable("reading a record", format!("{id} of {}", T::COLLECTION)))
}

impl<T: Named> NamedRecords<T> {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection(T::COLLECTION), deadline, record: PhantomData }
    }

    /// Enters a record; false if its name is taken.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn enter(&self, record: &T) -> Result<bool> {
        let (id, at) = record.stamp();
        let document = NamedDocument {
            id: ObjectId::from_bytes(id),
            name: record.name().to_owned(),
            name_key: name_key(record.name()),
            created_at: DateTime::from_chrono(at),
            fields: record.fields(),
        };
        unless_duplicate(self.deadline, "entering a record", self.collection.insert_one(document))
            .await
            .map(|inserted| inserted.is_some())
    }

    /// Changes everything but its name; `None` if there is none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn change(&self, record: &T) -> Result<Option<T>> {
        let fields: Document = bson::serialize_to_document(&record.fields())
            .map_err(|error| Error::internal("changing a record", error))?;
        let which = doc! { "_id": ObjectId::from_bytes(record.stamp().0) };
        let call =
            self.collection.find_one_and_update(which, doc! { "$set": fields }).return_document(ReturnDocument::After);
        within(self.deadline, "changing a record", call).await?.map(read).transpose()
    }

    /// The record with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: [u8; 12]) -> Result<Option<T>> {
        let call = self.collection.find_one(doc! { "_id": ObjectId::from_bytes(id) });
        within(self.deadline, "reading a record", call).await?.map(read).transpose()
    }

    async fn find(&self, filter: Document) -> Result<Vec<T>> {
        let call = async { self.collection.find(filter).await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "reading records", call).await?.into_iter().map(read).collect()
    }

    /// The records of these names, whatever their case.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_names(&self, names: &[&str]) -> Result<Vec<T>> {
        let keys: Vec<String> = names.iter().map(|name| name_key(name)).collect();
        self.find(doc! { "nameKey": { "$in": keys } }).await
    }

    /// All of them, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn list(&self, page: Page) -> Result<Listed<T>> {
        let rows = query::page(&self.collection, self.deadline, "listing records", doc! {}, Order::OldestFirst, page);
        let rows = rows.await?.into_iter().map(read).collect::<Result<Vec<T>>>()?;
        Ok(Listed::from_rows(rows, page, |row: &T| {
            let (id, at) = row.stamp();
            Cursor { created_at_ms: at.timestamp_millis(), id }
        }))
    }
}

impl NamedRecords<Client> {
    /// The client for which this account may order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_member(&self, member: UserId) -> Result<Option<Client>> {
        let filter = doc! { "members": ObjectId::from_bytes(member.bytes()) };
        let call = self.collection.find_one(filter).sort(doc! { "_id": 1 });
        within(self.deadline, "reading a client", call).await?.map(read).transpose()
    }
}

/// A vendor has nothing but its name.
#[derive(Debug, Serialize, Deserialize)]
pub struct NoFields {}

impl Named for Vendor {
    type Fields = NoFields;
    const COLLECTION: &'static str = "vendors";

    fn name(&self) -> &str {
        &self.name
    }

    fn stamp(&self) -> ([u8; 12], chrono::DateTime<chrono::Utc>) {
        (self.id.bytes(), self.created_at)
    }

    fn fields(&self) -> NoFields {
        NoFields {}
    }

    fn read(id: [u8; 12], name: String, created_at: chrono::DateTime<chrono::Utc>, _: NoFields) -> Option<Self> {
        Some(Self { id: VendorId::from_bytes(id), name, created_at })
    }
}

/// What is stored of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientFields {
    members: Vec<ObjectId>,
    refuses: Vec<ObjectId>,
    validity_days_min: Option<i64>,
}

impl Named for Client {
    type Fields = ClientFields;
    const COLLECTION: &'static str = "clients";

    fn name(&self) -> &str {
        &self.name
    }

    fn stamp(&self) -> ([u8; 12], chrono::DateTime<chrono::Utc>) {
        (self.id.bytes(), self.created_at)
    }

    fn fields(&self) -> ClientFields {
        ClientFields {
            members: self.members.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect(),
            refuses: self.refuses.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect(),
            validity_days_min: self.validity_days_min.map(i64::from),
        }
    }

    fn read(id: [u8; 12], name: String, at: chrono::DateTime<chrono::Utc>, fields: ClientFields) -> Option<Self> {
        Some(Self {
            id: ClientId::from_bytes(id),
            name,
            members: fields.members.iter().map(|id| UserId::from_bytes(id.bytes())).collect(),
            refuses: fields.refuses.iter().map(|id| VendorId::from_bytes(id.bytes())).collect(),
            validity_days_min: fields.validity_days_min.map(u32::try_from).transpose().ok()?,
            created_at: at,
        })
    }
}

/// What is stored of a product.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProductFields {
    currency: String,
    denominations: Vec<i64>,
    vendors: Vec<ObjectId>,
}

impl Named for VoucherProduct {
    type Fields = ProductFields;
    const COLLECTION: &'static str = "voucherProducts";

    fn name(&self) -> &str {
        &self.name
    }

    fn stamp(&self) -> ([u8; 12], chrono::DateTime<chrono::Utc>) {
        (self.id.bytes(), self.created_at)
    }

    fn fields(&self) -> ProductFields {
        ProductFields {
            currency: self.currency.code().to_owned(),
            denominations: self.denominations.clone(),
            vendors: self.vendors.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect(),
        }
    }

    fn read(id: [u8; 12], name: String, at: chrono::DateTime<chrono::Utc>, fields: ProductFields) -> Option<Self> {
        Some(Self {
            id: VoucherProductId::from_bytes(id),
            name,
            currency: money::currency(&fields.currency)?,
            denominations: fields.denominations,
            vendors: fields.vendors.iter().map(|id| VendorId::from_bytes(id.bytes())).collect(),
            created_at: at,
        })
    }
}
