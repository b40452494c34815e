//! The right to do work that one process at a time should do. Losing it does no harm: the work is idempotent.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Durable, Sale};
use crate::error::Result;
use crate::store::live::link::Link;

/// A lease that is held.
#[derive(Debug)]
pub(super) struct Lease {
    name: String,
    holder: String,
    renew_at: DateTime<Utc>,
}

impl<L: Link, D: Durable> Sale<L, D> {
    fn lease_ttl(&self) -> Duration {
        Duration::from_millis(self.config.lease_ttl_ms)
    }

    /// Takes a lease; `None` if somebody else has it. `holder` renews its own.
    pub(super) async fn take_lease(&self, name: String, holder: String) -> Result<Option<Lease>> {
        let (now, ttl) = (self.clock.now(), self.lease_ttl());
        let taken = self.durable.take_lease(&name, &holder, now, ttl).await?;
        Ok(taken.then(|| Lease { name, holder, renew_at: now + ttl / 3 }))
    }

    /// Renews it when a third of its time has passed: called at every step of the work.
    pub(super) async fn renew(&self, lease: &mut Lease) -> Result<()> {
        let (now, ttl) = (self.clock.now(), self.lease_ttl());
        if now >= lease.renew_at {
            self.durable.take_lease(&lease.name, &lease.holder, now, ttl).await?;
            lease.renew_at = now + ttl / 3;
        }
        Ok(())
    }

    /// Gives it up, so that nobody has to wait for its end.
    pub(super) async fn give_up(&self, lease: Lease) {
        if let Err(error) = self.durable.give_up_lease(&lease.name, &lease.holder).await {
            tracing::debug!(lease = %lease.name, error = %error, "a lease was left to expire");
        }
    }
}
