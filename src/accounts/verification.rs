//! Approval of sellers: they ask, an administrator decides, and the decision takes effect at once.

use chrono::{DateTime, Duration, Utc};

use super::Accounts;
use crate::domain::account::{Account, Role};
use crate::domain::ids::{UserId, VerificationId};
use crate::domain::page::{Listed, Page};
use crate::domain::verification::{BusinessDetails, Review, Verification, VerificationStatus};
use crate::error::{Code, Error, Result};
use crate::store::mongo::new_id;

impl Accounts {
    /// Asks for approval.
    ///
    /// # Errors
    /// [`Code::VerificationExists`] while a request waits or was approved; [`Error::TooMany`] for a while after a
    /// rejection.
    pub async fn request_verification(&self, seller: UserId, mut details: BusinessDetails) -> Result<()> {
        let account = self.account(seller).await?;
        if !account.standing.email_verified {
            return Err(Error::refused(Code::NotApproved, "Email not verified, verify it first.."));
        }
        let now = self.clock.now();
        if let Some(wait_s) = wait_s(&account, now) {
            let message = "your last request was rejected, please wait before you ask again".into();
            return Err(Error::TooMany { message, retry_after_s: wait_s });
        }
        details.account_number = self.sealer.seal(&seller.to_string(), &details.account_number)?;
        let verification = Verification {
            id: VerificationId::from_bytes(new_id()),
            seller,
            email: account.email,
            details,
            status: VerificationStatus::Pending,
            created_at: now,
            review: None,
        };
        if self.mongo.verifications.insert(&verification, account.next_request_at).await? {
            return Ok(());
        }
        Err(Error::refused(Code::VerificationExists, "a verification request is pending or approved already"))
    }

    /// Requests that wait, oldest first; account numbers masked.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn pending_verifications(&self, page: Page) -> Result<Listed<Verification>> {
        let mut listed = self.mongo.verifications.pending(page).await?;
        for verification in &mut listed.items {
            // One number that cannot be opened (another data_key) must not hide everybody else's request.
            let number = self.open_number(verification);
            verification.details.account_number = number.map_or_else(|_| "****".to_owned(), |number| mask(&number));
        }
        Ok(listed)
    }

    /// One request, with its account number: a reviewer must compare it.
    ///
    /// # Errors
    /// [`Code::NotFound`], or when the database does not answer.
    pub async fn verification(&self, id: VerificationId) -> Result<Verification> {
        let mut verification = self.mongo.verifications.by_id(id).await?.ok_or_else(unknown)?;
        verification.details.account_number = self.open_number(&verification)?;
        Ok(verification)
    }

    /// Approves a request and its seller. Approving again re-applies the approval.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Error::Decided`] if it was rejected.
    pub async fn approve(&self, id: VerificationId, admin: UserId) -> Result<()> {
        let verification = self.decide(id, VerificationStatus::Approved, admin, None).await?;
        let account = self.mongo.accounts.approve(verification.seller).await?;
        // The account first, then the announcement: if the second write fails, the caller repeats the whole decision.
        self.announce(&seller(account)?).await
    }

    /// Rejects a request; the seller may ask again after a while. Rejecting again changes nothing.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Error::Decided`] if it was approved.
    pub async fn reject(&self, id: VerificationId, admin: UserId, reason: String) -> Result<()> {
        let verification = self.decide(id, VerificationStatus::Rejected, admin, Some(reason)).await?;
        let rejected_at = verification.review.map_or_else(|| self.clock.now(), |review| review.reviewed_at);
        let cooldown = Duration::seconds(i64::try_from(self.config.verification_cooldown_s).unwrap_or(i64::MAX / 1000));
        // A seller whose request waited was not approved; one that was approved since stays so if this is a repetition.
        let account = self.mongo.accounts.defer_requests(verification.seller, rejected_at + cooldown).await?;
        seller(account).map(drop)
    }

    async fn decide(
        &self,
        id: VerificationId,
        status: VerificationStatus,
        admin: UserId,
        rejection_reason: Option<String>,
    ) -> Result<Verification> {
        let review = Review { reviewed_by: admin, reviewed_at: self.clock.now(), rejection_reason };
        if let Some(decided) = self.mongo.verifications.decide(id, status, &review).await? {
            return Ok(decided);
        }
        let found = self.mongo.verifications.by_id(id).await?.ok_or_else(unknown)?;
        if found.status == status {
            return Ok(found);
        }
        Err(Error::Decided { current: found.status.as_str(), attempted: status.as_str() })
    }

    fn open_number(&self, verification: &Verification) -> Result<String> {
        self.sealer.open(&verification.seller.to_string(), &verification.details.account_number)
    }
}

fn seller(account: Option<Account>) -> Result<Account> {
    let account = account.filter(|account| account.standing.role == Role::Seller);
    account.ok_or_else(|| Error::refused(Code::NotFound, "the seller's account is gone"))
}

fn wait_s(account: &Account, now: DateTime<Utc>) -> Option<u64> {
    let wait = account.next_request_at?.signed_duration_since(now);
    u64::try_from(wait.num_milliseconds()).ok().map(|wait_ms| wait_ms.div_ceil(1000)).filter(|wait| *wait > 0)
}

fn unknown() -> Error {
    Error::not_found("verification request not found")
}

/// The last four characters, if there are more than that.
fn mask(number: &str) -> String {
    let count = number.chars().count();
    let shown = if count > 4 { 4 } else { 0 };
    let tail: String = number.chars().skip(count - shown).collect();
    format!("{}{tail}", "*".repeat(count - shown))
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn masks_all_but_the_last_four() {
        assert_eq!(mask("123456789"), "*****6789");
        assert_eq!(mask("1234"), "****");
        assert_eq!(mask(""), "");
    }
}
