//! Collection `vendorConnections`: how vendors are reached, named by the vendor. The key to a vendor is sealed.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::super::error::{unreadable, within};
use crate::domain::ids::{UserId, VendorId};
use crate::domain::vendor::{Connection, Way};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionDocument {
    #[serde(rename = "_id")]
    vendor_id: ObjectId,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    enabled: bool,
    set_by: ObjectId,
    set_at: DateTime,
}

impl From<&Connection> for ConnectionDocument {
    fn from(connection: &Connection) -> Self {
        let (base_url, key) = match &connection.way {
            Way::Http { base_url, sealed_key } => (Some(base_url.clone()), Some(sealed_key.clone())),
            Way::Sandbox => (None, None),
        };
        Self {
            vendor_id: ObjectId::from_bytes(connection.vendor.bytes()),
            kind: connection.way.kind().to_owned(),
            base_url,
            key,
            enabled: connection.enabled,
            set_by: ObjectId::from_bytes(connection.set_by.bytes()),
            set_at: DateTime::from_chrono(connection.set_at),
        }
    }
}

impl TryFrom<ConnectionDocument> for Connection {
    type Error = Error;

    fn try_from(document: ConnectionDocument) -> Result<Self> {
        let way = match (document.kind.as_str(), document.base_url, document.key) {
            (Way::HTTP, Some(base_url), Some(sealed_key)) => Way::Http { base_url, sealed_key },
            (Way::SANDBOX, ..) => Way::Sandbox,
            _ => return Err(unreadable("reading a connection", format!("the way to vendor {}", document.vendor_id))),
        };
        Ok(Self {
            vendor: VendorId::from_bytes(document.vendor_id.bytes()),
            way,
            enabled: document.enabled,
            set_by: UserId::from_bytes(document.set_by.bytes()),
            set_at: document.set_at.to_chrono(),
        })
    }
}

/// Vendors' connections.
#[derive(Debug)]
pub struct VendorConnections {
    collection: Collection<ConnectionDocument>,
    deadline: Duration,
}

fn of_vendor(vendor: VendorId) -> Document {
    doc! { "_id": ObjectId::from_bytes(vendor.bytes()) }
}

impl VendorConnections {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("vendorConnections"), deadline }
    }

    /// Puts a connection in the place of the one that there was, if there was one.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn set(&self, connection: &Connection) -> Result<()> {
        let call = self.collection.replace_one(of_vendor(connection.vendor), ConnectionDocument::from(connection));
        within(self.deadline, "setting a connection", call.upsert(true)).await.map(|_| ())
    }

    /// Turns a connection to this address on or off, and leaves its key as it is; `None` if the vendor has none to it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn keep_key(
        &self,
        vendor: VendorId,
        base_url: &str,
        enabled: bool,
        by: (UserId, chrono::DateTime<chrono::Utc>),
    ) -> Result<Option<Connection>> {
        let mut which = of_vendor(vendor);
        which.extend(doc! { "kind": Way::HTTP, "baseUrl": base_url });
        let (set_by, set_at) = (ObjectId::from_bytes(by.0.bytes()), DateTime::from_chrono(by.1));
        let set = doc! { "$set": { "enabled": enabled, "setBy": set_by, "setAt": set_at } };
        let call = self.collection.find_one_and_update(which, set).return_document(ReturnDocument::After);
        within(self.deadline, "changing a connection", call).await?.map(Connection::try_from).transpose()
    }

    /// A vendor's connection.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_vendor(&self, vendor: VendorId) -> Result<Option<Connection>> {
        let call = self.collection.find_one(of_vendor(vendor));
        within(self.deadline, "reading a connection", call).await?.map(Connection::try_from).transpose()
    }

    /// Forgets a vendor's connection and its key; false if it has none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn remove(&self, vendor: VendorId) -> Result<bool> {
        let call = self.collection.delete_one(of_vendor(vendor));
        Ok(within(self.deadline, "removing a connection", call).await?.deleted_count == 1)
    }
}
