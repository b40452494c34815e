//! How often somebody may try to sign in or up: per client address, and per account.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::domain::account::EmailAddress;
use crate::error::{Error, Result};

/// The limits of one process.
#[derive(Debug)]
pub struct AttemptLimits {
    addresses: Option<DefaultKeyedRateLimiter<IpAddr>>,
    accounts: Option<DefaultKeyedRateLimiter<EmailAddress>>,
}

impl AttemptLimits {
    /// From the configuration; 0 means no limit.
    #[must_use]
    pub fn new(config: &crate::config::Auth) -> Self {
        Self {
            addresses: limiter(config.attempts_per_address_per_minute),
            accounts: limiter(config.attempts_per_account_per_minute),
        }
    }

    /// Counts an attempt from an address.
    ///
    /// # Errors
    /// [`Error::TooMany`] with the time to wait.
    pub fn address(&self, address: IpAddr) -> Result<()> {
        check(self.addresses.as_ref(), &address)
    }

    /// Counts an attempt to sign in to an account, whether it exists or not.
    ///
    /// # Errors
    /// [`Error::TooMany`] with the time to wait.
    pub fn account(&self, email: &EmailAddress) -> Result<()> {
        check(self.accounts.as_ref(), email)
    }

    /// Forgets whoever has been quiet for long enough: memory stays bounded by the recent attempts.
    pub fn forget_quiet(&self) {
        if let Some(limiter) = &self.addresses {
            limiter.retain_recent();
        }
        if let Some(limiter) = &self.accounts {
            limiter.retain_recent();
        }
    }
}

fn limiter<K: Hash + Eq + Clone>(per_minute: u32) -> Option<DefaultKeyedRateLimiter<K>> {
    NonZeroU32::new(per_minute).map(|count| RateLimiter::keyed(Quota::per_minute(count)))
}

fn check<K: Hash + Eq + Clone>(limiter: Option<&DefaultKeyedRateLimiter<K>>, key: &K) -> Result<()> {
    let Some(limiter) = limiter else { return Ok(()) };
    limiter.check_key(key).map_err(|refused| Error::TooMany {
        message: "too many attempts, please wait".into(),
        retry_after_s: refused.wait_time_from(DefaultClock::default().now()).as_secs() + 1,
    })
}
