use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Which server an error or a log line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerName {
    /// Redis, or Valkey in its place.
    Redis,
    /// MongoDB, or the stand-in in its place.
    Mongo,
}

impl ServerName {
    /// The stem of the files the server has in its directory: `redis.log`, `redis.pid`, `redis.lock`.
    pub(super) fn file_stem(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Mongo => "mongo",
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "Redis",
            Self::Mongo => "MongoDB",
        })
    }
}

/// Why a server could not be started. Every message ends with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// Neither `PATH` nor the directory of installed tools has a program for this server.
    #[error("no program to run {server} with (looked for {looked_for}): run scripts/setup, which installs one")]
    ProgramMissing {
        /// The server that was wanted.
        server: ServerName,
        /// The program names and places that were tried, in order.
        looked_for: String,
    },

    /// A process that is still alive has a server running in this directory.
    #[error("{} already has a {server} in use by another process: stop that one, or choose another directory", dir.display())]
    DirectoryInUse {
        /// The server that was wanted.
        server: ServerName,
        /// The directory that is taken.
        dir: PathBuf,
    },

    /// A file or directory of the server could not be used.
    #[error("cannot {action} {}: check the permissions and free space there", path.display())]
    File {
        /// What was attempted, as a verb phrase.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },

    /// The operating system would not start a program.
    #[error("cannot run {}: check that it is a program for this machine, or run scripts/setup again", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },

    /// Every port that was tried is taken.
    #[error("no free port on 127.0.0.1: stop something that listens there, or give a port")]
    NoFreePort,

    /// A server left over from a run that was killed does not go away.
    #[error("process {pid} is a {server} left over from an earlier run and cannot be stopped: stop it by hand")]
    LeftoverStays {
        /// The server it is.
        server: ServerName,
        /// Its process id.
        pid: i32,
    },

    /// The server ended before it was ready.
    #[error("{server} ended while starting ({status}): the reason is in the last lines of {}:\n{log_tail}", log.display())]
    Exited {
        /// The server.
        server: ServerName,
        /// How it ended.
        status: ExitStatus,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log.
        log_tail: String,
    },

    /// The server runs but did not answer in time; it has been killed.
    #[error("{server} gave no answer on port {port} within {deadline_secs} s: see whether the machine is overloaded, and the last lines of {}:\n{log_tail}", log.display())]
    NotReady {
        /// The server.
        server: ServerName,
        /// The port it should answer on.
        port: u16,
        /// How long it was given, in seconds.
        deadline_secs: u64,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log.
        log_tail: String,
    },
}

impl SupervisorError {
    /// Whether the server ended because something else took its port first.
    pub(super) fn lost_the_port(&self) -> bool {
        matches!(self, Self::Exited { log_tail, .. } if log_tail.to_lowercase().contains("address already in use"))
    }
}
