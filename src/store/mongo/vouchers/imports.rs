//! Collections `voucherImports`; `voucherImportRows`: units that wait for the decision whether they come in; and
//! `voucherImportErrors`: what is wrong with rows.
//!
//! An import that is at work says so again and again (`aliveUntil`). One that does not is another process' to finish.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::units::{NewUnit, number, staged_document, staged_unit};
use crate::domain::ids::ImportId;
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::voucher::UnitId;
use crate::domain::voucher_import::{ImportCounts, ImportProblem, ImportState, VoucherImport};
use crate::error::{Error, Result};
use crate::store::mongo::error::{unreadable, within};
use crate::store::mongo::query::{self, Order};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImportDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    file_name: String,
    all_or_nothing: bool,
    state: String,
    rows: i64,
    valid: i64,
    invalid: i64,
    added: i64,
    #[serde(default)]
    reason: Option<String>,
    created_at: DateTime,
}

impl TryFrom<ImportDocument> for VoucherImport {
    type Error = Error;

    fn try_from(document: ImportDocument) -> Result<Self> {
        let broken = || unreadable("reading an import", document.id.to_string());
        let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Self {
            id: ImportId::from_bytes(document.id.bytes()),
            state: ImportState::parse(&document.state).ok_or_else(broken)?,
            file_name: document.file_name,
            all_or_nothing: document.all_or_nothing,
            counts: ImportCounts {
                rows: count(document.rows),
                valid: count(document.valid),
                invalid: count(document.invalid),
                added: count(document.added),
            },
            reason: document.reason,
            created_at: document.created_at.to_chrono(),
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProblemDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    import_id: ObjectId,
    row: i64,
    column: String,
    reason: String,
}

/// Imports.
#[derive(Debug)]
pub struct VoucherImports {
    collection: Collection<ImportDocument>,
    rows: Collection<Document>,
    problems: Collection<ProblemDocument>,
    deadline: Duration,
    long: Duration,
}

fn object(id: ImportId) -> ObjectId {
    ObjectId::from_bytes(id.bytes())
}

fn counted(counts: ImportCounts) -> Document {
    let ImportCounts { rows, valid, invalid, added } = counts;
    doc! { "rows": i64::from(rows), "valid": i64::from(valid), "invalid": i64::from(invalid), "added": i64::from(added) }
}

impl VoucherImports {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration, long: Duration) -> Self {
        Self {
            collection: database.collection("voucherImports"),
            rows: database.collection("voucherImportRows"),
            problems: database.collection("voucherImportErrors"),
            deadline,
            long,
        }
    }

    /// Begins an import that says again before `alive_until` that it is at work.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn begin(&self, import: &VoucherImport, alive_until: chrono::DateTime<chrono::Utc>) -> Result<()> {
        let mut document = doc! {
            "_id": object(import.id),
            "fileName": &import.file_name,
            "allOrNothing": import.all_or_nothing,
            "state": import.state.as_str(),
            "createdAt": DateTime::from_chrono(import.created_at),
            "aliveUntil": DateTime::from_chrono(alive_until),
        };
        document.extend(counted(import.counts));
        let call = self.collection.clone_with_type::<Document>();
        within(self.deadline, "beginning an import", call.insert_one(document)).await.map(|_| ())
    }

