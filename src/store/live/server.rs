//! What the Redis server itself promises: a sale is only as safe as the server that decides it.

use super::Live;
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

impl Live {
    /// Asks the server. Uses INFO, which hosted servers allow where CONFIG is refused.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn server_facts(&self) -> Result<ServerFacts> {
        let mut connection = self.connection();
        let call = async { redis::cmd("INFO").query_async::<String>(&mut connection).await };
        let info = self.within("asking the live store for its settings", call).await?;
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
        };
        Ok(ServerFacts {
            eviction_policy: field("maxmemory_policy").to_owned(),
            append_only: field("aof_enabled") == "1",
            version: field("redis_version").to_owned(),
        })
    }

    /// Runs a real script, as a purchase would: a server that answers PING but cannot decide is not ready.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn probe(&self) -> Result<()> {
        let nobody = crate::domain::ids::EventId::from_bytes([0; 12]);
        let mut call = self.scripts.transition.prepare_invoke();
        call.key(self.keys.status(nobody)).key(self.keys.opening(nobody)).arg("NOT_STARTED").arg("").arg("NEVER");
        self.invoke("probe", &call).await.map(|_| ())
    }
}
