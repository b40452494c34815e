//! Pictures: stored before a record shows them, deleted after none does.
//!
//! The ledger makes both survive a crash: a picture is entered as "to be deleted in an hour" before it is uploaded, and
//! struck off when its record is written. A replaced one is entered as due at once. The sweeper deletes what is due and
//! not shown.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;

use super::Catalogue;
use crate::domain::ids::EventId;
use crate::domain::media::{ImageKind, MediaKey};
use crate::error::Result;
use crate::task::Tracker;
use crate::telemetry::metrics::IMAGES_DELETED;

/// How long an upload may take until its record is written.
const UPLOAD_GRACE: chrono::Duration = chrono::Duration::hours(1);
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
const SWEEP_BATCH: i64 = 100;

/// A picture in the media store.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub url: String,
    pub key: String,
}

impl Catalogue {
    /// Checks, re-encodes and uploads a picture. The caller has authorised the request, writes the record next, and
    /// then calls [`Self::picture_shown`].
    pub(super) async fn upload(&self, event: EventId, kind: ImageKind, bytes: bytes::Bytes) -> Result<Picture> {
        let image = self.images.process(bytes, kind).await?;
        let nonce = uuid::Uuid::now_v7().as_u128();
        let key = match kind {
            ImageKind::Banner => MediaKey::banner(event, nonce, image.format),
            ImageKind::Product => MediaKey::product(event, nonce, image.format),
        };
        self.mongo.media_ledger.enter(key.as_str(), self.clock.now() + UPLOAD_GRACE).await?;
        self.media.put(&key, &image).await?;
        Ok(Picture { url: self.media.public_url(key.as_str()), key: key.as_str().to_owned() })
    }

    /// A record shows the picture now. If this fails the sweeper finds the record, and strikes the entry itself.
    pub(super) async fn picture_shown(&self, key: &str) {
        if let Err(error) = self.mongo.media_ledger.strike(key).await {
            tracing::warn!(code = error.code().as_str(), "an image could not be struck off the ledger");
        }
    }

    /// No record shows the picture any more: it is deleted now, or by the sweeper if that fails.
    pub(super) async fn picture_hidden(&self, key: &str) {
        let deletion = async {
            self.mongo.media_ledger.enter(key, self.clock.now()).await?;
            self.delete_if_hidden(key).await
        };
        if let Err(error) = deletion.await {
            tracing::warn!(code = error.code().as_str(), "an image could not be deleted yet");
        }
    }

    /// Every picture of a deleted event.
    pub(super) async fn pictures_hidden(&self, event: EventId, banner: Option<&str>) -> Result<()> {
        if let Some(key) = banner {
            self.picture_hidden(key).await;
        }
        let mut keys = self.mongo.products.image_keys(event).await?;
        while let Some(key) = keys.try_next().await? {
            self.picture_hidden(&key).await;
        }
        Ok(())
    }

    async fn delete_if_hidden(&self, key: &str) -> Result<()> {
        let shown = self.mongo.products.shows_image(key).await? || self.mongo.events.shows_image(key).await?;
        if !shown {
            self.media.delete(key).await?;
            metrics::counter!(IMAGES_DELETED).increment(1);
        }
        self.mongo.media_ledger.strike(key).await
    }

    /// Deletes what is due and not shown, once.
    ///
    /// # Errors
    /// When a store does not answer; what is due stays due.
    pub async fn sweep_pictures(&self) -> Result<()> {
        for key in self.mongo.media_ledger.due(self.clock.now(), SWEEP_BATCH).await? {
            self.delete_if_hidden(&key).await?;
        }
        Ok(())
    }

    /// Sweeps again and again until the application stops.
    pub async fn keep_sweeping_pictures(self: Arc<Self>, tasks: Tracker) {
        while tasks.pause(SWEEP_INTERVAL).await {
            if let Err(error) = self.sweep_pictures().await {
                tracing::warn!(code = error.code().as_str(), error = %error, "images could not be swept");
            }
        }
    }
}
