//! Images in a folder.
//!
//! A file appears under its name whole or not at all: it is written beside it, flushed, and renamed. Each call is one
//! piece of blocking work that runs to its end even if the caller has left, so no half-written file is forgotten; what a
//! crash leaves is removed when the ledger deletes the key.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use crate::domain::media::{EncodedImage, MediaKey};
use crate::error::Source;

pub(super) struct Filesystem {
    dir: PathBuf,
}

impl Filesystem {
    /// Makes the folder.
    pub(super) async fn open(dir: PathBuf) -> Result<Self, Source> {
        blocking(move || fs::create_dir_all(&dir).map(|()| Self { dir })).await
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) async fn put(&self, key: &MediaKey, image: &EncodedImage) -> Result<(), Source> {
        let path = self.path(key.as_str())?;
        let bytes = image.bytes.clone();
        blocking(move || write_whole(&path, &bytes)).await
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), Source> {
        let path = self.path(key)?;
        blocking(move || {
            remove(&unfinished(&path))?;
            remove(&path)
        })
        .await
    }

    /// Keys to write are ours, but keys to delete come from records: one that names anything outside is refused.
    fn path(&self, key: &str) -> Result<PathBuf, Source> {
        let relative = Path::new(key);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if key.is_empty() || !inside {
            return Err("the key is not one of ours".into());
        }
        Ok(self.dir.join(relative))
    }
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_added_extension("part")
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let part = unfinished(path);
    let written = File::create(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = remove(&part);
        return written;
    }
    File::open(folder)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Source> {
    Ok(tokio::task::spawn_blocking(work).await??)
}
