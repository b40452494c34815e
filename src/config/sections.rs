//! One struct per concern. `configs/default.toml` is the documentation of each field.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::durability::Durability;

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Where images live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaBackend {
    /// A folder.
    Filesystem,
    /// A bucket.
    S3,
}

/// The HTTP listener and its limits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub connections_max: usize,
    pub header_timeout_ms: u64,
    pub body_idle_timeout_ms: u64,
    pub request_timeout_ms: u64,
    pub long_request_timeout_ms: u64,
    pub body_bytes_max: usize,
    pub shutdown_grace_ms: u64,
    pub allowed_origins: Vec<String>,
    pub client_ip_header: String,
    pub list_items_max: u32,
}

/// The metrics listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Metrics {
    pub enabled: bool,
    pub host: String,
    pub port: u16,
}

/// Logs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Log {
    pub filter: String,
    pub format: LogFormat,
}

/// The durable store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Mongo {
    pub uri: SecretString,
    pub database: String,
    pub deadline_ms: u64,
    pub cursor_deadline_ms: u64,
    pub pool_max: u32,
}

/// The live store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Live {
    pub url: SecretString,
    pub key_prefix: String,
    pub deadline_ms: u64,
    pub purchase_deadline_ms: u64,
    pub purchases_in_flight_max: usize,
    pub purchase_wait_ms: u64,
    pub connections: usize,
    pub durability: Durability,
    pub replicas_min: usize,
    pub replicas_wait_ms: u64,
    pub stopped_status_ttl_s: u64,
}

/// Opening, settlement and recovery of sales.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Sale {
    pub workers: usize,
    pub channel_capacity: usize,
    pub batch_size_max: usize,
    pub attempts_max: u32,
    pub retry_pause_ms: u64,
    pub opening_ttl_ms: u64,
    pub settle_page_size_max: usize,
    pub end_answer_ms: u64,
    pub sweep_interval_ms: u64,
    pub schedule_interval_ms: u64,
    pub drain_interval_ms: u64,
    pub drain_takeover_ms: u64,
    pub recovery_interval_ms: u64,
    pub lease_ttl_ms: u64,
}

/// Sessions and passwords.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Auth {
    pub jwt_secret: SecretString,
    pub issuer: String,
    pub audience: String,
    pub session_ttl_s: u64,
    pub cookie_secure: bool,
    pub bcrypt_cost: u32,
    pub hash_workers: usize,
    pub hash_queue_max: usize,
    pub password_chars_min: usize,
    pub attempts_per_address_per_minute: u32,
    pub attempts_per_account_per_minute: u32,
    pub revocation_poll_ms: u64,
}

/// Sellers, administrators and what is sealed about them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Accounts {
    pub verification_cooldown_s: u64,
    pub data_key: SecretString,
    pub bootstrap_admin_email: String,
    pub bootstrap_admin_password: SecretString,
}

/// Events and products.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Catalogue {
    pub currency: String,
}

/// Telling sellers what happens in their sales.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Webhooks {
    pub endpoints_per_seller_max: usize,
    pub in_flight_max: usize,
    pub in_flight_per_endpoint_max: usize,
    pub attempt_deadline_ms: u64,
    pub claim_ttl_ms: u64,
    pub poll_interval_ms: u64,
    pub listeners_known_for_ms: u64,
    pub rotation_overlap_s: u64,
    pub allow_http: bool,
    pub allow_private: bool,
}

/// Images.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Media {
    pub backend: MediaBackend,
    pub public_url: String,
    pub banner_bytes_max: usize,
    pub product_bytes_max: usize,
    pub pixels_side_max: u32,
    pub decode_bytes_max: u64,
    pub decode_workers: usize,
    pub decode_queue_max: usize,
    pub deadline_ms: u64,
    pub filesystem: FilesystemMedia,
    pub s3: S3Media,
}

/// Images in a folder, served by the API itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct FilesystemMedia {
    pub dir: PathBuf,
}

/// Images in an S3 bucket.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct S3Media {
    pub endpoint: String,
    pub region: String,
    pub bucket: String,
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    pub path_style: bool,
}
