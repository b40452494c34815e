//! One run of a server's program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use super::error::SupervisorError;
use super::home::Home;
use super::watchdog::Watchdog;

/// How long a server may take to stop after being asked to.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// Variables to set, or with `None` to take away, in the environment that we have.
    pub(super) environment: Vec<(&'static str, Option<&'static str>)>,
}

/// A running server. Dropping it kills the process and waits for its end.
///
/// This is the standard library's child and not tokio's, because tokio's belongs to the runtime it was
/// started in, and a server shared by many tests outlives the runtime of the first one.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The length of the log when the process started.
    log_offset: u64,
    _watchdog: Watchdog,
}

impl Process {
    /// Starts the program in the directory of `home`, with both outputs going to the log there.
    pub(super) fn spawn(home: &Home, launch: &Launch) -> Result<Self, SupervisorError> {
        let log = home.open_log()?;
        let cannot_write = |source| SupervisorError::File { action: "use the log", path: home.log_path(), source };
        let log_offset = log.metadata().map_err(cannot_write)?.len();
        let second_handle = log.try_clone().map_err(cannot_write)?;
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .current_dir(home.dir())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(second_handle);
        for (name, value) in &launch.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let cannot_run = |program: PathBuf| move |source| SupervisorError::Spawn { program, source };
        let mut child = command.spawn().map_err(cannot_run(launch.program.clone()))?;
        let watched = home
            .write_pid(child.id())
            .and_then(|()| Watchdog::start(child.id(), home.dir()).map_err(cannot_run(PathBuf::from("/bin/sh"))));
        match watched {
            Ok(watchdog) => Ok(Self { child, log_offset, _watchdog: watchdog }),
            Err(error) => {
                end_now(&mut child);
                Err(error)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn log_offset(&self) -> u64 {
        self.log_offset
    }

    /// How the process ended, once it has.
    pub(super) fn exit_status(&mut self) -> Option<ExitStatus> {
        // An error would mean that the child is not ours to wait for, which nobody else can bring about.
        self.child.try_wait().ok().flatten()
    }

    /// Asks the process to stop, waits up to five seconds, then kills it.
    pub(super) async fn stop(mut self) {
        self.signal(Signal::SIGTERM);
        if !self.ended_by(Instant::now() + STOP_PATIENCE).await {
            tracing::warn!(pid = self.pid(), "a server did not stop when asked and is killed");
        }
        self.kill().await;
    }

    /// Kills the process and waits for its end. Nothing it had not written out survives, as in a crash.
    pub(super) async fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.ended_by(Instant::now() + STOP_PATIENCE).await;
    }

    async fn ended_by(&mut self, deadline: Instant) -> bool {
        loop {
            if self.exit_status().is_some() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(POLL).await;
        }
    }

    fn signal(&mut self, signal: Signal) {
        // Only while it has not been waited for: until then the number cannot become another process's.
        if self.exit_status().is_none()
            && let Ok(pid) = i32::try_from(self.child.id())
            && let Err(error) = kill(Pid::from_raw(pid), signal)
        {
            tracing::warn!(pid, %signal, %error, "cannot signal a server");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end_now(&mut self.child);
    }
}

/// Kills a child, unless it has ended, and waits for it. Errors of both mean that it is gone already.
fn end_now(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
