//! Many statements in one command, each on its own: one that is refused does not hold up the others.
//!
//! The commands are understood by every MongoDB version; the driver's own bulk write needs MongoDB 8.

use std::time::Duration;

use bson::{Document, doc};
use mongodb::Database;
use serde::Deserialize;

use super::error::{DUPLICATE_KEY, within};
use crate::error::{Dependency, Error, Result};

/// What is done to a collection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Statements {
    /// Documents to insert.
    Insert,
    /// Updates, each with its `q` and `u`.
    Update,
}

/// What became of the statements.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Statements that matched or inserted a document.
    pub count: usize,
    /// The others that the server has complained of.
    pub refused: Vec<Refused>,
}

/// A statement that was refused.
#[derive(Debug)]
pub(super) struct Refused {
    /// Its position.
    pub index: usize,
    /// Whether a unique index has it already.
    pub duplicate: bool,
    /// Why.
    pub reason: String,
}

#[derive(Deserialize)]
struct Reply {
    n: i64,
    #[serde(rename = "writeErrors", default)]
    errors: Vec<ReplyError>,
    #[serde(rename = "writeConcernError")]
    concern: Option<Document>,
}

#[derive(Deserialize)]
struct ReplyError {
    index: i64,
    code: i64,
    #[serde(default)]
    errmsg: String,
}

/// Runs statements on a collection, acknowledged by a majority and journalled.
///
/// # Errors
/// When the database does not confirm them as a whole; then nothing is known of any of them.
pub(super) async fn write(
    database: &Database,
    deadline: Duration,
    doing: &'static str,
    collection: &str,
    kind: Statements,
    statements: Vec<Document>,
) -> Result<Written> {
    if statements.is_empty() {
        return Ok(Written::default());
    }
    let (command, field) = match kind {
        Statements::Insert => ("insert", "documents"),
        Statements::Update => ("update", "updates"),
    };
    let command = doc! {
        command: collection,
        field: statements,
        "ordered": false,
        "writeConcern": { "w": "majority", "j": true },
    };
    let reply = within(deadline, doing, database.run_command(command)).await?;
    let reply: Reply = bson::deserialize_from_document(reply).map_err(|error| Error::internal(doing, error))?;
    if let Some(concern) = reply.concern {
        return Err(Error::unavailable(Dependency::Database, doing, concern.to_string()));
    }
    let refused = |error: ReplyError| Refused {
        index: usize::try_from(error.index).unwrap_or(usize::MAX),
        duplicate: error.code == i64::from(DUPLICATE_KEY),
        reason: error.errmsg,
    };
    Ok(Written {
        count: usize::try_from(reply.n).unwrap_or(0),
        refused: reply.errors.into_iter().map(refused).collect(),
    })
}
