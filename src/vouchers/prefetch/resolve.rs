//! What became of an unresolved batch: its vendor is asked once more, or an administrator has been told.
//!
//! The codes go into stock first, then the batch, its counts and who said so change in one update. A crash in between leaves
//! the batch unresolved; doing it again adds nothing twice. Nothing is ordered here, and a job that has ended stays as it
//! ended.

use super::Prefetch;
use super::batch::{NOT_PLACED, bought};
use super::jobs::unknown;
use super::stock::BoughtVoucher;
use super::vendor::OrderOutcome;
use crate::domain::ids::{PrefetchJobId, UserId};
use crate::domain::prefetch::{Batch, BatchState, PrefetchJob, Resolution, SaidBy, external_id};
use crate::error::{Code, Error, Result};
use crate::store::mongo::vouchers::BatchEnd;
use crate::telemetry::metrics::PREFETCH_UNITS;

/// Why an administrator's batch has no units.
const SOLD_NOTHING: &str = "sold_nothing";

/// What a vendor has told an administrator of a batch.
#[derive(Debug)]
pub enum Told {
    /// It was sold, and these are the codes.
    Sold(Vec<BoughtVoucher>),
    /// Nothing was sold, and nothing will be.
    Nothing,
}

fn refused(message: &'static str) -> Error {
    Error::refused(Code::VoucherState, message)
}

impl Prefetch {
    /// Asks the vendor of an unresolved batch once more what became of it, and records what it says. Of a batch that was
    /// resolved nothing is asked. Returns the job as it is then.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::VoucherState`] if the batch is not unresolved, its vendor cannot be reached as things are
    /// set up, or is not ready; [`Code::VendorUnavailable`] if it does not say; when the database does not answer. The batch
    /// is as it was then, and can be asked about again.
    pub async fn ask_again(&self, admin: UserId, id: PrefetchJobId, number: u32) -> Result<PrefetchJob> {
        let (job, batch) = self.batch(id, number).await?;
        if batch.resolution.is_some() {
            return Ok(job);
        }
        expect_unresolved(&batch)?;
        let none = || refused("the batch's vendor has no connection that is enabled");
        let api = self.vendors.api(batch.vendor).await?.ok_or_else(none)?;
        let end = match api.find_order(&external_id(id, number)).await? {
            Some(OrderOutcome::Fulfilled(vouchers)) => self.stocked(&job, &batch, vouchers).await?,
            Some(OrderOutcome::Refused(refusal)) => self.nothing(&job, &batch, &refusal.reason).await?,
            None => self.nothing(&job, &batch, NOT_PLACED).await?,
            Some(OrderOutcome::Pending) => {
                return Err(refused("the vendor has accepted the order and is not ready; ask again later"));
            }
        };
        self.record(&job, &batch, end, (admin, SaidBy::Vendor, None)).await
    }

    /// Records what an administrator was told of an unresolved batch; what was sold comes into stock. Of a batch that was
    /// resolved the same way nothing is changed. Returns the job as it is then.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::VoucherState`] if the batch is not unresolved, or if nothing is to have been sold of which
    /// there are codes in stock; when a store does not answer. Resolving it again is safe.
    pub async fn resolve(
        &self,
        admin: UserId,
        (id, number): (PrefetchJobId, u32),
        told: Told,
        note: Option<String>,
    ) -> Result<PrefetchJob> {
        let (job, batch) = self.batch(id, number).await?;
        let state = if matches!(told, Told::Nothing) { BatchState::Refused } else { BatchState::Stocked };
        if batch.resolution.is_some() && batch.state == state {
            return Ok(job);
        }
        expect_unresolved(&batch)?;
        let end = match told {
            Told::Sold(vouchers) => self.stocked(&job, &batch, vouchers).await?,
            Told::Nothing => self.nothing(&job, &batch, SOLD_NOTHING).await?,
        };
        self.record(&job, &batch, end, (admin, SaidBy::Administrator, note)).await
    }

    async fn batch(&self, id: PrefetchJobId, number: u32) -> Result<(PrefetchJob, Batch)> {
        let job = self.mongo.prefetch_jobs.by_id(id).await?.ok_or_else(unknown)?;
        let batch = job.batch(number).cloned().ok_or_else(|| Error::not_found("the job has no such batch"))?;
        Ok((job, batch))
    }

    /// The end of a batch of which nothing was sold. A process that was cut off may have taken its codes in.
    async fn nothing(&self, job: &PrefetchJob, batch: &Batch, reason: &str) -> Result<BatchEnd> {
        if self.stock.add(bought(job, batch, Vec::new())).await?.units > 0 {
            return Err(refused("codes of this batch are in stock: it was sold"));
        }
        Ok(BatchEnd { state: BatchState::Refused, bought: 0, reason: Some(reason.to_owned()) })
    }

    async fn record(
        &self,
        job: &PrefetchJob,
        batch: &Batch,
        end: BatchEnd,
        (by, said_by, note): (UserId, SaidBy, Option<String>),
    ) -> Result<PrefetchJob> {
        let resolution = Resolution { by, at: self.clock.now(), said_by, note };
        if !self.mongo.prefetch_jobs.resolve_batch(job.id, batch, &end, &resolution).await? {
            return Err(refused("somebody else has resolved this batch meanwhile"));
        }
        let missing = batch.units.saturating_sub(end.bought);
        metrics::counter!(PREFETCH_UNITS, "outcome" => "bought").increment(end.bought.into());
        metrics::counter!(PREFETCH_UNITS, "outcome" => "failed").increment(missing.into());
        let (said_by, bought) = (said_by.as_str(), end.bought);
        tracing::info!(job = %job.id, batch = batch.number, said_by, bought, missing, admin = %by, "a batch of vouchers was resolved");
        self.job(job.id).await
    }
}

fn expect_unresolved(batch: &Batch) -> Result<()> {
    match batch.state {
        BatchState::Unresolved => Ok(()),
        BatchState::Ordered => {
            Err(refused("the batch is still being asked about; kill the job if nothing more is to be bought"))
        }
        BatchState::Stocked | BatchState::Refused => Err(refused("the outcome of the batch is known")),
    }
}
