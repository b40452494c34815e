//! Password hashing on a bounded pool.
//!
//! A hash is a third of a second of CPU. At most a few run at once and a bounded number wait; more are refused at
//! once, so that a storm of sign-ins cannot starve purchases.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::domain::account::PasswordHash;
use crate::error::{Dependency, Error, Result};

/// bcrypt reads no further than this; a longer password is refused, not cut.
pub const PASSWORD_BYTES_MAX: usize = 72;

/// Hashes and checks passwords.
#[derive(Debug, Clone)]
pub struct Passwords {
    cost: u32,
    /// Running and waiting.
    places: Arc<Semaphore>,
    /// Running.
    workers: Arc<Semaphore>,
    /// Checked for unknown accounts, so that they take as long as known ones.
    dummy: PasswordHash,
}

impl Passwords {
    /// A pool of `workers` (0: one less than the cores, at least one) and a queue.
    ///
    /// # Errors
    /// When bcrypt refuses the cost.
    pub fn new(config: &crate::config::Auth) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = if config.hash_workers == 0 { cores.saturating_sub(1).max(1) } else { config.hash_workers };
        let dummy = bcrypt::hash("nobody has this password", config.bcrypt_cost)
            .map_err(|error| Error::internal("hashing a password", error))?;
        Ok(Self {
            cost: config.bcrypt_cost,
            places: Arc::new(Semaphore::new(workers + config.hash_queue_max)),
            workers: Arc::new(Semaphore::new(workers)),
            dummy: PasswordHash(dummy),
        })
    }

    /// Hashes a password of at most [`PASSWORD_BYTES_MAX`] bytes. (bcrypt reads all 72 of them; the library's
    /// "non-truncating" functions also want room for a final NUL and refuse the last one.)
    ///
    /// # Errors
    /// [`Dependency::Capacity`] when the queue is full; a longer password.
    pub async fn hash(&self, password: String) -> Result<PasswordHash> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Error::invalid("password", format!("must have at most {PASSWORD_BYTES_MAX} bytes")));
        }
        let cost = self.cost;
        self.run(move || bcrypt::hash(password, cost).map(PasswordHash)).await
    }

    /// Checks a password; `None` is an unknown account, which takes as long and is always wrong.
    ///
    /// # Errors
    /// [`Dependency::Capacity`] when the queue is full.
    pub async fn verify(&self, password: String, hash: Option<PasswordHash>) -> Result<bool> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.dummy.clone());
        let matches = self.run(move || bcrypt::verify(password, &hash.0)).await?;
        Ok(matches && known)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, bcrypt::BcryptError> + Send + 'static,
    ) -> Result<T> {
        let full = |_| Error::timed_out(Dependency::Capacity, "hashing a password");
        let _place = self.places.clone().try_acquire_owned().map_err(|error| full(error.to_string()))?;
        let worker = self.workers.clone().acquire_owned().await.map_err(|error| full(error.to_string()))?;
        tokio::task::spawn_blocking(move || {
            // Held by the thread, not by the caller: a caller that hangs up frees no core.
            let _worker = worker;
            work()
        })
        .await
        .map_err(|error| Error::internal("hashing a password", error))?
        .map_err(|error| Error::internal("hashing a password", error))
    }
}
