//! Collection `voucherUnits`: the codes, sealed, and what has become of each.
//!
//! Every change counts the unit's revision up and marks it `unplaced`: the live store is to be told. Whoever has told it
//! takes the mark off, in the revision that was told. So a crash in between is found by the mark.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Bson, DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ClientId, VendorId, VoucherProductId};
use crate::domain::money::{self, Money};
use crate::domain::voucher::{Unit, UnitId, UnitStatus};
use crate::error::{Error, Result};
use crate::store::mongo::bulk::{self, Statements, Written};
use crate::store::mongo::error::{unreadable, within};

/// A unit's secrets, sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedSecrets {
    /// The code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The PIN that goes with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Where it is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_url: Option<String>,
    /// The issuer's reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voucher_reference: Option<String>,
}

/// A unit that comes in.
#[derive(Debug, Clone)]
pub struct NewUnit {
    /// The unit: AVAILABLE, in its first revision.
    pub unit: Unit,
    /// Its secrets.
    pub secrets: SealedSecrets,
    /// Keyed hash of the code, to find it by.
    pub code_hash: Option<String>,
    /// Keyed hash of all secrets together: the same code never comes in twice.
    pub checksum: String,
    /// What it came with: an import's row, or a purchase.
    pub origin: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnitDocument {
    #[serde(rename = "_id")]
    id: i64,
    product_id: ObjectId,
    denomination_minor: i64,
    currency: String,
    vendor_id: ObjectId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<ObjectId>,
    expires_at: DateTime,
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    revision: i64,
}

impl TryFrom<UnitDocument> for Unit {
    type Error = Error;

    fn try_from(document: UnitDocument) -> Result<Self> {
        let broken = |what: &str| unreadable("reading a voucher unit", format!("{what} of unit {}", document.id));
        Ok(Self {
            id: UnitId::new(u64::try_from(document.id).map_err(|_| broken("id"))?),
            product: VoucherProductId::from_bytes(document.product_id.bytes()),
            denomination: Money {
                minor: document.denomination_minor,
                currency: money::currency(&document.currency).ok_or_else(|| broken("currency"))?,
            },
            vendor: VendorId::from_bytes(document.vendor_id.bytes()),
            client: document.client_id.map(|id| ClientId::from_bytes(id.bytes())),
            expires_at: document.expires_at.to_chrono(),
            status: UnitStatus::parse(&document.status).ok_or_else(|| broken("status"))?,
            item: document.item,
            revision: u64::try_from(document.revision).map_err(|_| broken("revision"))?,
        })
    }
}

/// Which units an allocation, a tag or a placement is about.
#[derive(Debug, Clone)]
pub struct Which {
    /// Of what.
    pub product: VoucherProductId,
    /// Worth what.
    pub denomination: Money,
    /// Kept for this client; nobody: untagged ones.
    pub client: Option<ClientId>,
    /// Issued by one of these; nobody: by any.
    pub vendors: Option<Vec<VendorId>>,
    /// That do not expire before.
    pub expires_from: chrono::DateTime<chrono::Utc>,
}

/// An item that is to get a unit: only if the unit is as it was when it was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The unit.
    pub unit: UnitId,
    /// The order item.
    pub item: String,
    /// For whom it was kept.
    pub client: Option<ClientId>,
}

/// Voucher units.
#[derive(Debug)]
pub struct Units {
    database: Database,
    pub(super) collection: Collection<UnitDocument>,
    counters: Collection<Document>,
    pub(super) deadline: Duration,
    pub(super) long: Duration,
}

const COLLECTION: &str = "voucherUnits";
const COUNTER: &str = "voucherUnits";

pub(super) fn number(id: UnitId) -> i64 {
    i64::try_from(id.number()).unwrap_or(i64::MAX)
}

pub(super) fn object(bytes: [u8; 12]) -> ObjectId {
    ObjectId::from_bytes(bytes)
}

fn tag(client: Option<ClientId>) -> Bson {
    client.map_or(Bson::Null, |client| object(client.bytes()).into())
}

