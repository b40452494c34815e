//! What the MongoDB server says of itself.

use bson::{Bson, Document, doc};

use super::Mongo;
use super::error::within;
use crate::error::Result;

/// What an operator wants to know of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its version.
    pub version: String,
    /// The first number of the version.
    pub version_major: u32,
    /// The replica set that it belongs to.
    pub replica_set: Option<String>,
}

impl Mongo {
    /// Asks the server.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn server_facts(&self) -> Result<ServerFacts> {
        let build = self.ask("asking the database for its version", doc! { "buildInfo": 1 }).await?;
        let hello = self.ask("asking the database for its replica set", doc! { "hello": 1 }).await?;
        let version = build.get_str("version").unwrap_or("unknown").to_owned();
        Ok(ServerFacts {
            version_major: version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default(),
            version,
            replica_set: hello.get_str("setName").ok().map(ToOwned::to_owned),
        })
    }

    /// The server's time, in milliseconds since 1970; `None` if it does not tell.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn time_ms(&self) -> Result<Option<i64>> {
        let hello = self.ask("asking the database for the time", doc! { "hello": 1 }).await?;
        Ok(hello.get("localTime").and_then(Bson::as_datetime).map(|time| time.timestamp_millis()))
    }

    async fn ask(&self, doing: &'static str, command: Document) -> Result<Document> {
        within(self.deadline, doing, self.database.run_command(command)).await
    }
}
