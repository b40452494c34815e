use std::ffi::OsString;
use std::path::PathBuf;

use super::error::{ServerName, SupervisorError};
use super::process::Launch;
use super::programs::Places;
use super::readiness::Sign;
use super::server::Server;

/// When Redis makes its append-only file safe on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendFsync {
    /// Once a second: a crash of the machine loses up to a second; a crash of Redis alone loses nothing.
    Everysec,
    /// Before every answer.
    Always,
    /// There is no append-only file: whatever ends Redis loses everything.
    Off,
}

/// How to run a Redis.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Where it keeps its files; made if it does not exist.
    pub dir: PathBuf,
    /// What survives a crash.
    pub append_fsync: AppendFsync,
    /// What Redis does when its memory limit is reached. The live sale needs `noeviction`: any other policy
    /// may drop stock counters and reservations.
    pub maxmemory_policy: &'static str,
    /// The port on 127.0.0.1; `None` for a free one.
    pub port: Option<u16>,
}

/// A Redis server of ours. Dropping it kills it.
#[derive(Debug)]
pub struct RedisServer {
    server: Server,
}

impl RedisServer {
    /// Starts a Redis and waits until it answers.
    ///
    /// # Errors
    ///
    /// When there is no program for it, the directory is taken or unusable, or the server ends or does not
    /// answer within 30 s.
    pub async fn start(options: RedisOptions) -> Result<Self, SupervisorError> {
        Self::start_with_arguments(options, &[]).await
    }

    /// As [`start`](Self::start), with more command-line arguments, such as `["--cluster-enabled", "yes"]`.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub async fn start_with_arguments(options: RedisOptions, more: &[&str]) -> Result<Self, SupervisorError> {
        let program = Places::from_environment().redis()?;
        let server = Server::start(ServerName::Redis, &options.dir, options.port, Sign::RedisPong, |dir, port| {
            let mut arguments = arguments(&options, port);
            arguments.extend(["--dir".into(), dir.into()]);
            arguments.extend(more.iter().map(OsString::from));
            Launch { program: program.clone(), arguments, environment: Vec::new() }
        })
        .await?;
        Ok(Self { server })
    }

    /// Where clients connect: `redis://127.0.0.1:PORT/0`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port())
    }

    /// The port it listens on, the same after every restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Kills it with SIGKILL, as a crash would end it, and waits until it is gone. It can be restarted.
    pub async fn kill(&mut self) {
        self.server.kill().await;
    }

    /// Asks it to stop, and kills it if it has not after five seconds. It can be restarted.
    pub async fn stop(&mut self) {
        self.server.stop().await;
    }

    /// Starts it again on the same port and directory, having stopped it if it runs.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start); also when another process has taken the port meanwhile.
    pub async fn restart(&mut self) -> Result<(), SupervisorError> {
        self.server.restart().await
    }
}

fn arguments(options: &RedisOptions, port: u16) -> Vec<OsString> {
    let (append_only, append_fsync) = match options.append_fsync {
        AppendFsync::Everysec => ("yes", "everysec"),
        AppendFsync::Always => ("yes", "always"),
        AppendFsync::Off => ("no", "no"),
    };
    let port = port.to_string();
    [
        ("--port", port.as_str()),
        ("--bind", "127.0.0.1"),
        ("--daemonize", "no"),
        // No snapshots: they would make what survives a crash depend on when the last one was.
        ("--save", ""),
        ("--appendonly", append_only),
        ("--appendfsync", append_fsync),
        ("--maxmemory-policy", options.maxmemory_policy),
    ]
    .iter()
    .flat_map(|(name, value)| [OsString::from(name), OsString::from(value)])
    .collect()
}
