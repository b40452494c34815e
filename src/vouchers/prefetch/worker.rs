//! The loop of every process: it takes a job that is due, and keeps it as long as it works on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Prefetch;
use super::batch::Hold;
use crate::error::Result;
use crate::store::mongo::vouchers::ClaimedJob;
use crate::task::Tracker;

impl Prefetch {
    /// Works on jobs until the application stops. Calls that are being made then are finished; another process goes on with
    /// the job.
    pub async fn keep_prefetching(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.poll_interval_ms);
        let mut pause = interval;
        while tasks.pause(pause).await {
            let (prefetch, stop) = (Arc::clone(&self), tasks.shutdown().clone());
            let work = async move { prefetch.work(&stop).await };
            pause = match tasks.complete("prefetching vouchers", work).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => interval,
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error.chain(), "vouchers cannot be bought now");
                    interval
                }
            };
        }
    }

    /// One round of the job that has been due for longest; false if there is none.
    ///
    /// # Errors
    /// When the database or the stock does not answer. The job is due again soon, or else when its claim runs out.
    pub async fn work(&self, stop: &CancellationToken) -> Result<bool> {
        let Some(claimed) = self.mongo.prefetch_jobs.claim(self.clock.now(), self.claim_ttl()).await? else {
            return Ok(false);
        };
        let hold = Hold { job: &claimed.job, claim: &claimed.claim, stop };
        tokio::select! {
            biased;
            done = self.round(&hold) => if let Err(error) = done {
                self.leave(&claimed).await;
                return Err(error);
            },
            () = self.renew_until_lost(&claimed) => {
                tracing::warn!(job = %claimed.job.id, "a prefetch job was lost to another process, or may be soon");
            }
        }
        Ok(true)
    }

    /// Gives a job back that could not be worked on. It is not its vendors' fault.
    async fn leave(&self, claimed: &ClaimedJob) {
        let (jobs, due) = (&self.mongo.prefetch_jobs, self.clock.now() + self.pause_after(1));
        if let Ok(Some(job)) = jobs.held(claimed.job.id, &claimed.claim).await {
            drop(jobs.give_back(&job, &claimed.claim, job.idle_rounds, due).await);
        }
    }

    /// Beside the work and not between its steps: how long a step takes is the vendor's affair.
    async fn renew_until_lost(&self, claimed: &ClaimedJob) {
        let (jobs, ttl) = (&self.mongo.prefetch_jobs, self.claim_ttl());
        let mut renewed = Instant::now();
        // A call to a vendor may take half the time to live. One that begins before the first half is over ends before
        // anybody else has the job.
        while renewed.elapsed() < ttl / 2 {
            tokio::time::sleep(ttl / 6).await;
            let asked = Instant::now();
            match jobs.renew(claimed.job.id, &claimed.claim, self.clock.now(), ttl).await {
                Ok(true) => renewed = asked,
                Ok(false) => return,
                Err(error) => tracing::debug!(job = %claimed.job.id, error = %error, "a claim could not be renewed"),
            }
        }
    }

    const fn claim_ttl(&self) -> Duration {
        Duration::from_millis(self.config.claim_ttl_ms)
    }
}
