//! The directory of a server: its data, its log, its pid file, and the lock that makes it one server's alone.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::{ServerName, SupervisorError};
use super::leftover;

/// How much of the log an error shows.
const TAIL_LINES: usize = 15;
const TAIL_BYTES_MAX: u64 = 16 * 1024;

/// A directory this process holds for one server, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Home {
    server: ServerName,
    dir: PathBuf,
    /// The system gives up the lock when this process ends, however it ends. So whoever gets it knows that
    /// a pid file beside it is of a run that is over.
    _lock: File,
}

impl Home {
    /// Makes the directory, takes it, and stops a server left there by a run that was killed.
    pub(super) async fn claim(server: ServerName, dir: &Path) -> Result<Self, SupervisorError> {
        let failed = |action, path: &Path| {
            let path = path.to_path_buf();
            move |source| SupervisorError::File { action, path, source }
        };
        fs::create_dir_all(dir).map_err(failed("create the directory", dir))?;
        // The running server's working directory is compared with this later, so it must be the real path.
        let dir = dir.canonicalize().map_err(failed("find the real path of", dir))?;
        let lock_path = dir.join(format!("{}.lock", server.file_stem()));
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(failed("create", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(SupervisorError::DirectoryInUse { server, dir });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock", &lock_path)(source)),
        }
        let home = Self { server, dir, _lock: lock };
        leftover::stop(&home).await?;
        Ok(home)
    }

    pub(super) fn server(&self) -> ServerName {
        self.server
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.server.file_stem()))
    }

    fn pid_path(&self) -> PathBuf {
        self.dir.join(format!("{}.pid", self.server.file_stem()))
    }

    pub(super) fn open_log(&self) -> Result<File, SupervisorError> {
        let path = self.log_path();
        File::options().create(true).append(true).open(&path).map_err(|source| SupervisorError::File {
            action: "open the log",
            path,
            source,
        })
    }

    pub(super) fn write_pid(&self, pid: u32) -> Result<(), SupervisorError> {
        let path = self.pid_path();
        fs::write(&path, format!("{pid}\n")).map_err(|source| SupervisorError::File { action: "write", path, source })
    }

    pub(super) fn read_pid(&self) -> Option<i32> {
        fs::read_to_string(self.pid_path()).ok()?.trim().parse().ok()
    }

    pub(super) fn remove_pid(&self) {
        let path = self.pid_path();
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove the pid file of a server that has stopped");
        }
    }

    /// What the server has logged since `offset` (a length the log file had earlier), at most the last
    /// 16 KiB of it. Empty when there is no log to read.
    pub(super) fn log_since(&self, offset: u64) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut log = File::open(self.log_path())?;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(offset.max(length.saturating_sub(TAIL_BYTES_MAX))))?;
            let mut bytes = Vec::new();
            log.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The last lines the server has logged since `offset`.
    pub(super) fn log_tail(&self, offset: u64) -> String {
        let text = self.log_since(offset);
        let lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            return "(nothing was logged)".into();
        }
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}
