//! The directory of a demo: one demo at a time in it, and no data from a first start that was cut short.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// What servers and the service keep here.
const DATA: [&str; 3] = ["redis", "mongo", "media"];
/// Made when everything has been up once. Before that there is nothing to keep, and a database that was killed while it
/// was making its first files may not start again.
const READY: &str = "ready";

/// A demo's directory, ours until this is dropped.
#[derive(Debug)]
pub(super) struct Home {
    dir: PathBuf,
    _lock: File,
}

impl Home {
    /// Takes the directory, and clears away what a first start left that was cut short.
    pub(super) fn claim(dir: PathBuf) -> anyhow::Result<Self> {
        super::create_dir(&dir)?;
        let path = dir.join("lock");
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.with_context(|| format!("cannot write {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another demo runs in {}: stop that one, or choose another --dir", dir.display())
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let home = Self { dir, _lock: lock };
        if !home.path(READY).exists() {
            home.clear()?;
        }
        Ok(home)
    }

    /// A file or directory in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything is up: from now on the data is kept.
    pub(super) fn mark_ready(&self) -> anyhow::Result<()> {
        let path = self.path(READY);
        File::create(&path).map(drop).with_context(|| format!("cannot write {}", path.display()))
    }

    fn clear(&self) -> anyhow::Result<()> {
        for name in DATA {
            let path = self.path(name);
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_a_first_start_that_was_cut_short_goes_and_other_data_stays() {
        let dir = tempfile::tempdir().unwrap();
        let half = dir.path().join("mongo/half");
        fs::create_dir_all(&half).unwrap();
        let home = Home::claim(dir.path().to_owned()).unwrap();
        assert!(!half.exists());
        fs::create_dir_all(&half).unwrap();
        home.mark_ready().unwrap();
        drop(home);
        Home::claim(dir.path().to_owned()).unwrap();
        assert!(half.exists());
    }

    #[test]
    fn two_demos_do_not_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = Home::claim(dir.path().to_owned()).unwrap();
        let error = Home::claim(dir.path().to_owned()).unwrap_err().to_string();
        assert!(error.contains("--dir"), "{error}");
        drop(first);
        assert!(Home::claim(dir.path().to_owned()).is_ok());
    }
}