fn names(statuses: &[UnitStatus]) -> Vec<&'static str> {
    statuses.iter().map(|status| status.as_str()).collect()
}

/// A change: the revision counts up, and the live store is to be told.
fn changed(mut set: Document, unset: Document) -> Document {
    set.insert("unplaced", true);
    set.insert("updatedAt", DateTime::now());
    let mut change = doc! { "$set": set, "$inc": { "revision": 1_i64 } };
    if !unset.is_empty() {
        change.insert("$unset", unset);
    }
    change
}

impl Which {
    pub(super) fn filter(&self) -> Document {
        let mut filter = doc! {
            "productId": object(self.product.bytes()),
            "status": UnitStatus::Available.as_str(),
            "denominationMinor": self.denomination.minor,
            "clientId": tag(self.client),
            "expiresAt": { "$gte": DateTime::from_chrono(self.expires_from) },
        };
        if let Some(vendors) = &self.vendors {
            let vendors: Vec<ObjectId> = vendors.iter().map(|vendor| object(vendor.bytes())).collect();
            filter.insert("vendorId", doc! { "$in": vendors });
        }
        filter
    }
}

impl Units {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration, long: Duration) -> Self {
        Self {
            database: database.clone(),
            collection: database.collection(COLLECTION),
            counters: database.collection("counters"),
            deadline,
            long,
        }
    }

    /// Gives out `count` numbers that follow each other, and returns the first. Numbers that are not used are lost.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn take_numbers(&self, count: usize) -> Result<u64> {
        const DOING: &str = "numbering voucher units";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let mut after = None;
        // Two calls that both make the counter: one of them can come back empty, and finds it the second time.
        for _ in 0..2 {
            let call = self
                .counters
                .find_one_and_update(doc! { "_id": COUNTER }, doc! { "$inc": { "next": count } })
                .upsert(true)
                .return_document(ReturnDocument::After);
            after = within(self.deadline, DOING, call).await?;
            if after.is_some() {
                break;
            }
        }
        let next = after.and_then(|document| document.get_i64("next").ok());
        let next = next.ok_or_else(|| Error::internal(DOING, "the counter has no number"))?;
        u64::try_from(next - count + 1).map_err(|error| Error::internal(DOING, error))
    }

    /// Writes units, each on its own. Returns the positions of those whose checksum is there already.
    ///
    /// # Errors
    /// When the database does not confirm them all; writing the same units again is safe.
    pub async fn insert(&self, units: &[NewUnit]) -> Result<Vec<usize>> {
        if units.is_empty() {
            return Ok(Vec::new());
        }
        let documents: Vec<Document> = units.iter().map(new_document).collect::<Result<_>>()?;
        let written = self.write(self.long, "writing voucher units", Statements::Insert, documents).await?;
        let refused = written.refused.into_iter();
        refused
            .map(|one| {
                one.duplicate.then_some(one.index).ok_or_else(|| Error::internal("writing voucher units", one.reason))
            })
            .collect()
    }

    async fn write(
        &self,
        deadline: Duration,
        doing: &'static str,
        kind: Statements,
        statements: Vec<Document>,
    ) -> Result<Written> {
        bulk::write(&self.database, deadline, doing, COLLECTION, kind, statements).await
    }

    /// Gives units to items: each only if it is available, kept for the same as when it was claimed, and if the item has
    /// none. What came of it is to be read afterwards.
    ///
    /// # Errors
    /// When the database does not answer: then some may have been given. Giving again is safe.
    pub async fn assign(&self, assignments: &[Assignment]) -> Result<()> {
        const DOING: &str = "allocating voucher units";
        let one = |assignment: &Assignment| {
            let set = doc! { "status": UnitStatus::Allocated.as_str(), "item": &assignment.item };
            doc! {
                "q": {
                    "_id": number(assignment.unit),
                    "status": UnitStatus::Available.as_str(),
                    "clientId": tag(assignment.client),
                },
                "u": changed(set, doc! {}),
            }
        };
        let updates = assignments.iter().map(one).collect();
        let written = self.write(self.deadline, DOING, Statements::Update, updates).await?;
        // The item has a unit already: the index has seen to it.
        match written.refused.into_iter().find(|refused| !refused.duplicate) {
            Some(refused) => Err(Error::internal(DOING, refused.reason)),
            None => Ok(()),
        }
    }

    /// The units of these items, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_items(&self, items: &[String]) -> Result<Vec<Unit>> {
        self.list(doc! { "item": { "$in": items } }, None).await
    }

    /// These units, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_ids(&self, ids: &[UnitId]) -> Result<Vec<Unit>> {
        let ids: Vec<i64> = ids.iter().map(|id| number(*id)).collect();
        self.list(doc! { "_id": { "$in": ids } }, None).await
    }

    async fn list(&self, filter: Document, limit: Option<u32>) -> Result<Vec<Unit>> {
        let mut call = self.collection.find(filter);
        if let Some(limit) = limit {
            call = call.limit(limit.into());
        }
        let call = async { call.await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "listing voucher units", call).await?.into_iter().map(Unit::try_from).collect()
    }

    /// Takes the units of these items back: what nobody has seen is available again, and what was shown is revoked.
    /// Returns the units that it has changed, as they are now.
    ///
    /// # Errors
    /// When the database does not answer: some may have been taken back. Doing it again is safe.
    pub async fn release(&self, items: &[String]) -> Result<Vec<Unit>> {
        let held = self.of_items(items).await?;
        let (mut changes, mut ids) = (Vec::new(), Vec::new());
        for unit in &held {
            let (to, unset) = match unit.status {
                UnitStatus::Allocated => (UnitStatus::Available, doc! { "item": "" }),
                // The item keeps it: it stays known who has seen the code.
                UnitStatus::Delivered => (UnitStatus::Revoked, doc! {}),
                // Nobody has seen it. When it is unblocked it is nobody's.
                UnitStatus::Blocked => (UnitStatus::Blocked, doc! { "item": "" }),
                _ => continue,
            };
            changes.push(doc! {
                "q": { "_id": number(unit.id), "item": &unit.item, "status": unit.status.as_str() },
                "u": changed(doc! { "status": to.as_str() }, unset),
            });
            ids.push(unit.id);
        }
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let written = self.write(self.long, "releasing voucher units", Statements::Update, changes).await?;
        match written.refused.into_iter().next() {
            Some(refused) => Err(Error::internal("releasing voucher units", refused.reason)),
            None => self.by_ids(&ids).await,
        }
    }

    /// Keeps up to `quantity` untagged units for a client, those that expire first, or lets go of a client's, those that
    /// expire last. Returns those that it has changed, as they are now; fewer if there were not as many, or if others were
    /// quicker.
    ///
    /// # Errors
    /// When the database does not answer: some may have been changed.
    pub async fn retag(&self, which: &Which, to: Option<ClientId>, quantity: u32) -> Result<Vec<Unit>> {
        let direction = if to.is_some() { 1 } else { -1 };
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            id: i64,
        }
        let rows = self.collection.clone_with_type::<Row>();
        let find = rows
            .find(which.filter())
            .sort(doc! { "expiresAt": direction, "_id": direction })
            .limit(quantity.into())
            .projection(doc! { "_id": 1 });
        let call = async { find.await?.map_ok(|row| row.id).try_collect::<Vec<i64>>().await };
        let ids = within(self.deadline, "choosing voucher units", call).await?;
        let mut filter = which.filter();
        filter.insert("_id", doc! { "$in": &ids });
        let call = self.collection.update_many(filter, changed(doc! { "clientId": tag(to) }, doc! {}));
        within(self.long, "tagging voucher units", call).await?;
        let ids: Vec<UnitId> = ids.into_iter().filter_map(|id| u64::try_from(id).ok()).map(UnitId::new).collect();
        Ok(self.by_ids(&ids).await?.into_iter().filter(|unit| unit.client == to).collect())
    }

    /// Moves a unit to another status, from one that may become it. `None` if it is in no such status.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn advance(&self, id: UnitId, item: Option<&str>, to: UnitStatus) -> Result<Option<Unit>> {
        let mut filter = doc! { "_id": number(id), "status": { "$in": names(&to.sources()) } };
        filter.insert("item", item.map_or(Bson::Null, Bson::from));
        let change = changed(doc! { "status": to.as_str() }, doc! {});
        let call = self.collection.find_one_and_update(filter, change).return_document(ReturnDocument::After);
        within(self.deadline, "changing a voucher unit", call).await?.map(Unit::try_from).transpose()
    }

    /// Changes until when a unit can be used, if it has not been shown. `None` if there is none, or it was.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn expire_at(&self, id: UnitId, at: chrono::DateTime<chrono::Utc>) -> Result<Option<Unit>> {
        let unseen = [UnitStatus::Available, UnitStatus::Allocated, UnitStatus::Blocked];
        let filter = doc! { "_id": number(id), "status": { "$in": names(&unseen) } };
        let change = changed(doc! { "expiresAt": DateTime::from_chrono(at) }, doc! {});
        let call = self.collection.find_one_and_update(filter, change).return_document(ReturnDocument::After);
        within(self.deadline, "changing a voucher unit", call).await?.map(Unit::try_from).transpose()
    }

    /// Units of which the live store is to be told, in no order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unplaced(&self, limit: u32) -> Result<Vec<Unit>> {
        self.list(doc! { "unplaced": true }, Some(limit)).await
    }

    /// The live store knows these units in these revisions.
    ///
    /// # Errors
    /// When the database does not answer: they stay marked, and are placed again.
    pub async fn placed(&self, units: &[Unit]) -> Result<()> {
        // Most are in one revision, and one statement is for all of those.
        let mut by_revision: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
        for unit in units {
            by_revision.entry(unit.revision).or_default().push(number(unit.id));
        }
        for (revision, ids) in by_revision {
            let revision = i64::try_from(revision).unwrap_or(i64::MAX);
            let which = doc! { "_id": { "$in": ids }, "revision": revision };
            let call = self.collection.update_many(which, doc! { "$unset": { "unplaced": "" } });
            within(self.long, "marking voucher units", call).await?;
        }
        Ok(())
    }
}

