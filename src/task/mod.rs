//! Running work: the only place that spawns.
//!
//! [`Tracker`] holds one shutdown token and counts running tasks. Work that must not stop half-way because a client
//! hung up (axum drops a handler's future then) goes through [`Tracker::complete`].

pub mod retry;

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Error, Result};

/// Tasks of one application, and the token that asks them to stop.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Tracker {
    /// A tracker without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the application should stop.
    #[must_use]
    pub const fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Runs a background loop; it should watch [`Self::shutdown`].
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.tasks.track_future(task));
    }

    /// Runs `work` to its end even if the caller stops waiting.
    ///
    /// # Errors
    /// What the work returns; [`Error::Internal`] if it panicked.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub async fn complete<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        tokio::spawn(self.tasks.track_future(work)).await.map_err(|panic| Error::internal(doing, panic))?
    }

    /// How many tasks run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Asks every task to stop and waits for them. False if some still run after `grace`.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.shutdown.cancel();
        self.tasks.close();
        tokio::time::timeout(grace, self.tasks.wait()).await.is_ok()
    }

    /// Sleeps, or returns false at once when the application stops.
    pub async fn pause(&self, time: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(time) => true,
            () = self.shutdown.cancelled() => false,
        }
    }
}
