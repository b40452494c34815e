//! In place of the bucket, in a build without the feature `s3`. The configuration has refused one already.

use crate::config::S3Media;
use crate::domain::media::{EncodedImage, MediaKey};
use crate::error::Source;

/// There is none.
pub(super) enum Bucket {}

impl Bucket {
    pub(super) fn open(_: &S3Media) -> Result<Self, Source> {
        Err("this binary was built without S3".into())
    }

    pub(super) async fn check(&self) -> Result<(), Source> {
        match *self {}
    }

    pub(super) async fn put(&self, _: &MediaKey, _: &EncodedImage) -> Result<(), Source> {
        match *self {}
    }

    pub(super) async fn delete(&self, _: &str) -> Result<(), Source> {
        match *self {}
    }
}
