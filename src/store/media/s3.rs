//! Images in a bucket: Amazon S3, Cloudflare R2, or anything that speaks it.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use secrecy::ExposeSecret;

use crate::config::S3Media;
use crate::domain::media::{EncodedImage, MediaKey};
use crate::error::Source;

/// A key is never written twice, so whoever has the image may keep it.
const CACHE_FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Tries of one call, all within its deadline. Repeating is safe: a key has one content.
const ATTEMPTS_MAX: u32 = 3;

pub(super) struct Bucket {
    client: Client,
    name: String,
}

impl Bucket {
    pub(super) fn open(config: &S3Media) -> Result<Self, Source> {
        let secret = config.secret_access_key.expose_secret();
        let credentials = Credentials::new(&config.access_key_id, secret, None, None, "configuration");
        let settings = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .credentials_provider(credentials)
            .region(Region::new(config.region.clone()))
            .endpoint_url(&config.endpoint)
            .force_path_style(config.path_style)
            .http_client(
                aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https(),
            )
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX))
            // The signature covers a hash of the body already, and not every S3 knows the newer checksums.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .build();
        Ok(Self { client: Client::from_conf(settings), name: config.bucket.clone() })
    }

    /// Whether the bucket is there and our credentials open it.
    pub(super) async fn check(&self) -> Result<(), Source> {
        self.client.head_bucket().bucket(&self.name).send().await.map(drop).map_err(describe)
    }

    pub(super) async fn put(&self, key: &MediaKey, image: &EncodedImage) -> Result<(), Source> {
        self.client
            .put_object()
            .bucket(&self.name)
            .key(key.as_str())
            .content_type(image.format.content_type())
            .cache_control(CACHE_FOR_EVER)
            // In memory, so that it can be hashed before it is sent: plain HTTP has no other way to sign it.
            .body(ByteStream::from(image.bytes.clone()))
            .send()
            .await
            .map(drop)
            .map_err(describe)
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), Source> {
        match self.client.delete_object().bucket(&self.name).key(key).send().await {
            // S3 itself answers success; some of those who speak it do not.
            Err(error) if error.code() == Some("NoSuchKey") => Ok(()),
            result => result.map(drop).map_err(describe),
        }
    }
}

/// One line for the log. The driver's own error holds the whole exchange, which is no business of a log.
fn describe<E>(error: SdkError<E>) -> Source
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    if let SdkError::ServiceError(answer) = &error {
        let status = answer.raw().status().as_u16();
        let (code, message) = (answer.err().code().unwrap_or("no code"), answer.err().message().unwrap_or_default());
        return format!("the bucket answered {status} ({code}) {message}").into();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.into()
}
