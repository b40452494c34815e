//! Accounts: sign-up, sign-in, sign-out, approval of sellers, blocking.

mod admin;
mod sessions;
mod signup;
mod verification;

use std::sync::Arc;

pub use sessions::Signed;
pub use signup::SignUp;

use crate::auth::password::Passwords;
use crate::auth::revocation::Revocations;
use crate::auth::seal::Sealer;
use crate::auth::token::Tokens;
use crate::config::Config;
use crate::domain::clock::Clock;
use crate::error::{Error, Result};
use crate::store::mongo::Mongo;

/// Everything that can be done to an account.
pub struct Accounts {
    mongo: Arc<Mongo>,
    clock: Arc<dyn Clock>,
    passwords: Passwords,
    tokens: Tokens,
    revocations: Revocations,
    sealer: Sealer,
    config: crate::config::Accounts,
    revocation_poll_ms: u64,
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").finish_non_exhaustive()
    }
}

impl Accounts {
    /// Accounts over this store.
    ///
    /// # Errors
    /// When the configuration was not validated.
    pub fn new(mongo: Arc<Mongo>, clock: Arc<dyn Clock>, config: &Config) -> Result<Self> {
        Ok(Self {
            mongo,
            clock,
            passwords: Passwords::new(&config.auth)?,
            tokens: Tokens::new(&config.auth)?,
            revocations: Revocations::default(),
            sealer: Sealer::new(&config.accounts.data_key)
                .ok_or_else(|| Error::internal("reading accounts.data_key", "it is not 32 bytes of base64"))?,
            config: config.accounts.clone(),
            revocation_poll_ms: config.auth.revocation_poll_ms,
        })
    }
}
