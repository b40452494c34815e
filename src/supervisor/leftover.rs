//! Servers of an earlier run that was killed before it could stop them.
//!
//! A process id in a file proves nothing: the number may long belong to somebody else. A process is taken
//! for ours only if it runs in our directory and under the name of a server we start.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use super::error::{ServerName, SupervisorError};
use super::home::Home;

const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// Stops the server that the pid file names, if it is still there and is ours.
pub(super) async fn stop(home: &Home) -> Result<(), SupervisorError> {
    let Some(pid) = home.read_pid() else {
        return Ok(());
    };
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if !is_ours(home, pid) {
            break;
        }
        tracing::warn!(server = %home.server(), pid, %signal, "stopping a server left over from an earlier run");
        // An error means that it has just ended by itself, or cannot be signalled: the loop finds out which.
        let _ = kill(Pid::from_raw(pid), signal);
        let deadline = Instant::now() + PATIENCE;
        while is_ours(home, pid) && Instant::now() < deadline {
            sleep(POLL).await;
        }
    }
    if is_ours(home, pid) {
        return Err(SupervisorError::LeftoverStays { server: home.server(), pid });
    }
    home.remove_pid();
    Ok(())
}

fn is_ours(home: &Home, pid: i32) -> bool {
    // A process that has ended but was not yet waited for has no working directory any more.
    let process = Path::new("/proc").join(pid.to_string());
    let in_our_directory = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == home.dir());
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    in_our_directory && names_a_server(home.server(), &String::from_utf8_lossy(&command))
}

fn names_a_server(server: ServerName, command: &str) -> bool {
    let names: &[&str] = match server {
        ServerName::Redis => &["redis-server", "valkey-server"],
        ServerName::Mongo => &["mongod", "secantusd"],
    };
    names.iter().any(|name| command.contains(name))
}
