//! One round of a job: what is open is asked about, then as much is bought as vendors sell, then it is decided how the job
//! goes on.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::Prefetch;
use super::batch::{Brought, Hold};
use super::choose::Chosen;
use crate::domain::ids::VendorId;
use crate::domain::prefetch::{Batch, BatchState, PrefetchJob, PrefetchState};
use crate::error::Result;
use crate::store::mongo::vouchers::BatchEnd;

/// Rounds in which nothing is heard of an open batch until it is left to a person (with the pause of a second: about nine
/// hours).
const UNRESOLVED_ROUNDS_MAX: u32 = 20;

/// How a job goes on.
enum Verdict {
    /// Not at all.
    End(PrefetchState, Option<&'static str>),
    /// A person must ask about its open batches.
    GiveUp,
    /// Later.
    Wait,
}

/// Batches that were left as they are.
#[derive(Debug, Default)]
struct Left {
    /// Vendors that do not tell what became of one. Nothing more is ordered of them in this round.
    silent: BTreeSet<VendorId>,
    /// Vendors that are at work on one.
    pending: BTreeSet<VendorId>,
}

impl Left {
    fn note(&mut self, vendor: VendorId, brought: Brought) {
        match brought {
            Brought::Open => drop(self.silent.insert(vendor)),
            Brought::Pending => drop(self.pending.insert(vendor)),
            Brought::Full | Brought::Short | Brought::Lost => {}
        }
    }
}

impl Prefetch {
    pub(super) async fn round(&self, hold: &Hold<'_>) -> Result<()> {
        let jobs = &self.mongo.prefetch_jobs;
        // A vendor that takes its time is still the best one; if it takes very long, the rest is bought elsewhere.
        let patient = hold.job.idle_rounds < self.config.retries;
        let mut left = Left::default();
        self.resume(hold, &mut left).await?;
        while !hold.stop.is_cancelled() && (left.pending.is_empty() || !patient) {
            let Some(job) = jobs.held(hold.job.id, hold.claim).await? else { return Ok(()) };
            if job.kill_asked_at.is_some() || job.to_order() == 0 {
                break;
            }
            let resting = left.silent.union(&left.pending).copied().collect();
            let Some(chosen) = self.choose(&job, &resting).await else { break };
            self.buy_from(hold, &job, &chosen, &mut left).await?;
        }
        self.conclude(hold).await
    }

    /// Asks about every open batch.
    async fn resume(&self, hold: &Hold<'_>, left: &mut Left) -> Result<()> {
        let open: Vec<Batch> = hold.job.open_batches().cloned().collect();
        let mut asked = futures::stream::iter(open)
            .map(|batch| async move { (batch.vendor, self.resume_batch(hold, batch).await) })
            .buffer_unordered(self.config.concurrency);
        let mut fault = Ok(());
        while let Some((vendor, brought)) = asked.next().await {
            match brought {
                Ok(brought) => left.note(vendor, brought),
                Err(error) => fault = Err(error),
            }
        }
        fault
    }

    /// Buys from one vendor until everything is bought, an end is asked for, or the vendor fails.
    async fn buy_from(&self, hold: &Hold<'_>, job: &PrefetchJob, chosen: &Chosen, left: &mut Left) -> Result<()> {
        let (mut units, mut number) = (job.to_order(), job.next_batch);
        let (mut goes_on, mut fault) = (true, Ok(()));
        let mut under_way = FuturesUnordered::new();
        loop {
            while goes_on && units > 0 && under_way.len() < self.config.concurrency && !hold.stop.is_cancelled() {
                let batch = self.new_batch(number, chosen.vendor, units.min(job.batch_size));
                // Recorded before the vendor is asked: whatever happens then, somebody asks about it.
                match self.mongo.prefetch_jobs.begin_batch(job.id, hold.claim, &batch).await {
                    Ok(true) => {
                        (units, number) = (units - batch.units, number + 1);
                        under_way.push(self.buy_batch(hold, chosen.api.as_ref(), batch));
                    }
                    Ok(false) => goes_on = false,
                    Err(error) => (goes_on, fault) = (false, Err(error)),
                }
            }
            // Those under way are brought to their ends even if one has failed: each of them may have been sold.
            match under_way.next().await {
                None => break,
                Some(Ok(brought)) => {
                    goes_on &= brought == Brought::Full;
                    left.note(chosen.vendor, brought);
                }
                Some(Err(error)) => (goes_on, fault) = (false, Err(error)),
            }
        }
        fault
    }

    fn new_batch(&self, number: u32, vendor: VendorId, units: u32) -> Batch {
        let ordered_at = self.clock.now();
        Batch {
            number,
            vendor,
            units,
            state: BatchState::Ordered,
            bought: 0,
            orders: 1,
            ordered_at,
            reason: None,
            resolution: None,
        }
    }

    /// Ends the job, or gives it back for another round.
    async fn conclude(&self, hold: &Hold<'_>) -> Result<()> {
        let (id, claim, jobs) = (hold.job.id, hold.claim, &self.mongo.prefetch_jobs);
        // Until the claim is lost or what was decided is written. It is not if an end was asked for meanwhile.
        while let Some(job) = jobs.held(id, claim).await? {
            let now = self.clock.now();
            let written = match self.verdict(&job) {
                Verdict::End(state, reason) => {
                    let ended = jobs.end(id, claim, state, reason, now).await?;
                    if ended {
                        let (state, bought, units) = (state.as_str(), job.progress.bought, job.units);
                        tracing::info!(job = %id, state, bought, units, reason, "prefetch job ended");
                    }
                    ended
                }
                Verdict::GiveUp => {
                    self.give_up(hold, &job).await?;
                    false
                }
                Verdict::Wait if hold.stop.is_cancelled() => jobs.give_back(&job, claim, job.idle_rounds, now).await?,
                Verdict::Wait => {
                    let idle_rounds = job.idle_rounds.saturating_add(1);
                    jobs.give_back(&job, claim, idle_rounds, now + self.pause_after(idle_rounds)).await?
                }
            };
            if written {
                break;
            }
        }
        Ok(())
    }

    fn verdict(&self, job: &PrefetchJob) -> Verdict {
        if job.progress.under_way > 0 {
            return if job.idle_rounds >= UNRESOLVED_ROUNDS_MAX { Verdict::GiveUp } else { Verdict::Wait };
        }
        if job.missing() == 0 {
            return Verdict::End(PrefetchState::Completed, None);
        }
        if job.kill_asked_at.is_some() {
            return Verdict::End(PrefetchState::Killed, None);
        }
        let failed = |reason| Verdict::End(PrefetchState::Failed, Some(reason));
        match job.willing().next() {
            _ if job.progress.unresolved > 0 => failed("nobody could say what became of a batch; see its batches"),
            None => failed("every vendor has refused or failed"),
            Some(_) if job.idle_rounds >= self.config.retries => failed("no vendor offers enough units"),
            Some(_) => Verdict::Wait,
        }
    }

    async fn give_up(&self, hold: &Hold<'_>, job: &PrefetchJob) -> Result<()> {
        for batch in job.open_batches() {
            tracing::error!(job = %job.id, batch = batch.number, vendor = %batch.vendor, "nobody says what became of an order of vouchers; a person must ask");
            let reason = Some("no_answer".to_owned());
            let unresolved = BatchEnd { state: BatchState::Unresolved, bought: 0, reason };
            self.close(hold, batch, &unresolved).await?;
        }
        Ok(())
    }
}
