//! Redis, which decides the sale.

use super::{Finding, clocks, within};
use crate::config::{self, Durability};
use crate::domain::clock::Clock;
use crate::error::{Dependency, Result};
use crate::store::live::{Live, ServerFacts, Shortfall};

const REDIS_MAJOR_MIN: u32 = 7;
const MIB: u64 = 1024 * 1024;

pub(super) async fn examine(config: &config::Live, clock: &dyn Clock) -> Vec<Finding> {
    const CHECK: &str = "redis";
    let address = config::address(&config.url);
    let away = |error: crate::error::Error| {
        let found = format!("{address}: {}", error.chain());
        vec![Finding::fail(CHECK, found, "start Redis or correct live.url; what rests on it was not looked at")]
    };
    let dependency = Dependency::LiveStore;
    let live = match within(dependency, "connecting", Live::connect(config)).await {
        Ok(live) => live,
        Err(error) => return away(error),
    };
    let facts = match within(dependency, "asking for the settings", live.server_facts()).await {
        Ok(facts) => facts,
        Err(error) => return away(error),
    };
    let broken = within(dependency, "looking at the durability", live.broken_promise(&facts)).await;
    let scripts = within(dependency, "running a script", live.probe()).await;
    let time = within(dependency, "asking for the time", async { live.now_ms().await.map(Some) });
    let mut findings = vec![
        Finding::ok(CHECK, format!("{address} answers")),
        version(&facts),
        role(&facts),
        durability(broken, live.promise().level),
        memory(&facts),
        script(scripts),
    ];
    findings.extend(clocks::compare("redis clock", clock, time).await);
    findings
}

fn version(facts: &ServerFacts) -> Finding {
    const CHECK: &str = "redis version";
    if facts.version_major < REDIS_MAJOR_MIN {
        return Finding::warn(
            CHECK,
            &facts.version,
            "upgrade to Redis 7 or newer, or Valkey: older ones were never tried",
        );
    }
    Finding::ok(CHECK, &facts.version)
}

fn role(facts: &ServerFacts) -> Finding {
    const CHECK: &str = "redis role";
    if facts.cluster {
        return Finding::fail(CHECK, "a node of a Redis Cluster", "point live.url to a server without cluster-enabled");
    }
    if !facts.primary {
        return Finding::fail(CHECK, "a replica, which takes no writes", "point live.url to its primary");
    }
    Finding::ok(CHECK, format!("it takes writes; {} replicas are online", facts.replicas_online))
}

fn durability(broken: Result<Option<Shortfall>>, level: Durability) -> Finding {
    const CHECK: &str = "durability";
    let found = format!("{}: {}", level.as_str(), level.at_risk());
    match broken {
        Ok(Some(shortfall)) => Finding::fail(CHECK, shortfall.found, shortfall.remedy),
        Ok(None) if level == Durability::None => {
            Finding::warn(CHECK, found, "for sales that matter set live.durability to everysec, always or replicas")
        }
        Ok(None) => Finding::ok(CHECK, found),
        Err(error) => Finding::fail(CHECK, error.chain(), "see that the server answers"),
    }
}

/// A server that is nearly full refuses reservations soon; one that evicts breaks sales.
fn memory(facts: &ServerFacts) -> Finding {
    const CHECK: &str = "redis memory";
    if let Some(shortfall) = facts.eviction_risk() {
        return Finding::fail(CHECK, shortfall.found, shortfall.remedy);
    }
    let (used, max) = (facts.memory_used_bytes, facts.memory_max_bytes);
    if max == 0 {
        return Finding::ok(CHECK, format!("{} MiB used, without a limit; nothing is evicted", used / MIB));
    }
    let found = format!("{} of {} MiB used; nothing is evicted", used / MIB, max / MIB);
    if used > max / 5 * 4 {
        return Finding::warn(CHECK, found, "raise its maxmemory: a full server refuses reservations");
    }
    Finding::ok(CHECK, found)
}

fn script(probed: Result<()>) -> Finding {
    const CHECK: &str = "redis scripts";
    match probed {
        Ok(()) => Finding::ok(CHECK, "every script is loaded, and one has run"),
        Err(error) => Finding::fail(CHECK, error.chain(), "permit EVALSHA and SCRIPT LOAD to Orbit's user"),
    }
}
