//! A seller's request to be approved.

use chrono::{DateTime, Utc};

use super::account::EmailAddress;
use super::ids::{UserId, VerificationId};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationStatus {
    /// Waits for an administrator.
    Pending,
    /// The seller may open sales.
    Approved,
    /// Refused, with a reason.
    Rejected,
}

impl VerificationStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Approved, Self::Rejected];

    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// What a seller tells about the business. `account_number` is encrypted wherever it rests.
#[derive(Clone)]
pub struct BusinessDetails {
    /// Registered name.
    pub company_name: String,
    /// Tax number.
    pub gstin: String,
    /// Name on the bank account.
    pub account_holder_name: String,
    /// Bank account; sealed at rest, masked in lists.
    pub account_number: String,
    /// Bank branch code.
    pub ifsc_code: String,
    /// Bank.
    pub bank_name: String,
}

/// Nothing of a bank account belongs in a log.
impl std::fmt::Debug for BusinessDetails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusinessDetails").field("company_name", &self.company_name).finish_non_exhaustive()
    }
}

/// An administrator's decision.
#[derive(Debug, Clone)]
pub struct Review {
    /// Who decided.
    pub reviewed_by: UserId,
    /// When.
    pub reviewed_at: DateTime<Utc>,
    /// Why not, for a rejection.
    pub rejection_reason: Option<String>,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Verification {
    /// Its id.
    pub id: VerificationId,
    /// Who asks.
    pub seller: UserId,
    /// Their address.
    pub email: EmailAddress,
    /// What they told.
    pub details: BusinessDetails,
    /// Where it stands.
    pub status: VerificationStatus,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The decision, once there is one.
    pub review: Option<Review>,
}
