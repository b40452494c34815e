//! Ends a server when the process that started it is gone.
//!
//! Dropping a value is no use to a process that is killed, and a static is never dropped at all. The usual
//! answer, asking the kernel to signal the child (`PR_SET_PDEATHSIG`), needs unsafe code and fires when the
//! *thread* that started the child ends, which in a test is long before the process does. So each server
//! has a small shell beside it that waits for the end of a pipe only we hold open. The pipe closes however
//! we die; then the shell stops the server, having made sure that the process is still that server.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `$1` is the server's process id, `$2` its working directory. A line on standard input says that the
/// server has been stopped by its owner, and ends this; the end of input says that the owner is gone.
const SCRIPT: &str = r#"
ours() {
  case $(readlink "/proc/$1/cwd") in "$2" | "$2 (deleted)") true ;; *) false ;; esac
}
IFS= read -r line && exit 0
ours "$1" "$2" && kill -TERM "$1"
i=0
while [ "$i" -lt 50 ] && ours "$1" "$2"; do sleep 0.1; i=$((i + 1)); done
ours "$1" "$2" && kill -KILL "$1"
"#;

/// The shell that watches over one server.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Watches over the process `pid`, which runs in the directory `dir`.
    pub(super) fn start(pid: u32, dir: &Path) -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "orbit-watchdog"])
            .arg(pid.to_string())
            .arg(dir)
            .current_dir("/")
            // What it runs is part of every system, wherever our own PATH may lead.
            .env("PATH", "/usr/bin:/bin")
            // A Ctrl-C meant for us must not end it before us.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { shell })
    }
}

impl Drop for Watchdog {
    /// The server has ended: there is nothing left to watch.
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take()
            && let Err(error) = pipe.write_all(b"done\n")
        {
            tracing::warn!(%error, "the watchdog of a server had ended before the server");
        }
        // It leaves at once on reading that; if the wait fails, there is no child to wait for.
        let _ = self.shell.wait();
    }
}
