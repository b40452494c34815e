//! Batches of prefetch jobs that nobody could find out about, and what a person has found out since.

use bson::{Document, doc};
use futures::TryStreamExt;

use super::super::error::within;
use super::prefetch_document::resolution as stored;
use super::prefetch_jobs::{BatchEnd, PrefetchJobs, id_of};
use crate::domain::ids::PrefetchJobId;
use crate::domain::prefetch::{Batch, BatchState, PrefetchJob, Resolution};
use crate::error::Result;

impl PrefetchJobs {
    /// Jobs with unresolved batches, oldest first, at most so many.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unresolved(&self, limit: u32) -> Result<Vec<PrefetchJob>> {
        let which = doc! { "counts.unresolved": { "$gt": 0_i64 } };
        let call = async {
            let find = self.collection.find(which).sort(doc! { "_id": 1 }).limit(i64::from(limit));
            find.await?.try_collect::<Vec<_>>().await
        };
        let rows = within(self.deadline, "looking for unresolved batches", call).await?;
        rows.into_iter().map(PrefetchJob::try_from).collect()
    }

    /// Records what became of an unresolved batch, in the batch, with who says so, and in the counts; false if it is not
    /// unresolved any more.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn resolve_batch(
        &self,
        job: PrefetchJobId,
        batch: &Batch,
        end: &BatchEnd,
        resolution: &Resolution,
    ) -> Result<bool> {
        let (number, units, bought) = (batch.number, i64::from(batch.units), i64::from(end.bought));
        let path = |field: &str| format!("batches.{number}.{field}");
        let mut which: Document = doc! { "_id": id_of(job) };
        which.insert(path("state"), BatchState::Unresolved.as_str());
        let set = doc! {
            path("state"): end.state.as_str(),
            path("bought"): bought,
            path("reason"): end.reason.as_deref(),
            path("resolution"): stored(resolution),
        };
        let counts = doc! {
            "counts.unresolved": -units, "counts.bought": bought, "counts.failed": (units - bought).max(0),
        };
        self.change("recording what became of a batch", which, doc! { "$set": set, "$inc": counts }).await
    }
}
