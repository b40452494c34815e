//! Collection `verification`. The account number is sealed before it comes here; this module never sees it in clear.

use std::time::Duration;

use bson::{DateTime, doc, oid::ObjectId};
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unless_duplicate, unreadable, within};
use super::query::{self, Order};
use crate::domain::account::EmailAddress;
use crate::domain::ids::{UserId, VerificationId};
use crate::domain::page::{Cursor, Listed, Page};
use crate::domain::verification::{BusinessDetails, Review, Verification, VerificationStatus};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VerificationDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    seller_id: ObjectId,
    email_id: EmailAddress,
    company_name: String,
    gstin: String,
    account_holder_name: String,
    account_number: String,
    ifsc_code: String,
    bank_name: String,
    status: String,
    /// Until when the seller's last rejection makes the seller wait, in milliseconds since 1970; 0 before the first.
    /// Unique together with the seller, and never changed: one request in each round.
    #[serde(default)]
    round: i64,
    created_at: DateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviewed_by: Option<ObjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviewed_at: Option<DateTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejection_reason: Option<String>,
}

impl TryFrom<VerificationDocument> for Verification {
    type Error = Error;

    fn try_from(document: VerificationDocument) -> Result<Self> {
        let review = document.reviewed_by.zip(document.reviewed_at).map(|(by, at)| Review {
            reviewed_by: UserId::from_bytes(by.bytes()),
            reviewed_at: at.to_chrono(),
            rejection_reason: document.rejection_reason,
        });
        Ok(Self {
            id: VerificationId::from_bytes(document.id.bytes()),
            seller: UserId::from_bytes(document.seller_id.bytes()),
            email: document.email_id,
            details: BusinessDetails {
                company_name: document.company_name,
                gstin: document.gstin,
                account_holder_name: document.account_holder_name,
                account_number: document.account_number,
                ifsc_code: document.ifsc_code,
                bank_name: document.bank_name,
            },
            status: VerificationStatus::parse(&document.status)
                .ok_or_else(|| unreadable("reading a verification", document.status))?,
            created_at: document.created_at.to_chrono(),
            review,
        })
    }
}

impl VerificationDocument {
    fn new(verification: &Verification, round: i64) -> Self {
        let (details, review) = (&verification.details, verification.review.as_ref());
        Self {
            id: ObjectId::from_bytes(verification.id.bytes()),
            seller_id: ObjectId::from_bytes(verification.seller.bytes()),
            email_id: verification.email.clone(),
            company_name: details.company_name.clone(),
            gstin: details.gstin.clone(),
            account_holder_name: details.account_holder_name.clone(),
            account_number: details.account_number.clone(),
            ifsc_code: details.ifsc_code.clone(),
            bank_name: details.bank_name.clone(),
            status: verification.status.as_str().to_owned(),
            round,
            created_at: DateTime::from_chrono(verification.created_at),
            reviewed_by: review.map(|review| ObjectId::from_bytes(review.reviewed_by.bytes())),
            reviewed_at: review.map(|review| DateTime::from_chrono(review.reviewed_at)),
            rejection_reason: review.and_then(|review| review.rejection_reason.clone()),
        }
    }
}

/// Sellers' requests to be approved. A seller has at most one that is pending or approved: there is one in each round, and
/// only a rejection begins the next.
#[derive(Debug)]
pub struct Verifications {
    collection: Collection<VerificationDocument>,
    deadline: Duration,
}

impl Verifications {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("verification"), deadline }
    }

    /// Adds a request; false if the seller has one in this round. The round is the time of the account's
    /// `next_request_at`, which every rejection moves.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(
        &self,
        verification: &Verification,
        round: Option<chrono::DateTime<chrono::Utc>>,
    ) -> Result<bool> {
        let round = round.map_or(0, |at| at.timestamp_millis());
        let call = self.collection.insert_one(VerificationDocument::new(verification, round));
        Ok(unless_duplicate(self.deadline, "adding a verification", call).await?.is_some())
    }

    /// The request with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: VerificationId) -> Result<Option<Verification>> {
        let call = self.collection.find_one(doc! { "_id": ObjectId::from_bytes(id.bytes()) });
        within(self.deadline, "reading a verification", call).await?.map(Verification::try_from).transpose()
    }

    /// Requests that wait, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn pending(&self, page: Page) -> Result<Listed<Verification>> {
        let filter = doc! { "status": VerificationStatus::Pending.as_str() };
        let (collection, deadline) = (&self.collection, self.deadline);
        let rows = query::page(collection, deadline, "listing verifications", filter, Order::OldestFirst, page).await?;
        let rows = rows.into_iter().map(Verification::try_from).collect::<Result<Vec<_>>>()?;
        Ok(Listed::from_rows(rows, page, |row| Cursor {
            created_at_ms: row.created_at.timestamp_millis(),
            id: row.id.bytes(),
        }))
    }

    /// Decides a request that is still pending; `None` if it is not, or does not exist.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn decide(
        &self,
        id: VerificationId,
        status: VerificationStatus,
        review: &Review,
    ) -> Result<Option<Verification>> {
        let mut set = doc! {
            "status": status.as_str(),
            "reviewedBy": ObjectId::from_bytes(review.reviewed_by.bytes()),
            "reviewedAt": DateTime::from_chrono(review.reviewed_at),
        };
        if let Some(reason) = &review.rejection_reason {
            set.insert("rejectionReason", reason);
        }
        let pending = doc! { "_id": ObjectId::from_bytes(id.bytes()), "status": VerificationStatus::Pending.as_str() };
        let call =
            self.collection.find_one_and_update(pending, doc! { "$set": set }).return_document(ReturnDocument::After);
        within(self.deadline, "deciding a verification", call).await?.map(Verification::try_from).transpose()
    }
}
