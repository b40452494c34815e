//! What the configuration promises of an answered reservation, and whether the server keeps it.

use super::link::Link;
use super::{Live, ServerFacts};
use crate::config::{self, Durability};
use crate::error::Result;

/// The promise: `live.durability` and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// The level.
    pub level: Durability,
    /// Replicas that must have a reservation, at [`Durability::Replicas`].
    pub replicas_min: usize,
    /// How long they may take, in milliseconds.
    pub replicas_wait_ms: u64,
}

impl From<&config::Live> for Promise {
    fn from(config: &config::Live) -> Self {
        Self { level: config.durability, replicas_min: config.replicas_min, replicas_wait_ms: config.replicas_wait_ms }
    }
}

/// How a server falls short of what a sale needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// What was found.
    pub found: String,
    /// What to do.
    pub remedy: String,
}

impl Shortfall {
    fn new(found: impl Into<String>, remedy: impl Into<String>) -> Option<Self> {
        Some(Self { found: found.into(), remedy: remedy.into() })
    }
}

impl std::fmt::Display for Shortfall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.found, self.remedy)
    }
}

impl<L: Link> Live<L> {
    /// What is promised.
    #[must_use]
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// Why no sale may open on this server; `None` if one may. An operator can change the server while it runs, so this
    /// asks it.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn unsafe_for_sales(&self) -> Result<Option<Shortfall>> {
        let facts = self.server_facts().await?;
        match facts.eviction_risk() {
            Some(risk) => Ok(Some(risk)),
            None => self.broken_promise(&facts).await,
        }
    }

    /// Whether the server of these facts keeps the promise, and lets us do our part.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn broken_promise(&self, facts: &ServerFacts) -> Result<Option<Shortfall>> {
        let broken = facts.broken_promise(self.promise);
        if broken.is_none() && self.promise.level == Durability::Replicas && !self.may_wait().await? {
            let found = "live.durability is replicas, and the live store refuses WAIT";
            return Ok(Shortfall::new(found, "permit WAIT to Orbit's user, or choose another live.durability"));
        }
        Ok(broken)
    }
}

impl ServerFacts {
    /// Whether the server could throw a running sale's keys away.
    #[must_use]
    pub fn eviction_risk(&self) -> Option<Shortfall> {
        if self.eviction_policy == "noeviction" {
            return None;
        }
        let policy = &self.eviction_policy;
        let found = format!("the live store may evict a running sale (its maxmemory-policy is {policy})");
        Shortfall::new(found, "set its maxmemory-policy to noeviction")
    }

    /// Whether the server keeps the promise.
    #[must_use]
    pub fn broken_promise(&self, promise: Promise) -> Option<Shortfall> {
        match promise.level {
            Durability::None => None,
            Durability::Everysec | Durability::Always => self.broken_file(promise.level),
            Durability::Replicas => self.broken_file(promise.level).or_else(|| self.missing_replicas(promise)),
        }
    }

    fn broken_file(&self, level: Durability) -> Option<Shortfall> {
        let name = level.as_str();
        if !self.append_only {
            let found = format!("live.durability is {name}, and the live store has no append-only file");
            return Shortfall::new(found, "set its appendonly to yes, or live.durability to none");
        }
        let Some(fsync) = &self.append_fsync else {
            // Nobody tells, and everysec is what a server that writes the file does by default.
            return if level == Durability::Always { unknown_fsync() } else { None };
        };
        if fsync.off_during_rewrite {
            let found =
                format!("live.durability is {name}, and the live store suspends fsync while it rewrites its file");
            return Shortfall::new(found, "set its no-appendfsync-on-rewrite to no");
        }
        let enough: &[&str] = if level == Durability::Always { &["always"] } else { &["everysec", "always"] };
        if enough.contains(&fsync.policy.as_str()) {
            return None;
        }
        let found = format!("live.durability is {name}, and the live store's appendfsync is {}", fsync.policy);
        Shortfall::new(found, format!("set its appendfsync to {}", enough[0]))
    }

    fn missing_replicas(&self, promise: Promise) -> Option<Shortfall> {
        let (online, min) = (self.replicas_online, promise.replicas_min);
        if online >= min {
            return None;
        }
        let found = format!("live.replicas_min is {min}, and the live store has {online} replicas online");
        Shortfall::new(found, "attach replicas, or lower live.replicas_min, or choose another live.durability")
    }
}

fn unknown_fsync() -> Option<Shortfall> {
    Shortfall::new(
        "live.durability is always, and the live store does not tell its appendfsync (it refuses CONFIG GET)",
        "permit CONFIG GET to Orbit's user, or set live.durability to everysec or replicas",
    )
}

#[cfg(test)]
mod tests {
    use super::super::server::AppendFsync;
    use super::*;

    fn server(append_only: bool, fsync: Option<&str>, replicas_online: usize) -> ServerFacts {
        let append_fsync =
            fsync.map(|policy| AppendFsync { policy: policy.to_owned(), off_during_rewrite: policy == "suspended" });
        ServerFacts {
            version: "Redis 7.0.15".to_owned(),
            version_major: 7,
            primary: true,
            cluster: false,
            memory_max_bytes: 0,
            memory_used_bytes: 0,
            eviction_policy: "noeviction".to_owned(),
            append_only,
            append_fsync,
            replicas_online,
        }
    }

    #[test]
    fn each_level_is_kept_by_the_servers_that_keep_it() {
        let servers = [
            server(false, Some("everysec"), 0),
            server(true, Some("no"), 0),
            server(true, Some("suspended"), 2),
            server(true, None, 0),
            server(true, Some("everysec"), 0),
            server(true, Some("always"), 0),
            server(true, Some("everysec"), 1),
            server(true, Some("everysec"), 2),
        ];
        let kept = |level| {
            let promise = Promise { level, replicas_min: 2, replicas_wait_ms: 100 };
            servers.each_ref().map(|server| u8::from(server.broken_promise(promise).is_none()))
        };
        assert_eq!(kept(Durability::None), [1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(kept(Durability::Everysec), [0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(kept(Durability::Always), [0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(kept(Durability::Replicas), [0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
