//! The right to do work that one process at a time should do. Losing it does no harm: the work is idempotent.

use std::future::Future;
use std::time::Duration;

use super::{Durable, Sale};
use crate::error::Result;
use crate::store::live::link::Link;

/// What a lease is for, and who has it.
#[derive(Debug)]
pub(super) struct Lease {
    pub name: String,
    /// Whoever says the same renews it.
    pub holder: String,
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Does the work under a lease, and gives it up; `None` if somebody else has it.
    pub(super) async fn under_lease<T>(
        &self,
        lease: &Lease,
        work: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        let done = self.under_lasting_lease(lease, work).await?;
        if done.is_some()
            && let Err(error) = self.durable.give_up_lease(&lease.name, &lease.holder).await
        {
            tracing::debug!(lease = %lease.name, error = %error, "a lease was left to expire");
        }
        done.transpose()
    }

    /// As [`Self::under_lease`], but it stays taken until it expires, or is taken again by the same holder.
    pub(super) async fn under_lasting_lease<T>(
        &self,
        lease: &Lease,
        work: impl Future<Output = Result<T>>,
    ) -> Result<Option<Result<T>>> {
        if !self.take(lease).await? {
            return Ok(None);
        }
        // Beside the work and not between its steps: how long a step takes is the database's affair.
        let renewing = async {
            loop {
                tokio::time::sleep(self.lease_ttl() / 3).await;
                if let Err(error) = self.take(lease).await {
                    tracing::debug!(lease = %lease.name, error = %error, "a lease could not be renewed");
                }
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(Some(done)),
            never = renewing => never,
        }
    }

    async fn take(&self, lease: &Lease) -> Result<bool> {
        self.durable.take_lease(&lease.name, &lease.holder, self.clock.now(), self.lease_ttl()).await
    }

    const fn lease_ttl(&self) -> Duration {
        Duration::from_millis(self.config.lease_ttl_ms)
    }
}
