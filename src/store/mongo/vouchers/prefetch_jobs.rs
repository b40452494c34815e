//! Collection `prefetchJobs`. A job is claimed by moving the time at which it is due into the future, and the claim is
//! renewed while it is worked on: a process that dies leaves it due again, and one that stalled finds that it has lost it.
//!
//! Whatever the holder of a claim writes is guarded by it, and by what it changes: a batch begins unless an end was asked
//! for, it is decided once, and the counts change in the same update.

use std::time::Duration;

use bson::{Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};

use super::super::error::{unless_duplicate, within};
use super::super::query::{self, Order as ListOrder};
use super::prefetch_document::{PrefetchDocument, at, new_batch};
use crate::domain::ids::{PrefetchJobId, VendorId};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::prefetch::{Batch, BatchState, PrefetchJob, PrefetchState};
use crate::error::Result;

type Moment = chrono::DateTime<chrono::Utc>;

/// A job that this process has in hand.
#[derive(Debug, Clone)]
pub struct ClaimedJob {
    /// The job, as it was then.
    pub job: PrefetchJob,
    /// Names the claim.
    pub claim: String,
}

/// What became of a batch.
#[derive(Debug, Clone)]
pub struct BatchEnd {
    /// What is known of it now.
    pub state: BatchState,
    /// Units of it that are in stock.
    pub bought: u32,
    /// Why it is not all of them. The job passes its vendor over for that reason.
    pub reason: Option<String>,
}

/// Jobs that buy voucher codes.
#[derive(Debug)]
pub struct PrefetchJobs {
    pub(super) collection: Collection<PrefetchDocument>,
    pub(super) deadline: Duration,
}

pub(super) fn id_of(job: PrefetchJobId) -> ObjectId {
    ObjectId::from_bytes(job.bytes())
}

/// A job as long as this claim is in force.
fn held(job: PrefetchJobId, claim: &str) -> Document {
    doc! { "_id": id_of(job), "claim": claim, "state": PrefetchState::Running.as_str() }
}

/// The states that may become this one, for a filter.
fn before(state: PrefetchState) -> Document {
    doc! { "$in": state.before().map(PrefetchState::as_str).collect::<Vec<_>>() }
}

