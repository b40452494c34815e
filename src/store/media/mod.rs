//! Where images are kept: a bucket, or a folder on a machine without one.
//!
//! Keys are made by [`MediaKey`] alone and never written twice, so an image may be cached for ever, and deleting one can
//! only concern the record that named it.

mod filesystem;
#[cfg_attr(not(feature = "s3"), path = "no_s3.rs")]
mod s3;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use crate::config::{self, MediaBackend};
use crate::domain::media::{EncodedImage, MediaKey};
use crate::error::{Dependency, Error, Result, Source};
use filesystem::Filesystem;
use s3::Bucket;

/// Where the API serves the folder when it has no public address of its own.
pub const SERVED_AT: &str = "/media";

/// The media store.
pub struct Media {
    backend: Backend,
    public_url: String,
    deadline: Duration,
}

enum Backend {
    Filesystem(Filesystem),
    S3(Bucket),
}

impl std::fmt::Debug for Media {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Media").field("public_url", &self.public_url).finish_non_exhaustive()
    }
}

impl Media {
    /// Makes the folder, or checks that the bucket answers to our credentials.
    ///
    /// # Errors
    /// [`Dependency::Media`] when that fails or takes longer than the deadline.
    pub async fn connect(config: &config::Media) -> Result<Self> {
        let deadline = Duration::from_millis(config.deadline_ms);
        let backend = match config.backend {
            MediaBackend::Filesystem => {
                let folder = Filesystem::open(config.filesystem.dir.clone());
                Backend::Filesystem(within(deadline, "opening the media folder", folder).await?)
            }
            MediaBackend::S3 => {
                let bucket = Bucket::open(&config.s3)
                    .map_err(|error| Error::unavailable(Dependency::Media, "opening the bucket", error))?;
                within(deadline, "looking for the bucket", bucket.check()).await?;
                Backend::S3(bucket)
            }
        };
        Ok(Self { backend, public_url: config.public_url.trim_end_matches('/').to_owned(), deadline })
    }

    /// Keeps an image. When this fails the image may be there all the same; deleting it is safe either way.
    ///
    /// # Errors
    /// [`Dependency::Media`] when that fails or takes longer than the deadline.
    pub async fn put(&self, key: &MediaKey, image: &EncodedImage) -> Result<()> {
        let doing = "keeping an image";
        match &self.backend {
            Backend::Filesystem(folder) => within(self.deadline, doing, folder.put(key, image)).await,
            Backend::S3(bucket) => within(self.deadline, doing, bucket.put(key, image)).await,
        }
    }

    /// Deletes an image. Deleting what is not there is success.
    ///
    /// # Errors
    /// [`Dependency::Media`] when that fails or takes longer than the deadline.
    pub async fn delete(&self, key: &str) -> Result<()> {
        let doing = "deleting an image";
        match &self.backend {
            Backend::Filesystem(folder) => within(self.deadline, doing, folder.delete(key)).await,
            Backend::S3(bucket) => within(self.deadline, doing, bucket.delete(key)).await,
        }
    }

    /// The address that a browser loads the image from.
    #[must_use]
    pub fn public_url(&self, key: &str) -> String {
        let base = if self.public_url.is_empty() { SERVED_AT } else { self.public_url.as_str() };
        format!("{base}/{key}")
    }

    /// The folder that the API serves at [`SERVED_AT`]; `None` when images are in a bucket.
    #[must_use]
    pub fn served_dir(&self) -> Option<&Path> {
        match &self.backend {
            Backend::Filesystem(folder) => Some(folder.dir()),
            Backend::S3(_) => None,
        }
    }
}

async fn within<T>(
    deadline: Duration,
    doing: &'static str,
    call: impl Future<Output = Result<T, Source>>,
) -> Result<T> {
    match tokio::time::timeout(deadline, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::unavailable(Dependency::Media, doing, error)),
        Err(_) => Err(Error::timed_out(Dependency::Media, doing)),
    }
}
