//! Jobs, as an administrator sees them: made, shown, listed, killed.

use std::collections::BTreeSet;

use super::Prefetch;
use crate::domain::ids::{ClientId, PrefetchJobId, UserId, VendorId, VoucherProductId};
use crate::domain::money::{MINOR_MAX, Money};
use crate::domain::page::{Listed, Page};
use crate::domain::prefetch::{
    BATCHES_MAX, CANDIDATES_MAX, Candidate, DISCOUNT_BP_MAX, PrefetchJob, PrefetchState, Progress, UNITS_MAX,
};
use crate::error::{Code, Error, FieldError, Result};
use crate::store::mongo::new_id;

/// Characters of a vendor's name for a product.
const PRODUCT_REF_CHARS_MAX: usize = 128;

/// A vendor that may be bought from.
#[derive(Debug, Clone)]
pub struct NewCandidate {
    /// Who.
    pub vendor: VendorId,
    /// The vendor's name for the product.
    pub product_ref: String,
    /// The discount that was agreed on, in basis points.
    pub discount_bp: u32,
}

/// What is to be bought.
#[derive(Debug, Clone)]
pub struct NewPrefetch {
    /// What whoever wants it calls it: the same reference is the same job.
    pub reference: String,
    /// Which product.
    pub product: VoucherProductId,
    /// Of which face value.
    pub denomination: Money,
    /// How many units.
    pub units: u32,
    /// For whom it is reserved, if for somebody.
    pub client: Option<ClientId>,
    /// From whom.
    pub candidates: Vec<NewCandidate>,
}

pub(super) fn unknown() -> Error {
    Error::not_found("prefetch job not found")
}

impl Prefetch {
    /// Makes a job, which begins when a process is free. A job of the same reference for the same is the one that was made:
    /// asking again never buys again.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every rule that is broken; [`Code::ReferenceReused`]; when the database does not answer.
    pub async fn create(&self, admin: UserId, wanted: NewPrefetch) -> Result<PrefetchJob> {
        let fields = broken_rules(&wanted, self.config.batch_size);
        if !fields.is_empty() {
            return Err(Error::Invalid { fields });
        }
        let now = self.clock.now();
        let candidate = |new: NewCandidate| Candidate {
            vendor: new.vendor,
            product_ref: new.product_ref,
            discount_bp: new.discount_bp,
            passed_over: None,
        };
        let job = PrefetchJob {
            id: PrefetchJobId::from_bytes(new_id()),
            reference: wanted.reference,
            product: wanted.product,
            denomination: wanted.denomination,
            units: wanted.units,
            client: wanted.client,
            candidates: wanted.candidates.into_iter().map(candidate).collect(),
            batch_size: self.config.batch_size,
            state: PrefetchState::Queued,
            kill_asked_at: None,
            progress: Progress::default(),
            next_batch: 1,
            batches: Vec::new(),
            reason: None,
            idle_rounds: 0,
            due_at: Some(now),
            created_by: admin,
            created_at: now,
            started_at: None,
            ended_at: None,
        };
        if self.mongo.prefetch_jobs.insert(&job).await? {
            tracing::info!(job = %job.id, units = job.units, %admin, "prefetch job made");
            return Ok(job);
        }
        match self.mongo.prefetch_jobs.by_reference(&job.reference).await? {
            Some(before) if before.is_for_the_same(&job) => Ok(before),
            Some(_) => Err(Error::refused(Code::ReferenceReused, "another prefetch job has this reference")),
            None => Err(Error::internal("making a prefetch job", "a job was there and is gone")),
        }
    }

    /// A job with its batches.
    ///
    /// # Errors
    /// [`crate::error::Code::NotFound`]; when the database does not answer.
    pub async fn job(&self, id: PrefetchJobId) -> Result<PrefetchJob> {
        self.mongo.prefetch_jobs.by_id(id).await?.ok_or_else(unknown)
    }

    /// Jobs in one state, or in any, newest first, without their batches.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn jobs(&self, state: Option<PrefetchState>, page: Page) -> Result<Listed<PrefetchJob>> {
        self.mongo.prefetch_jobs.list(state, page).await
    }

    /// Stops a job: no batch begins any more. One that has not begun is killed at once; else it is when the outcome of what
    /// is under way is known, and what was bought is kept. A job that has ended stays as it is. Returns the job as it is
    /// then.
    ///
    /// # Errors
    /// [`crate::error::Code::NotFound`]; when the database does not answer.
    pub async fn kill(&self, admin: UserId, id: PrefetchJobId) -> Result<PrefetchJob> {
        let job = self.mongo.prefetch_jobs.kill(id, self.clock.now()).await?.ok_or_else(unknown)?;
        tracing::info!(job = %id, state = job.state.as_str(), %admin, "the end of a prefetch job was asked for");
        Ok(job)
    }
}

fn broken_rules(wanted: &NewPrefetch, batch_size: u32) -> Vec<FieldError> {
    let mut fields = Vec::new();
    let mut broken = |field: String, message: String| fields.push(FieldError { field, message });
    let units_max = UNITS_MAX.min(BATCHES_MAX.saturating_mul(batch_size));
    if !(1..=units_max).contains(&wanted.units) {
        broken("units".to_owned(), format!("must be from 1 to {units_max}"));
    }
    if !(1..=MINOR_MAX).contains(&wanted.denomination.minor) {
        broken("denomination".to_owned(), format!("must be from 1 to {MINOR_MAX} minor units"));
    }
    if !(1..=CANDIDATES_MAX).contains(&wanted.candidates.len()) {
        broken("candidates".to_owned(), format!("must be from 1 to {CANDIDATES_MAX} vendors"));
    }
    let mut seen = BTreeSet::new();
    for (index, candidate) in wanted.candidates.iter().enumerate() {
        if !seen.insert(candidate.vendor) {
            broken(format!("candidates[{index}].vendorId"), "is there twice".to_owned());
        }
        if candidate.discount_bp > DISCOUNT_BP_MAX {
            let message = format!("must be at most {DISCOUNT_BP_MAX} basis points");
            broken(format!("candidates[{index}].discountBp"), message);
        }
        if !names_a_product(&candidate.product_ref) {
            let message =
                format!("must have from 1 to {PRODUCT_REF_CHARS_MAX} characters, none of them a control character");
            broken(format!("candidates[{index}].productRef"), message);
        }
    }
    fields
}

/// It becomes a part of an address, where dots alone lead elsewhere.
fn names_a_product(text: &str) -> bool {
    (1..=PRODUCT_REF_CHARS_MAX).contains(&text.chars().count())
        && !text.chars().any(char::is_control)
        && ![".", ".."].contains(&text)
        && text.trim() == text
}