impl PrefetchJobs {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("prefetchJobs"), deadline }
    }

    /// Records a new job; false if its reference is taken.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(&self, job: &PrefetchJob) -> Result<bool> {
        let call = self.collection.insert_one(PrefetchDocument::new(job));
        Ok(unless_duplicate(self.deadline, "recording a prefetch job", call).await?.is_some())
    }

    /// The job of this reference, with its batches.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_reference(&self, reference: &str) -> Result<Option<PrefetchJob>> {
        self.find(doc! { "reference": reference }).await
    }

    /// The job of this id, with its batches.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, job: PrefetchJobId) -> Result<Option<PrefetchJob>> {
        self.find(doc! { "_id": id_of(job) }).await
    }

    /// Jobs in one state, or in any, newest first, without their batches.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn list(&self, state: Option<PrefetchState>, page: Page) -> Result<Listed<PrefetchJob>> {
        let filter = state.map_or_else(Document::new, |state| doc! { "state": state.as_str() });
        let find = query::find_page(&self.collection, filter, ListOrder::NewestFirst, page);
        let find = find.projection(doc! { "batches": 0 });
        let call = async { find.await?.try_collect::<Vec<_>>().await };
        let rows = within(self.deadline, "listing prefetch jobs", call).await?;
        let rows = rows.into_iter().map(PrefetchJob::try_from).collect::<Result<Vec<_>>>()?;
        let cursor =
            |row: &PrefetchJob| Cursor { created_at_ms: row.created_at.timestamp_millis(), id: row.id.bytes() };
        Ok(Listed::from_rows(rows, page, cursor))
    }

    /// Takes the job that has been due for longest. For `ttl` nobody else gets it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn claim(&self, now: Moment, ttl: Duration) -> Result<Option<ClaimedJob>> {
        let claim = uuid::Uuid::new_v4().simple().to_string();
        let until = at(now).saturating_add_duration(ttl);
        let running = PrefetchState::Running;
        // What somebody has left half-way comes before what nobody has begun.
        for (state, starts) in [(doc! { "$eq": running.as_str() }, false), (before(running), true)] {
            let which = doc! { "state": state, "dueAt": { "$lte": at(now) } };
            let mut set = doc! { "state": running.as_str(), "claim": &claim, "dueAt": until };
            if starts {
                set.insert("startedAt", at(now));
            }
            let call = self.collection.find_one_and_update(which, doc! { "$set": set });
            let call = call.sort(doc! { "dueAt": 1 }).return_document(ReturnDocument::After);
            if let Some(document) = within(self.deadline, "claiming a prefetch job", call).await? {
                return Ok(Some(ClaimedJob { job: document.try_into()?, claim }));
            }
        }
        Ok(None)
    }

    /// Keeps a job for `ttl` more; false if the claim is no longer in force.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn renew(&self, job: PrefetchJobId, claim: &str, now: Moment, ttl: Duration) -> Result<bool> {
        let set = doc! { "dueAt": at(now).saturating_add_duration(ttl) };
        self.change("renewing a claim", held(job, claim), doc! { "$set": set }).await
    }

    /// The job as it is now, if the claim is still in force.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn held(&self, job: PrefetchJobId, claim: &str) -> Result<Option<PrefetchJob>> {
        self.find(held(job, claim)).await
    }

    /// Records a batch before its vendor is asked; false if an end was asked for, or the claim or the number is no longer
    /// good.
    ///
    /// # Errors
    /// When the database does not answer: whether it was recorded is unknown, and its vendor must not be asked.
    pub async fn begin_batch(&self, job: PrefetchJobId, claim: &str, batch: &Batch) -> Result<bool> {
        let mut which = held(job, claim);
        which.extend(doc! { "killAskedAt": null, "nextBatch": i64::from(batch.number) });
        let change = doc! {
            "$set": {
                format!("batches.{}", batch.number): new_batch(job, batch),
                "nextBatch": i64::from(batch.number) + 1,
            },
            "$inc": { "counts.underWay": i64::from(batch.units) },
        };
        self.change("recording a batch", which, change).await
    }

    /// Records that a vendor is about to be asked for the same batch again; false as for [`Self::begin_batch`].
    ///
    /// # Errors
    /// When the database does not answer; then the vendor must not be asked.
    pub async fn order_again(&self, job: PrefetchJobId, claim: &str, number: u32, now: Moment) -> Result<bool> {
        let mut which = held(job, claim);
        which.insert("killAskedAt", bson::Bson::Null);
        which.insert(format!("batches.{number}.state"), BatchState::Ordered.as_str());
        let change = doc! {
            "$set": { format!("batches.{number}.orderedAt"): at(now) },
            "$inc": { format!("batches.{number}.orders"): 1_i64 },
        };
        self.change("recording another attempt", which, change).await
    }

    /// Records what became of a batch, in the batch and in the counts; false if it is recorded already, or the claim is no
    /// longer in force.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn end_batch(&self, job: PrefetchJobId, claim: &str, batch: &Batch, end: &BatchEnd) -> Result<bool> {
        let (number, units, bought) = (batch.number, i64::from(batch.units), i64::from(end.bought));
        let mut which = held(job, claim);
        // Not one that was left to a person: its units are counted elsewhere.
        which.insert(format!("batches.{number}.state"), BatchState::Ordered.as_str());
        let mut set = doc! {
            format!("batches.{number}.state"): end.state.as_str(),
            format!("batches.{number}.bought"): bought,
            "idleRounds": 0_i64,
        };
        let mut counts = doc! { "counts.underWay": -units, "counts.bought": bought };
        if end.state == BatchState::Unresolved {
            counts.insert("counts.unresolved", units);
        } else {
            counts.insert("counts.failed", (units - bought).max(0));
        }
        if let Some(reason) = &end.reason {
            set.insert(format!("batches.{number}.reason"), reason);
            set.insert(format!("passedOver.{}", batch.vendor), reason);
        }
        self.change("recording what became of a batch", which, doc! { "$set": set, "$inc": counts }).await
    }

    /// Records that a job buys nothing from a vendor any more; false if the claim is no longer in force.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn pass_over(&self, job: PrefetchJobId, claim: &str, vendor: VendorId, reason: &str) -> Result<bool> {
        let set = doc! { format!("passedOver.{vendor}"): reason };
        self.change("passing a vendor over", held(job, claim), doc! { "$set": set }).await
    }

    /// Ends a job of which nothing is under way. False if the claim is no longer in force, or if it is to fail and an
    /// administrator has just asked for its end.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn end(
        &self,
        job: PrefetchJobId,
        claim: &str,
        state: PrefetchState,
        reason: Option<&str>,
        now: Moment,
    ) -> Result<bool> {
        let mut which = held(job, claim);
        which.extend(doc! { "state": before(state), "counts.underWay": 0_i64 });
        if state == PrefetchState::Failed {
            which.insert("killAskedAt", bson::Bson::Null);
        }
        let set = doc! { "state": state.as_str(), "reason": reason, "endedAt": at(now), "dueAt": null, "claim": null };
        self.change("ending a prefetch job", which, doc! { "$set": set }).await
    }

    /// Gives a job back, to be worked on at `due`. False if the claim is no longer in force, or if an administrator has
    /// asked for the job's end since it was read.
    ///
    /// # Errors
    /// When the database does not answer; then it is due when the claim runs out.
    pub async fn give_back(&self, job: &PrefetchJob, claim: &str, idle_rounds: u32, due: Moment) -> Result<bool> {
        let mut which = held(job.id, claim);
        which.insert("killAskedAt", job.kill_asked_at.map(at));
        let set = doc! { "claim": null, "dueAt": at(due), "idleRounds": i64::from(idle_rounds) };
        self.change("giving a prefetch job back", which, doc! { "$set": set }).await
    }

    /// Asks for a job's end: from now on no batch begins. One that has not started ends at once. Returns the job as it is
    /// then, `None` if there is none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn kill(&self, job: PrefetchJobId, now: Moment) -> Result<Option<PrefetchJob>> {
        const DOING: &str = "killing a prefetch job";
        let (id, running) = (id_of(job), PrefetchState::Running.as_str());
        let queued = doc! { "_id": id, "state": PrefetchState::Queued.as_str() };
        let killed = doc! {
            "state": PrefetchState::Killed.as_str(), "killAskedAt": at(now), "endedAt": at(now), "dueAt": null,
        };
        if !self.change(DOING, queued, doc! { "$set": killed }).await? {
            let asked = doc! { "$set": { "killAskedAt": at(now) } };
            self.change(DOING, doc! { "_id": id, "state": running, "killAskedAt": null }, asked).await?;
            // Whoever has it in hand sees it; one that waits for its time need not wait.
            let waiting = doc! { "_id": id, "state": running, "claim": null };
            self.change(DOING, waiting, doc! { "$set": { "dueAt": at(now) } }).await?;
        }
        self.by_id(job).await
    }

    async fn find(&self, filter: Document) -> Result<Option<PrefetchJob>> {
        let call = self.collection.find_one(filter);
        within(self.deadline, "reading a prefetch job", call).await?.map(PrefetchJob::try_from).transpose()
    }

    pub(super) async fn change(&self, doing: &'static str, which: Document, change: Document) -> Result<bool> {
        Ok(within(self.deadline, doing, self.collection.update_one(which, change)).await?.matched_count == 1)
    }
}
