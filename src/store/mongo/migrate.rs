//! Migrations: JSON files of database commands, applied once, in order, by one process at a time.
//!
//! A ledger (collection `migrations`) records each with the checksum of its file; a file that was changed after it was
//! applied stops the start. A lock with an end makes other processes wait.

use std::time::Duration;

use bson::{DateTime, Document, doc};
use futures::TryStreamExt;
use mongodb::Collection;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::Mongo;
use super::error::within;
use super::indexes::DeclaredIndex;
use crate::error::{Dependency, Error, Result};

/// Every migration, in order.
const FILES: [&str; 10] = [
    include_str!("../../../migrations/0001_initial.json"),
    include_str!("../../../migrations/0002_recovery.json"),
    include_str!("../../../migrations/0003_reservations.json"),
    include_str!("../../../migrations/0004_payments.json"),
    include_str!("../../../migrations/0005_webhooks.json"),
    include_str!("../../../migrations/0006_payments_of_event.json"),
    include_str!("../../../migrations/0007_vouchers.json"),
    include_str!("../../../migrations/0008_prefetch.json"),
    include_str!("../../../migrations/0009_vendor_connections.json"),
    include_str!("../../../migrations/0010_vouchers_on_sale.json"),
];
const LOCK: &str = "migrations";
const LOCK_TTL: Duration = Duration::from_secs(60);
const LOCK_POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Migration {
    id: String,
    #[expect(dead_code, reason = "for people")]
    about: String,
    // Documents, which keep the order of their fields, as it stands in the file: an index is its fields in that order.
    apply: Vec<Document>,
    revert: Vec<Document>,
}

/// One line of `orbit migrate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// The file's id.
    pub id: String,
    /// Whether it is in the ledger.
    pub applied: bool,
    /// Whether its file was changed after it was applied.
    pub changed: bool,
}

impl Mongo {
    /// Applies what is missing, and returns the ids of what it applied.
    ///
    /// # Errors
    /// When the database does not answer, a command fails, or an applied file was changed.
    pub async fn migrate(&self) -> Result<Vec<String>> {
        let holder = uuid::Uuid::new_v4().to_string();
        self.lock_migrations(&holder).await?;
        let outcome = self.apply_missing().await;
        self.leases.give_up(LOCK, &holder).await?;
        outcome
    }

