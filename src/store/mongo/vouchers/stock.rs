//! Voucher units, counted and walked over.

use std::collections::HashSet;

use bson::{DateTime, doc, oid::ObjectId};
use futures::{StreamExt, TryStreamExt};
use mongodb::options::Hint;
use serde::Deserialize;

use super::units::{Units, Which, number, object};
use crate::domain::ids::{ClientId, VendorId, VoucherProductId};
use crate::domain::money::{self, Money};
use crate::domain::voucher::{Pool, Unit, UnitId, UnitStatus};
use crate::error::Result;
use crate::store::mongo::error::{fault, unreadable, within};

impl Units {
    /// Which of these checksums units have.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn known_checksums(&self, checksums: &[&str]) -> Result<HashSet<String>> {
        #[derive(Deserialize)]
        struct Row {
            checksum: String,
        }
        let rows = self.collection.clone_with_type::<Row>();
        let find = rows.find(doc! { "checksum": { "$in": checksums } }).projection(doc! { "checksum": 1 });
        let call = async { find.await?.map_ok(|row| row.checksum).try_collect().await };
        within(self.deadline, "looking for voucher units", call).await
    }

    /// How many units came with this import's row, or with this purchase.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count_of_origin(&self, origin: &str) -> Result<u32> {
        let call = self.collection.count_documents(doc! { "origin": origin });
        let count = within(self.deadline, "counting voucher units", call).await?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Units that can be had, soonest expiry first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn soonest(&self, which: &Which, limit: u32) -> Result<Vec<Unit>> {
        let find = self.collection.find(which.filter()).sort(doc! { "expiresAt": 1, "_id": 1 }).limit(limit.into());
        let call = async { find.await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "looking for voucher units", call).await?.into_iter().map(Unit::try_from).collect()
    }

    /// How many units are kept for somebody: those that can be had, and those that were had.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn kept(&self, which: &Which) -> Result<u64> {
        let mut had = which.filter();
        had.remove("expiresAt");
        let had_in = [UnitStatus::Allocated, UnitStatus::Delivered, UnitStatus::Completed].map(UnitStatus::as_str);
        had.insert("status", doc! { "$in": had_in.to_vec() });
        let had = within(self.long, "counting voucher units", self.collection.count_documents(had)).await?;
        Ok(self.count(which).await? + had)
    }

    /// How many units can be had.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count(&self, which: &Which) -> Result<u64> {
        within(self.long, "counting voucher units", self.collection.count_documents(which.filter())).await
    }

    /// How many units of a product can be had of each kind, in the order of their worth.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count_by_pool(
        &self,
        product: VoucherProductId,
        expires_from: chrono::DateTime<chrono::Utc>,
    ) -> Result<Vec<(Pool, u64)>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            minor: i64,
            currency: String,
            vendor: ObjectId,
            client: Option<ObjectId>,
        }
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "_id")]
            kind: Kind,
            units: i64,
        }
        let pipeline = vec![
            doc! { "$match": {
                "productId": object(product.bytes()),
                "status": UnitStatus::Available.as_str(),
                "expiresAt": { "$gte": DateTime::from_chrono(expires_from) },
            } },
            doc! { "$group": {
                "_id": {
                    "minor": "$denominationMinor", "currency": "$currency", "vendor": "$vendorId", "client": "$clientId",
                },
                "units": { "$sum": 1_i64 },
            } },
            doc! { "$sort": { "_id": 1 } },
        ];
        let call =
            async { self.collection.aggregate(pipeline).with_type::<Row>().await?.try_collect::<Vec<_>>().await };
        let rows = within(self.long, "counting voucher units", call).await?;
        let read = |Row { kind, units }: Row| {
            let unknown = || unreadable("counting voucher units", kind.currency.clone());
            let currency = money::currency(&kind.currency).ok_or_else(unknown)?;
            let pool = Pool {
                product,
                denomination: Money { minor: kind.minor, currency },
                vendor: VendorId::from_bytes(kind.vendor.bytes()),
                client: kind.client.map(|id| ClientId::from_bytes(id.bytes())),
            };
            Ok((pool, u64::try_from(units).unwrap_or(0)))
        };
        rows.into_iter().map(read).collect()
    }

    /// A page of a product's units, in the order of their numbers, after the one that the page before ended with.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn page(&self, product: VoucherProductId, after: Option<UnitId>, limit: u32) -> Result<Vec<Unit>> {
        let filter = doc! {
            "_id": { "$gt": after.map_or(0, number) },
            "productId": object(product.bytes()),
            "status": UnitStatus::Available.as_str(),
        };
        let find = self.collection.find(filter).sort(doc! { "_id": 1 }).limit(limit.into());
        let find = find.hint(Hint::Keys(doc! { "_id": 1 }));
        let call = async { find.await?.try_collect::<Vec<_>>().await };
        within(self.long, "walking over voucher units", call).await?.into_iter().map(Unit::try_from).collect()
    }

    /// Every unit that an item has, streamed: for checking.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn allocated(&self) -> Result<impl futures::Stream<Item = Result<Unit>> + Send> {
        let call = self.collection.find(doc! { "item": { "$exists": true } }).batch_size(500);
        let cursor = within(self.deadline, "reading allocated voucher units", call).await?;
        Ok(cursor.map(|row| match row {
            Ok(document) => Unit::try_from(document),
            Err(error) => Err(fault("reading allocated voucher units", error)),
        }))
    }
}