    /// Says how far an import has come, and that it is at work; false if it is in another state meanwhile.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn beat(
        &self,
        id: ImportId,
        state: ImportState,
        counts: ImportCounts,
        alive_until: chrono::DateTime<chrono::Utc>,
    ) -> Result<bool> {
        let mut set = counted(counts);
        set.insert("aliveUntil", DateTime::from_chrono(alive_until));
        let which = doc! { "_id": object(id), "state": state.as_str() };
        let call = self.collection.update_one(which, doc! { "$set": set });
        Ok(within(self.deadline, "going on with an import", call).await?.matched_count == 1)
    }

    /// Moves an import on; false if it is in another state.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn advance(
        &self,
        id: ImportId,
        from: ImportState,
        to: ImportState,
        counts: ImportCounts,
        reason: Option<&str>,
    ) -> Result<bool> {
        let mut set = counted(counts);
        set.insert("state", to.as_str());
        set.insert("reason", reason);
        let call = self.collection.update_one(doc! { "_id": object(id), "state": from.as_str() }, doc! { "$set": set });
        Ok(within(self.deadline, "going on with an import", call).await?.matched_count == 1)
    }

    /// Takes over an import that nobody works on, until `alive_until`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn take_over(
        &self,
        now: chrono::DateTime<chrono::Utc>,
        alive_until: chrono::DateTime<chrono::Utc>,
    ) -> Result<Option<VoucherImport>> {
        let which = doc! {
            "state": { "$in": [ImportState::Reading.as_str(), ImportState::Committing.as_str()] },
            "aliveUntil": { "$lt": DateTime::from_chrono(now) },
        };
        let change = doc! { "$set": { "aliveUntil": DateTime::from_chrono(alive_until) } };
        let call = self.collection.find_one_and_update(which, change).return_document(ReturnDocument::After);
        within(self.deadline, "taking over an import", call).await?.map(VoucherImport::try_from).transpose()
    }

    /// The import with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: ImportId) -> Result<Option<VoucherImport>> {
        let call = self.collection.find_one(doc! { "_id": object(id) });
        within(self.deadline, "reading an import", call).await?.map(VoucherImport::try_from).transpose()
    }

    /// Imports, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn list(&self, page: Page) -> Result<Listed<VoucherImport>> {
        let rows =
            query::page(&self.collection, self.deadline, "listing imports", doc! {}, Order::NewestFirst, page).await?;
        let rows = rows.into_iter().map(VoucherImport::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// Keeps units until it is decided whether they come in.
    ///
    /// # Errors
    /// When the database does not answer: the import is to be given up.
    pub async fn stage(&self, import: ImportId, units: &[NewUnit]) -> Result<()> {
        if units.is_empty() {
            return Ok(());
        }
        let staged = |unit: &NewUnit| staged_document(unit, object(import));
        let rows: Vec<Document> = units.iter().map(staged).collect::<Result<_>>()?;
        within(self.long, "staging vouchers", self.rows.insert_many(rows)).await.map(|_| ())
    }

    /// Some units that are staged, in the order of their rows.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn staged(&self, import: ImportId, limit: u32) -> Result<Vec<NewUnit>> {
        let find = self.rows.find(doc! { "importId": object(import) }).sort(doc! { "_id": 1 }).limit(limit.into());
        let call = async { find.await?.try_collect::<Vec<_>>().await };
        within(self.deadline, "reading staged vouchers", call).await?.into_iter().map(staged_unit).collect()
    }

    /// These units are no longer staged.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unstage(&self, units: &[UnitId]) -> Result<()> {
        let ids: Vec<i64> = units.iter().map(|id| number(*id)).collect();
        let call = self.rows.delete_many(doc! { "_id": { "$in": ids } });
        within(self.long, "unstaging vouchers", call).await.map(|_| ())
    }

    /// None of its units is staged any more.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unstage_all(&self, import: ImportId) -> Result<()> {
        let call = self.rows.delete_many(doc! { "importId": object(import) });
        within(self.long, "unstaging vouchers", call).await.map(|_| ())
    }

    /// Records what is wrong with rows.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record(&self, import: ImportId, problems: &[ImportProblem]) -> Result<()> {
        if problems.is_empty() {
            return Ok(());
        }
        let document = |problem: &ImportProblem| ProblemDocument {
            id: ObjectId::new(),
            import_id: object(import),
            row: problem.row.into(),
            column: problem.column.clone(),
            reason: problem.reason.clone(),
        };
        let call = self.problems.insert_many(problems.iter().map(document).collect::<Vec<_>>());
        within(self.long, "recording an import's problems", call).await.map(|_| ())
    }

    /// Some of what is wrong, by row, behind the one that the page before ended with.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn problems(
        &self,
        import: ImportId,
        after: Option<(u32, [u8; 12])>,
        limit: u32,
    ) -> Result<Vec<([u8; 12], ImportProblem)>> {
        let mut filter = doc! { "importId": object(import) };
        if let Some((row, id)) = after {
            let beyond =
                vec![doc! { "row": { "$gt": i64::from(row) } }, doc! { "_id": { "$gt": ObjectId::from_bytes(id) } }];
            filter.insert("row", doc! { "$gte": i64::from(row) });
            filter.insert("$or", beyond);
        }
        let find = self.problems.find(filter).sort(doc! { "row": 1, "_id": 1 }).limit(limit.into());
        let call = async { find.await?.try_collect::<Vec<_>>().await };
        let rows = within(self.deadline, "reading an import's problems", call).await?;
        let problem = |row: ProblemDocument| {
            let number = u32::try_from(row.row).unwrap_or(u32::MAX);
            (row.id.bytes(), ImportProblem { row: number, column: row.column, reason: row.reason })
        };
        Ok(rows.into_iter().map(problem).collect())
    }
}
