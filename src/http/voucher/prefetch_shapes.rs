//! Prefetch jobs as they are shown.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::ids::PrefetchJobId;
use crate::domain::prefetch::{Batch, Candidate, PrefetchJob, Progress, Resolution, external_id};
use crate::domain::voucher::denomination_text;

/// A vendor that a job may buy from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CandidateBody {
    vendor_id: String,
    product_ref: String,
    discount_bp: u32,
    /// Why the job does not buy from it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<String>,
}

impl From<Candidate> for CandidateBody {
    fn from(candidate: Candidate) -> Self {
        Self {
            vendor_id: candidate.vendor.to_string(),
            product_ref: candidate.product_ref,
            discount_bp: candidate.discount_bp,
            passed_over: candidate.passed_over,
        }
    }
}

/// Units of a job, by what became of them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProgressBody {
    /// In stock.
    bought: u32,
    /// Ordered and not delivered.
    failed: u32,
    /// In batches whose outcome is not known yet.
    under_way: u32,
    /// In batches whose outcome a person must find out.
    unresolved: u32,
}

impl From<Progress> for ProgressBody {
    fn from(progress: Progress) -> Self {
        let Progress { bought, failed, under_way, unresolved } = progress;
        Self { bought, failed, under_way, unresolved }
    }
}

/// A job, without its batches.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PrefetchSummary {
    id: String,
    reference: String,
    product_id: String,
    denomination: String,
    currency: String,
    units: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    candidates: Vec<CandidateBody>,
    /// QUEUED, RUNNING, COMPLETED (every unit is in stock), FAILED (some are, or none) or KILLED.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kill_asked_at: Option<DateTime<Utc>>,
    progress: ProgressBody,
    /// Units that are not in stock.
    missing: u32,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    created_by: String,
    created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<DateTime<Utc>>,
}

impl From<PrefetchJob> for PrefetchSummary {
    fn from(job: PrefetchJob) -> Self {
        Self {
            id: job.id.to_string(),
            missing: job.missing(),
            reference: job.reference,
            product_id: job.product.to_string(),
            denomination: denomination_text(job.denomination),
            currency: job.denomination.currency.code().to_owned(),
            units: job.units,
            client_id: job.client.map(|id| id.to_string()),
            candidates: job.candidates.into_iter().map(Into::into).collect(),
            state: job.state.as_str(),
            kill_asked_at: job.kill_asked_at,
            progress: job.progress.into(),
            reason: job.reason,
            created_by: job.created_by.to_string(),
            created_at: job.created_at,
            started_at: job.started_at,
            ended_at: job.ended_at,
        }
    }
}

/// How the outcome of an unresolved batch was found out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResolutionBody {
    /// The administrator who saw to it.
    by: String,
    at: DateTime<Utc>,
    /// Who said what it was: VENDOR (its API, asked once more) or ADMINISTRATOR.
    said_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl From<Resolution> for ResolutionBody {
    fn from(resolution: Resolution) -> Self {
        let Resolution { by, at, said_by, note } = resolution;
        Self { by: by.to_string(), at, said_by: said_by.as_str(), note }
    }
}

/// One order of a vendor.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BatchBody {
    number: u32,
    /// Its name at the vendor.
    external_id: String,
    vendor_id: String,
    units: u32,
    /// ORDERED, STOCKED, REFUSED or UNRESOLVED.
    state: &'static str,
    /// Units of it that are in stock.
    bought: u32,
    /// How often the vendor was asked to sell it, always under the same name.
    orders: u32,
    ordered_at: DateTime<Utc>,
    /// Why fewer units were bought than ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<ResolutionBody>,
}

impl BatchBody {
    fn of(job: PrefetchJobId, batch: Batch) -> Self {
        Self {
            number: batch.number,
            external_id: external_id(job, batch.number),
            vendor_id: batch.vendor.to_string(),
            units: batch.units,
            state: batch.state.as_str(),
            bought: batch.bought,
            orders: batch.orders,
            ordered_at: batch.ordered_at,
            reason: batch.reason,
            resolution: batch.resolution.map(Into::into),
        }
    }
}

/// A job with its batches.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct PrefetchJobBody {
    #[serde(flatten)]
    job: PrefetchSummary,
    batches: Vec<BatchBody>,
}

impl From<PrefetchJob> for PrefetchJobBody {
    fn from(mut job: PrefetchJob) -> Self {
        let (id, batches) = (job.id, std::mem::take(&mut job.batches));
        Self { job: job.into(), batches: batches.into_iter().map(|batch| BatchBody::of(id, batch)).collect() }
    }
}

/// Jobs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PrefetchJobsBody {
    pub jobs: Vec<PrefetchSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
