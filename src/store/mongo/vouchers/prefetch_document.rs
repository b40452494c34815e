//! A prefetch job as it is stored. Batches and vendors that were passed over are maps, by number and by id: each is changed
//! by its own path, and together with the counts, in one update.

use std::collections::BTreeMap;

use bson::{DateTime, Document, doc, oid::ObjectId};
use serde::{Deserialize, Serialize};

use super::super::error::unreadable;
use crate::domain::ids::{ClientId, PrefetchJobId, UserId, VendorId, VoucherProductId};
use crate::domain::money::{self, Money};
use crate::domain::prefetch::{
    Batch, BatchState, Candidate, PrefetchJob, PrefetchState, Progress, Resolution, SaidBy, external_id,
};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PrefetchDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    reference: String,
    product_id: ObjectId,
    denomination_minor: i64,
    currency: String,
    units: i64,
    client_id: Option<ObjectId>,
    candidates: Vec<CandidateDocument>,
    #[serde(default)]
    passed_over: BTreeMap<String, String>,
    batch_size: i64,
    state: String,
    kill_asked_at: Option<DateTime>,
    counts: CountsDocument,
    next_batch: i64,
    #[serde(default)]
    batches: BTreeMap<String, BatchDocument>,
    reason: Option<String>,
    idle_rounds: i64,
    /// Which claim is in force, if it is being worked on.
    claim: Option<String>,
    due_at: Option<DateTime>,
    created_by: ObjectId,
    created_at: DateTime,
    started_at: Option<DateTime>,
    ended_at: Option<DateTime>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidateDocument {
    vendor_id: ObjectId,
    product_ref: String,
    discount_bp: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CountsDocument {
    bought: i64,
    failed: i64,
    under_way: i64,
    unresolved: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchDocument {
    vendor_id: ObjectId,
    units: i64,
    state: String,
    bought: i64,
    orders: i64,
    ordered_at: DateTime,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    resolution: Option<ResolutionDocument>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResolutionDocument {
    by: ObjectId,
    at: DateTime,
    said_by: String,
    note: Option<String>,
}

impl ResolutionDocument {
    fn read(&self) -> Option<Resolution> {
        let by = UserId::from_bytes(self.by.bytes());
        Some(Resolution {
            by,
            at: self.at.to_chrono(),
            said_by: SaidBy::parse(&self.said_by)?,
            note: self.note.clone(),
        })
    }
}

/// A resolution as it is stored.
pub(super) fn resolution(resolution: &Resolution) -> Document {
    doc! {
        "by": ObjectId::from_bytes(resolution.by.bytes()),
        "at": at(resolution.at),
        "saidBy": resolution.said_by.as_str(),
        "note": resolution.note.as_deref(),
    }
}

pub(super) fn at(moment: chrono::DateTime<chrono::Utc>) -> DateTime {
    DateTime::from_chrono(moment)
}

/// A new batch as it is stored. Its external id is there for whoever looks for it; it follows from job and number.
pub(super) fn new_batch(job: PrefetchJobId, batch: &Batch) -> Document {
    doc! {
        "externalId": external_id(job, batch.number),
        "vendorId": ObjectId::from_bytes(batch.vendor.bytes()),
        "units": i64::from(batch.units),
        "state": batch.state.as_str(),
        "bought": i64::from(batch.bought),
        "orders": i64::from(batch.orders),
        "orderedAt": at(batch.ordered_at),
    }
}

impl PrefetchDocument {
    /// A job that nobody has begun.
    pub(super) fn new(job: &PrefetchJob) -> Self {
        let candidate = |candidate: &Candidate| CandidateDocument {
            vendor_id: ObjectId::from_bytes(candidate.vendor.bytes()),
            product_ref: candidate.product_ref.clone(),
            discount_bp: candidate.discount_bp.into(),
        };
        Self {
            id: ObjectId::from_bytes(job.id.bytes()),
            reference: job.reference.clone(),
            product_id: ObjectId::from_bytes(job.product.bytes()),
            denomination_minor: job.denomination.minor,
            currency: job.denomination.currency.code().to_owned(),
            units: job.units.into(),
            client_id: job.client.map(|client| ObjectId::from_bytes(client.bytes())),
            candidates: job.candidates.iter().map(candidate).collect(),
            passed_over: BTreeMap::new(),
            batch_size: job.batch_size.into(),
            state: job.state.as_str().to_owned(),
            kill_asked_at: None,
            counts: CountsDocument { bought: 0, failed: 0, under_way: 0, unresolved: 0 },
            next_batch: job.next_batch.into(),
            batches: BTreeMap::new(),
            reason: None,
            idle_rounds: 0,
            claim: None,
            due_at: job.due_at.map(at),
            created_by: ObjectId::from_bytes(job.created_by.bytes()),
            created_at: at(job.created_at),
            started_at: None,
            ended_at: None,
        }
    }

    fn candidates(&self) -> Option<Vec<Candidate>> {
        let candidate = |document: &CandidateDocument| {
            let vendor = VendorId::from_bytes(document.vendor_id.bytes());
            Some(Candidate {
                vendor,
                product_ref: document.product_ref.clone(),
                discount_bp: u32::try_from(document.discount_bp).ok()?,
                passed_over: self.passed_over.get(&vendor.to_string()).cloned(),
            })
        };
        self.candidates.iter().map(candidate).collect()
    }

    fn batches(&self) -> Option<Vec<Batch>> {
        let batch = |(number, document): (&String, &BatchDocument)| {
            Some(Batch {
                number: number.parse().ok()?,
                vendor: VendorId::from_bytes(document.vendor_id.bytes()),
                units: u32::try_from(document.units).ok()?,
                state: BatchState::parse(&document.state)?,
                bought: u32::try_from(document.bought).ok()?,
                orders: u32::try_from(document.orders).ok()?,
                ordered_at: document.ordered_at.to_chrono(),
                reason: document.reason.clone(),
                resolution: match &document.resolution {
                    Some(resolution) => Some(resolution.read()?),
                    None => None,
                },
            })
        };
        let mut batches = self.batches.iter().map(batch).collect::<Option<Vec<_>>>()?;
        // As text, 10 stands before 9.
        batches.sort_unstable_by_key(|batch| batch.number);
        Some(batches)
    }
}

impl CountsDocument {
    fn progress(&self) -> Option<Progress> {
        let count = |count: i64| u32::try_from(count).ok();
        Some(Progress {
            bought: count(self.bought)?,
            failed: count(self.failed)?,
            under_way: count(self.under_way)?,
            unresolved: count(self.unresolved)?,
        })
    }
}

impl TryFrom<PrefetchDocument> for PrefetchJob {
    type Error = Error;

    fn try_from(document: PrefetchDocument) -> Result<Self> {
        let broken =
            |what: &str| unreadable("reading a prefetch job", format!("{what} of prefetch job {}", document.id));
        let count = |count: i64, what: &str| u32::try_from(count).map_err(|_| broken(what));
        Ok(Self {
            id: PrefetchJobId::from_bytes(document.id.bytes()),
            product: VoucherProductId::from_bytes(document.product_id.bytes()),
            denomination: Money {
                minor: document.denomination_minor,
                currency: money::currency(&document.currency).ok_or_else(|| broken("currency"))?,
            },
            units: count(document.units, "units")?,
            client: document.client_id.map(|client| ClientId::from_bytes(client.bytes())),
            candidates: document.candidates().ok_or_else(|| broken("candidates"))?,
            batch_size: count(document.batch_size, "batchSize")?,
            state: PrefetchState::parse(&document.state).ok_or_else(|| broken("state"))?,
            kill_asked_at: document.kill_asked_at.map(DateTime::to_chrono),
            progress: document.counts.progress().ok_or_else(|| broken("counts"))?,
            next_batch: count(document.next_batch, "nextBatch")?,
            batches: document.batches().ok_or_else(|| broken("batches"))?,
            idle_rounds: count(document.idle_rounds, "idleRounds")?,
            due_at: document.due_at.map(DateTime::to_chrono),
            created_by: UserId::from_bytes(document.created_by.bytes()),
            created_at: document.created_at.to_chrono(),
            started_at: document.started_at.map(DateTime::to_chrono),
            ended_at: document.ended_at.map(DateTime::to_chrono),
            reference: document.reference,
            reason: document.reason,
        })
    }
}
