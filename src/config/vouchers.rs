//! Vouchers: what their codes are sealed with, and how their pools are kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::Config;

/// Vouchers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Vouchers {
    pub keys: Vec<SecretString>,
    pub hash_key: SecretString,
    pub app_key: SecretString,
    pub validity_days_min: u32,
    pub claim_ttl_ms: u64,
    pub reconcile_interval_ms: u64,
    pub pump_interval_ms: u64,
    pub zone: String,
    pub import_bytes_max: usize,
}

/// Reads `id:base64`: the key's name, and the key.
#[must_use]
pub fn named_key(text: &SecretString) -> Option<(String, SecretString)> {
    let (id, key) = text.expose_secret().split_once(':')?;
    let good = !id.is_empty() && id.len() <= 32 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let long = STANDARD.decode(key.trim()).is_ok_and(|bytes| bytes.len() == 32);
    (good && long).then(|| (id.to_owned(), key.trim().into()))
}

const HASH_KEY_BYTES_MIN: usize = 32;

impl Config {
    pub(super) fn check_vouchers(&self, problems: &mut Vec<String>) {
        let vouchers = &self.vouchers;
        let positive = [
            ("claim_ttl_ms", vouchers.claim_ttl_ms),
            ("reconcile_interval_ms", vouchers.reconcile_interval_ms),
            ("pump_interval_ms", vouchers.pump_interval_ms),
            ("import_bytes_max", vouchers.import_bytes_max as u64),
        ];
        let zero = positive.into_iter().filter(|(_, value)| *value == 0);
        problems.extend(zero.map(|(name, _)| format!("vouchers.{name} must be at least 1")));
        if vouchers.keys.iter().any(|key| named_key(key).is_none()) {
            problems.push(
                "vouchers.keys must each be a name of letters, digits and hyphens, a colon, and 32 bytes in base64"
                    .to_owned(),
            );
        }
        if vouchers.zone.parse::<chrono_tz::Tz>().is_err() {
            problems.push("vouchers.zone must be an IANA time zone such as Asia/Kolkata".to_owned());
        }
        let mut names: Vec<String> = vouchers.keys.iter().filter_map(named_key).map(|(id, _)| id).collect();
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            problems.push("vouchers.keys has two keys of one name".to_owned());
        }
        let hash_key = vouchers.hash_key.expose_secret().len();
        if hash_key > 0 && hash_key < HASH_KEY_BYTES_MIN {
            problems.push(format!("vouchers.hash_key must have at least {HASH_KEY_BYTES_MIN} bytes"));
        }
        // A claim whose flip may still arrive is not for anybody else to judge.
        if vouchers.claim_ttl_ms < self.mongo.cursor_deadline_ms.min(self.mongo.deadline_ms) {
            problems.push("vouchers.claim_ttl_ms must not be below mongo.deadline_ms".to_owned());
        }
    }
}
