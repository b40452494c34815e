//! Collection `events`: what is due, and why something that was due did not happen. Only due events are read, by the
//! indexes `phase_opens` and `phase_ends`.

use bson::{DateTime, Document, doc};
use chrono::Utc;
use futures::TryStreamExt;
use serde::Deserialize;

use super::error::within;
use super::events::{Events, by_id, in_phases};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::EventId;
use crate::domain::page::{Listed, Page};
use crate::domain::schedule::ScheduleProblem;
use crate::error::Result;

/// An opening that nobody has made possible is tried for a week.
const OVERDUE_MAX: chrono::Duration = chrono::Duration::days(7);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProblemHolder {
    schedule_problem: Option<ProblemDocument>,
}

#[derive(Debug, Deserialize)]
struct ProblemDocument {
    code: String,
    message: String,
    since: DateTime,
}

impl Events {
    /// Events that are to open by themselves at `now` and are still being prepared, the longest overdue first: not those
    /// whose end has come meanwhile, and not those that are to be tried again later.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn due_to_open(&self, now: chrono::DateTime<Utc>, limit: u32) -> Result<Vec<Event>> {
        let (at, oldest) = (DateTime::from_chrono(now), DateTime::from_chrono(now - OVERDUE_MAX));
        let filter = doc! {
            "salePhase": SalePhase::Draft.as_str(),
            "autoOpen": true,
            "scheduledAt": { "$gte": oldest, "$lte": at },
            "deletedAt": null,
            "$and": [
                { "$or": [{ "endsAt": null }, { "endsAt": { "$gt": at } }] },
                { "$or": [{ "scheduleRetryAt": null }, { "scheduleRetryAt": { "$lte": at } }] },
            ],
        };
        self.due("finding sales to open", filter, "scheduledAt", limit).await
    }

    /// Events that are open and whose end has come at `now`, the longest overdue first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn due_to_end(&self, now: chrono::DateTime<Utc>, limit: u32) -> Result<Vec<Event>> {
        let filter = doc! {
            "salePhase": SalePhase::Live.as_str(),
            "endsAt": { "$lte": DateTime::from_chrono(now) },
            "deletedAt": null,
        };
        self.due("finding sales to end", filter, "endsAt", limit).await
    }

    /// Events that are being prepared and are to open by themselves, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn announced(&self, page: Page) -> Result<Listed<Event>> {
        let unopened = in_phases(&[SalePhase::Draft, SalePhase::Opening]);
        self.list(doc! { "salePhase": unopened, "autoOpen": true, "deletedAt": null }, page).await
    }

    async fn due(&self, doing: &'static str, filter: Document, by: &str, limit: u32) -> Result<Vec<Event>> {
        let find = self.collection.find(filter).sort(doc! { by: 1 }).limit(i64::from(limit));
        let rows: Vec<_> = within(self.deadline, doing, async { find.await?.try_collect().await }).await?;
        rows.into_iter().map(Event::try_from).collect()
    }

    /// Remembers why a sale did not open by itself, and when to try again. True if it is another reason than before.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn record_unopened(
        &self,
        id: EventId,
        problem: &ScheduleProblem,
        retry_at: chrono::DateTime<Utc>,
    ) -> Result<bool> {
        let retry_at = DateTime::from_chrono(retry_at);
        let mut filter = by_id(id);
        filter.insert("salePhase", SalePhase::Draft.as_str());
        let mut other_reason = filter.clone();
        other_reason.insert("scheduleProblem.code", doc! { "$ne": &problem.code });
        let told = doc! {
            "code": &problem.code, "message": &problem.message, "since": DateTime::from_chrono(problem.since),
        };
        let set = doc! { "$set": { "scheduleProblem": told, "scheduleRetryAt": retry_at } };
        let doing = "remembering why a sale did not open";
        let call = self.collection.update_one(other_reason, set);
        if within(self.deadline, doing, call).await?.matched_count == 1 {
            return Ok(true);
        }
        let call = self.collection.update_one(filter, doc! { "$set": { "scheduleRetryAt": retry_at } });
        within(self.deadline, doing, call).await.map(|_| false)
    }

    /// Why the sale of an event that is still being prepared did not open by itself.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unopened(&self, id: EventId) -> Result<Option<ScheduleProblem>> {
        let mut filter = by_id(id);
        filter.insert("salePhase", SalePhase::Draft.as_str());
        let holders = self.collection.clone_with_type::<ProblemHolder>();
        let call = holders.find_one(filter).projection(doc! { "scheduleProblem": 1 });
        let found = within(self.deadline, "reading why a sale did not open", call).await?;
        Ok(found.and_then(|holder| holder.schedule_problem).map(|problem| ScheduleProblem {
            code: problem.code,
            message: problem.message,
            since: problem.since.to_chrono(),
        }))
    }
}
