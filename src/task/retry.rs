//! Bounded retries, as data.

use std::future::Future;
use std::time::Duration;

use crate::error::Result;

/// How often, and how long to wait in between.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Attempts in all, at least one.
    pub attempts_max: u32,
    /// The pause after the first attempt; the next one is twice as long, then three times.
    pub pause: Duration,
}

impl Retry {
    /// Runs `attempt` until it succeeds, fails for good, or the attempts are used up. There is no pause after the last.
    ///
    /// # Errors
    /// The first error: later ones are usually its echo.
    pub async fn run<T, F: Future<Output = Result<T>>>(self, mut attempt: impl FnMut() -> F) -> Result<T> {
        let mut first = None;
        for number in 1..=self.attempts_max.max(1) {
            match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) => {
                    let last = !error.retryable() || number >= self.attempts_max;
                    let error = first.get_or_insert(error);
                    tracing::warn!(attempt = number, code = error.code().as_str(), "an attempt failed");
                    if last {
                        break;
                    }
                    tokio::time::sleep(self.pause * number).await;
                }
            }
        }
        Err(first.unwrap_or_else(|| crate::error::Error::timed_out(crate::error::Dependency::Capacity, "retrying")))
    }
}