    /// What is applied and what is not.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn migrations(&self) -> Result<Vec<MigrationState>> {
        let ledger = self.ledger().await?;
        let states = parsed()?.into_iter().map(|(migration, checksum)| {
            let row = ledger.iter().find(|row| text(row, "_id") == Some(&migration.id));
            let changed = row.is_some_and(|row| text(row, "checksum") != Some(&checksum));
            MigrationState { id: migration.id, applied: row.is_some(), changed }
        });
        Ok(states.collect())
    }

    /// Ids in the ledger that this version does not have: a newer one has migrated the database.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn newer_migrations(&self) -> Result<Vec<String>> {
        let known = parsed()?;
        let ledger = self.ledger().await?;
        let ids = ledger.iter().filter_map(|row| text(row, "_id"));
        let unknown = ids.filter(|id| known.iter().all(|(migration, _)| migration.id != *id));
        Ok(unknown.map(ToOwned::to_owned).collect())
    }

    /// Takes the newest applied migration back, and returns its id.
    ///
    /// # Errors
    /// When the database does not answer or a command fails.
    pub async fn revert_newest(&self) -> Result<Option<String>> {
        let ledger = self.ledger().await?;
        for (migration, _) in parsed()?.into_iter().rev() {
            if ledger.iter().any(|row| text(row, "_id") == Some(&migration.id)) {
                self.run_all(&migration.id, &migration.revert).await?;
                let rows = self.ledger_rows();
                let strike = rows.delete_one(doc! { "_id": &migration.id });
                within(self.deadline, "striking a migration", strike).await?;
                return Ok(Some(migration.id));
            }
        }
        Ok(None)
    }

    async fn apply_missing(&self) -> Result<Vec<String>> {
        let ledger = self.ledger().await?;
        let mut applied = Vec::new();
        for (migration, checksum) in parsed()? {
            match ledger.iter().find(|row| text(row, "_id") == Some(&migration.id)) {
                Some(row) if text(row, "checksum") == Some(&checksum) => {}
                Some(_) => {
                    let what = format!("migration {} was changed after it was applied; add a new one", migration.id);
                    return Err(Error::internal("checking migrations", what));
                }
                None => {
                    self.run_all(&migration.id, &migration.apply).await?;
                    let row = doc! { "_id": &migration.id, "checksum": checksum, "appliedAt": DateTime::now() };
                    let rows = self.ledger_rows();
                    let insert = rows.insert_one(row);
                    within(self.deadline, "recording a migration", insert).await?;
                    applied.push(migration.id);
                }
            }
        }
        Ok(applied)
    }

    /// Commands are idempotent (creating what exists is no error), so that a migration cut short can run again.
    async fn run_all(&self, id: &str, commands: &[Document]) -> Result<()> {
        const EXISTS: i32 = 48;
        const NOT_FOUND: [i32; 2] = [26, 27];
        for command in commands {
            let call = self.database.run_command(command.clone());
            match tokio::time::timeout(Duration::from_secs(60), call.into_future()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => match error.kind.as_ref() {
                    mongodb::error::ErrorKind::Command(refused)
                        if refused.code == EXISTS || NOT_FOUND.contains(&refused.code) => {}
                    _ => return Err(Error::internal("applying a migration", format!("{id}: {command}: {error}"))),
                },
                Err(_) => return Err(Error::timed_out(Dependency::Database, "applying a migration")),
            }
        }
        Ok(())
    }

    async fn ledger(&self) -> Result<Vec<Document>> {
        let ledger = self.ledger_rows();
        within(self.deadline, "reading the ledger", async { ledger.find(doc! {}).await?.try_collect().await }).await
    }

    fn ledger_rows(&self) -> Collection<Document> {
        self.database.collection("migrations")
    }

    /// Waits for the lock at most as long as its holder may keep it.
    async fn lock_migrations(&self, holder: &str) -> Result<()> {
        let started = tokio::time::Instant::now();
        while !self.leases.take(LOCK, holder, DateTime::now().to_chrono(), LOCK_TTL).await? {
            if started.elapsed() > LOCK_TTL * 2 {
                return Err(Error::timed_out(Dependency::Database, "waiting for the migration lock"));
            }
            tokio::time::sleep(LOCK_POLL).await;
        }
        Ok(())
    }
}

fn text<'a>(row: &'a Document, name: &str) -> Option<&'a str> {
    row.get_str(name).ok()
}

/// The indexes that these migrations leave behind.
pub(super) fn declared_indexes(applied: &[String]) -> Result<Vec<DeclaredIndex>> {
    let mut declared = Vec::new();
    for (migration, _) in parsed()?.into_iter().filter(|(migration, _)| applied.contains(&migration.id)) {
        for command in &migration.apply {
            if let (Ok(collection), Ok(specs)) = (command.get_str("createIndexes"), command.get_array("indexes")) {
                let specs = specs.iter().filter_map(bson::Bson::as_document).cloned();
                declared.extend(specs.map(|spec| DeclaredIndex { collection: collection.to_owned(), spec }));
            } else if let (Ok(collection), Ok(name)) = (command.get_str("dropIndexes"), command.get_str("index")) {
                declared.retain(|index| index.collection != collection || index.name() != name);
            } else if let Ok(collection) = command.get_str("drop") {
                declared.retain(|index| index.collection != collection);
            }
        }
    }
    Ok(declared)
}

fn parsed() -> Result<Vec<(Migration, String)>> {
    FILES
        .iter()
        .map(|text| {
            let migration =
                serde_json::from_str(text).map_err(|error| Error::internal("reading a migration", error))?;
            let checksum = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            Ok((migration, checksum))
        })
        .collect()
}
