//! What the operating system allows.

use nix::sys::resource::{Resource, getrlimit};

use super::Finding;
use crate::config::{Config, Durability};

/// Files that a process has open besides its connections, with room to spare.
const OTHER_FILES: u64 = 128;

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "open files";
    let finding = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((limit, _)) => open_files(limit, needed(config)),
        Err(error) => Finding::warn(CHECK, format!("the limit cannot be read: {error}"), "look with ulimit -n"),
    };
    vec![finding]
}

/// Each connection is an open file, to whichever side.
fn needed(config: &Config) -> u64 {
    let live = &config.live;
    let waiting = if live.durability == Durability::Replicas { live.purchases_in_flight_max } else { 0 };
    let connections = [config.server.connections_max, live.connections, waiting, config.mongo.pool_max as usize];
    connections.iter().fold(OTHER_FILES, |sum, count| sum.saturating_add(*count as u64))
}

fn open_files(limit: u64, needed: u64) -> Finding {
    const CHECK: &str = "open files";
    if limit >= needed {
        return Finding::ok(CHECK, format!("{needed} at most, and {limit} are allowed"));
    }
    let found = format!("{needed} at most (server.connections_max and what it stands on), and {limit} are allowed");
    let advice =
        format!("raise the limit (ulimit -n {needed}, LimitNOFILE in systemd), or lower server.connections_max");
    Finding::warn(CHECK, found, advice)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_limit_below_the_connections_that_are_configured_is_named() {
        assert_eq!(open_files(20_000, 20_000).verdict, Verdict::Ok);
        let low = open_files(1_024, 20_182);
        assert_eq!(low.verdict, Verdict::Warn);
        assert!(low.to_string().contains("ulimit -n 20182"), "{low}");
    }
}
