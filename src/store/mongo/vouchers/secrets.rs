//! What voucher units are about, sealed.

use bson::{Document, doc};
use futures::TryStreamExt;
use mongodb::Cursor;
use serde::Deserialize;

use super::units::{SealedSecrets, Units, number};
use crate::domain::voucher::UnitId;
use crate::error::{Error, Result};
use crate::store::mongo::error::within;

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "_id")]
    id: i64,
    secrets: SealedSecrets,
}

async fn collect(cursor: Cursor<Row>) -> mongodb::error::Result<Vec<(UnitId, SealedSecrets)>> {
    cursor.map_ok(|row| (UnitId::new(u64::try_from(row.id).unwrap_or(0)), row.secrets)).try_collect().await
}

impl Units {
    /// The sealed secrets of these units.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn secrets(&self, ids: &[UnitId]) -> Result<Vec<(UnitId, SealedSecrets)>> {
        let ids: Vec<i64> = ids.iter().map(|id| number(*id)).collect();
        let rows = self.collection.clone_with_type::<Row>();
        let call = async { collect(rows.find(doc! { "_id": { "$in": ids } }).await?).await };
        within(self.deadline, "reading voucher units", call).await
    }

    /// A page of sealed secrets in the order of the units' numbers, for sealing them anew.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn secrets_page(&self, after: Option<UnitId>, limit: u32) -> Result<Vec<(UnitId, SealedSecrets)>> {
        let rows = self.collection.clone_with_type::<Row>();
        let find = rows.find(doc! { "_id": { "$gt": after.map_or(0, number) } }).sort(doc! { "_id": 1 });
        let call = async { collect(find.limit(limit.into()).await?).await };
        within(self.long, "reading voucher units", call).await
    }

    /// Writes a unit's secrets anew, if they are still what they were.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn reseal(&self, id: UnitId, from: &SealedSecrets, to: &SealedSecrets) -> Result<bool> {
        let encode = |secrets: &SealedSecrets| -> Result<Document> {
            bson::serialize_to_document(secrets).map_err(|error| Error::internal("sealing", error))
        };
        let filter = doc! { "_id": number(id), "secrets": encode(from)? };
        let call = self.collection.update_one(filter, doc! { "$set": { "secrets": encode(to)? } });
        Ok(within(self.deadline, "sealing voucher units anew", call).await?.matched_count == 1)
    }
}
