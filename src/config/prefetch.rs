//! Prefetch: buying voucher codes ahead of orders.

use serde::Deserialize;

use super::Config;

/// Buying voucher codes from vendors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Prefetch {
    pub batch_size: u32,
    pub concurrency: usize,
    pub retries: u32,
    pub retry_pause_ms: u64,
    pub deadline_ms: u64,
    pub absence_ms: u64,
    pub poll_interval_ms: u64,
    pub claim_ttl_ms: u64,
    pub allow_http: bool,
    pub allow_private: bool,
    pub sandbox: bool,
}

/// An answer with more codes would be too large to be read.
const BATCH_SIZE_MAX: u32 = 1_000;
/// More calls at once are an attack on the vendor.
const CONCURRENCY_MAX: usize = 50;
/// The pauses between them grow.
const RETRIES_MAX: u32 = 20;

impl Config {
    pub(super) fn check_prefetch(&self, problems: &mut Vec<String>) {
        let prefetch = &self.prefetch;
        let positive = [
            ("retry_pause_ms", prefetch.retry_pause_ms),
            ("deadline_ms", prefetch.deadline_ms),
            ("poll_interval_ms", prefetch.poll_interval_ms),
        ];
        let zero = positive.iter().filter(|(_, value)| *value == 0);
        problems.extend(zero.map(|(name, _)| format!("prefetch.{name} must be at least 1")));
        if !(1..=BATCH_SIZE_MAX).contains(&prefetch.batch_size) {
            problems.push(format!("prefetch.batch_size must be from 1 to {BATCH_SIZE_MAX}"));
        }
        if !(1..=CONCURRENCY_MAX).contains(&prefetch.concurrency) {
            problems.push(format!("prefetch.concurrency must be from 1 to {CONCURRENCY_MAX}"));
        }
        if prefetch.retries > RETRIES_MAX {
            problems.push(format!("prefetch.retries must be at most {RETRIES_MAX}"));
        }
        if prefetch.absence_ms < prefetch.deadline_ms {
            problems.push(
                "prefetch.absence_ms must be at least prefetch.deadline_ms, or an order is given up that is still on its way"
                    .to_owned(),
            );
        }
        if prefetch.claim_ttl_ms < prefetch.deadline_ms.saturating_mul(2) {
            problems.push(
                "prefetch.claim_ttl_ms must be at least twice prefetch.deadline_ms, or a job is taken over while its vendor \
                 is still being asked"
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, TEST};

    #[test]
    fn times_must_fit_into_each_other() {
        let mut config = Config::with_layer(TEST).unwrap();
        config.prefetch.deadline_ms = config.prefetch.claim_ttl_ms;
        let error = config.validate().unwrap_err();
        assert_eq!(error.problems.len(), 2, "{error}");
        assert!(error.to_string().contains("prefetch.claim_ttl_ms must be at least twice"), "{error}");
    }

    #[test]
    fn sizes_have_bounds() {
        let mut config = Config::with_layer(TEST).unwrap();
        (config.prefetch.batch_size, config.prefetch.concurrency, config.prefetch.retries) = (0, 51, 21);
        assert_eq!(config.validate().unwrap_err().problems.len(), 3);
    }
}
