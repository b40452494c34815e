//! What the Redis server says of itself: a sale is only as safe as the server that decides it.

use std::collections::HashMap;

use redis::ErrorKind::{Extension, Server};
use redis::FromRedisValue;
use redis::ServerErrorKind::{NoPerm, ResponseError};

use super::Live;
use super::link::Link;
use crate::error::Result;

/// What decides whether a sale can be lost, and what an operator wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Redis or Valkey, with its version.
    pub version: String,
    /// The first number of the version.
    pub version_major: u32,
    /// Whether it takes writes; false for a replica of another server.
    pub primary: bool,
    /// Whether it is a node of a Redis Cluster.
    pub cluster: bool,
    /// `maxmemory`; 0 is no limit.
    pub memory_max_bytes: u64,
    /// Memory in use.
    pub memory_used_bytes: u64,
    /// `maxmemory-policy`; anything but `noeviction` may throw a live sale's keys away.
    pub eviction_policy: String,
    /// An append-only file is being written.
    pub append_only: bool,
    /// When that file is made safe on disk; `None` if the server does not let us ask, as hosted ones do not.
    pub append_fsync: Option<AppendFsync>,
    /// Replicas that receive every write.
    pub replicas_online: usize,
}

/// The server's policy for its append-only file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendFsync {
    /// `appendfsync`: `always`, `everysec` or `no`.
    pub policy: String,
    /// `no-appendfsync-on-rewrite`: the policy is suspended while the file is rewritten.
    pub off_during_rewrite: bool,
}

impl<L: Link> Live<L> {
    /// Asks the server. Nearly all of it is in INFO, which hosted servers allow where CONFIG is refused.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn server_facts(&self) -> Result<ServerFacts> {
        let info: String = self.query("asking the live store for its settings", &redis::cmd("INFO")).await?;
        let append_fsync = self.append_fsync().await?;
        Ok(read(&info, append_fsync))
    }

    async fn append_fsync(&self) -> Result<Option<AppendFsync>> {
        let mut call = redis::cmd("CONFIG");
        // A pattern, since naming two settings takes Redis 7.
        call.arg("GET").arg("*appendfsync*");
        let settings = self.unless_refused::<HashMap<String, String>>("asking for the fsync policy", &call).await?;
        let Some(mut settings) = settings else { return Ok(None) };
        let off_during_rewrite = settings.get("no-appendfsync-on-rewrite").is_some_and(|value| value == "yes");
        Ok(settings.remove("appendfsync").map(|policy| AppendFsync { policy, off_during_rewrite }))
    }

    /// Whether we may use `WAIT`; for no replica it does not wait.
    pub(super) async fn may_wait(&self) -> Result<bool> {
        let mut call = redis::cmd("WAIT");
        call.arg(0).arg(1);
        Ok(self.unless_refused::<u64>("trying to wait for replicas", &call).await?.is_some())
    }

    /// `None` if the server answers that it knows no such command, or that we may not use it.
    async fn unless_refused<T: FromRedisValue>(&self, doing: &'static str, call: &redis::Cmd) -> Result<Option<T>> {
        let call = async {
            match call.query_async(&mut self.wire().await?).await {
                Ok(value) => Ok(Some(value)),
                Err(error) if matches!(error.kind(), Server(ResponseError | NoPerm) | Extension) => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.within(doing, call).await
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
            .arg("")
            .arg("NEVER");
        self.invoke("probe", &call).await.map(|_| ())
    }
}

fn read(info: &str, append_fsync: Option<AppendFsync>) -> ServerFacts {
    let field = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
    };
    // Valkey says which Redis it is compatible with, too.
    let (product, version) = match field("valkey_version") {
        "" => ("Redis", field("redis_version")),
        version => ("Valkey", version),
    };
    let online = |line: &&str| {
        let replica = line.strip_prefix("slave").and_then(|rest| rest.split_once(':'));
        replica.is_some_and(|(number, facts)| {
            number.parse::<u32>().is_ok() && facts.split(',').any(|fact| fact == "state=online")
        })
    };
    ServerFacts {
        version: format!("{product} {version}"),
        version_major: version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default(),
        primary: field("role") == "master",
        cluster: field("cluster_enabled") == "1",
        memory_max_bytes: field("maxmemory").parse().unwrap_or_default(),
        memory_used_bytes: field("used_memory").parse().unwrap_or_default(),
        eviction_policy: field("maxmemory_policy").to_owned(),
        append_only: field("aof_enabled") == "1",
        append_fsync,
        replicas_online: info.lines().filter(online).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_what_the_server_says() {
        let info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n\
                    # Memory\r\nused_memory:1048576\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
                    # Persistence\r\naof_enabled:1\r\n\
                    # Replication\r\nrole:master\r\nconnected_slaves:3\r\n\
                    slave0:ip=10.0.0.1,port=6379,state=online,offset=14,lag=1,type=replica\r\n\
                    slave1:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0\r\n\
                    slave2:ip=10.0.0.3,port=6379,state=online,offset=14,lag=0\r\n\
                    slave_read_only:1\r\n# Cluster\r\ncluster_enabled:0\r\n";
        let facts = read(info, None);
        assert_eq!((facts.version.as_str(), facts.version_major), ("Valkey 8.1.0", 8));
        assert_eq!(facts.replicas_online, 2, "one is still copying");
        assert!(facts.primary && facts.append_only && !facts.cluster);
        assert_eq!((facts.memory_max_bytes, facts.memory_used_bytes), (0, 1_048_576));
        assert_eq!(facts.eviction_policy, "noeviction");

        let replica = read("redis_version:7.0.15\r\nrole:slave\r\naof_enabled:0\r\n", None);
        assert_eq!((replica.version.as_str(), replica.primary, replica.append_only), ("Redis 7.0.15", false, false));
    }
}
