//! What the Redis server itself promises: a sale is only as safe as the server that decides it.

use super::Live;
use super::link::Link;
use crate::error::Result;

/// The settings that decide whether a sale can be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// `maxmemory-policy`; anything but `noeviction` may throw a live sale's keys away.
    pub eviction_policy: String,
    /// An append-only file is being written.
    pub append_only: bool,
    /// The server's version.
    pub version: String,
}

impl<L: Link> Live<L> {
    /// Asks the server. Uses INFO, which hosted servers allow where CONFIG is refused.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn server_facts(&self) -> Result<ServerFacts> {
        let info: String = self.query("asking the live store for its settings", &redis::cmd("INFO")).await?;
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
        };
        Ok(ServerFacts {
            eviction_policy: field("maxmemory_policy").to_owned(),
            append_only: field("aof_enabled") == "1",
            version: field("redis_version").to_owned(),
        })
    }

    /// The server's clock, in milliseconds since 1970.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn now_ms(&self) -> Result<i64> {
        let (seconds, micros): (i64, i64) = self.query("asking for the time", &redis::cmd("TIME")).await?;
        Ok(seconds * 1_000 + micros / 1_000)
    }

    /// Runs a real script, as a purchase would: a server that answers PING but cannot decide is not ready.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn probe(&self) -> Result<()> {
        let nobody = crate::domain::ids::EventId::from_bytes([0; 12]);
        let mut call = self.scripts.transition.prepare_invoke();
        call.key(self.keys.status(nobody))
            .key(self.keys.opening(nobody))
            .key(self.keys.held(nobody))
            .arg("NOT_STARTED")
            .arg("")
            .arg("NEVER");
        self.invoke("probe", &call).await.map(|_| ())
    }
}