/// A unit that waits for its import, as it is kept.
pub(super) fn staged_document(new: &NewUnit, import: ObjectId) -> Result<Document> {
    let mut document = new_document(new)?;
    document.insert("importId", import);
    Ok(document)
}

/// Reads [`staged_document`].
pub(super) fn staged_unit(document: Document) -> Result<NewUnit> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Staged {
        #[serde(flatten)]
        unit: UnitDocument,
        secrets: SealedSecrets,
        #[serde(default)]
        code_hash: Option<String>,
        checksum: String,
        origin: String,
    }
    let staged: Staged = bson::deserialize_from_document(document)
        .map_err(|error| unreadable("reading staged vouchers", error.to_string()))?;
    let Staged { unit, secrets, code_hash, checksum, origin } = staged;
    Ok(NewUnit { unit: unit.try_into()?, secrets, code_hash, checksum, origin })
}

fn new_document(new: &NewUnit) -> Result<Document> {
    let NewUnit { unit, secrets, code_hash, checksum, origin } = new;
    let mut document = doc! {
        "_id": number(unit.id),
        "productId": object(unit.product.bytes()),
        "denominationMinor": unit.denomination.minor,
        "currency": unit.denomination.currency.code(),
        "vendorId": object(unit.vendor.bytes()),
        "clientId": tag(unit.client),
        "expiresAt": DateTime::from_chrono(unit.expires_at),
        "status": unit.status.as_str(),
        "revision": i64::try_from(unit.revision).unwrap_or(i64::MAX),
        "secrets": bson::serialize_to_bson(secrets).map_err(|error| Error::internal("writing a unit", error))?,
        "checksum": checksum,
        "origin": origin,
        "unplaced": true,
        "createdAt": DateTime::now(),
    };
    if let Some(hash) = code_hash {
        document.insert("codeHash", hash);
    }
    Ok(document)
}
