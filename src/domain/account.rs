//! Accounts: who may do what.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ids::UserId;

/// What an account is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Buys.
    Buyer,
    /// Sells.
    Seller,
    /// Reviews sellers.
    Admin,
}

impl Role {
    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer",
            Self::Seller => "seller",
            Self::Admin => "admin",
        }
    }
}

/// An e-mail address, trimmed and lower-cased: one mailbox, one account.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Normalises a text that the request's validation has accepted as an e-mail address.
    #[must_use]
    pub fn normalise(text: &str) -> Self {
        Self(text.trim().to_lowercase())
    }

    /// The normalised text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Logs show the domain only.
impl std::fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "***@{}", self.0.rsplit('@').next().unwrap_or_default())
    }
}

/// A bcrypt hash. `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(***)")
    }
}

/// The part of an account that decides what it may do. Small, so that it can be pushed to every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What the account is for.
    pub role: Role,
    /// False: blocked by an administrator.
    pub active: bool,
    /// Buyers are approved at sign-up; sellers by an administrator.
    pub approved: bool,
    /// The address was proved.
    pub email_verified: bool,
}

/// An account.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its id.
    pub id: UserId,
    /// Given name.
    pub first_name: String,
    /// Family name, if given.
    pub last_name: Option<String>,
    /// Unique.
    pub email: EmailAddress,
    /// bcrypt.
    pub password: PasswordHash,
    /// In years, if given.
    pub age: Option<i32>,
    /// What it may do.
    pub standing: Standing,
    /// A refused seller may ask again from this moment.
    pub next_request_at: Option<DateTime<Utc>>,
    /// When it signed up.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// A change that sessions made before it must learn of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// One session was signed out.
    Session {
        /// The token's own id.
        jti: String,
    },
    /// The account may do something else now.
    Account {
        /// Which account.
        user: UserId,
        /// What it may do now.
        standing: Standing,
    },
}
