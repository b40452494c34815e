//! How a vendor of vouchers is reached, as an administrator has said.

use chrono::{DateTime, Utc};

use super::ids::{UserId, VendorId};

/// The way to a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Its API over HTTP.
    Http {
        /// Where the API begins.
        base_url: String,
        /// The key to it, sealed for this vendor and this address.
        sealed_key: String,
    },
    /// The vendor of trials, inside this service.
    Sandbox,
}

impl Way {
    /// Over HTTP; as it is stored and on the wire.
    pub const HTTP: &'static str = "HTTP";
    /// The vendor of trials.
    pub const SANDBOX: &'static str = "SANDBOX";

    /// Of which kind it is.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Http { .. } => Self::HTTP,
            Self::Sandbox => Self::SANDBOX,
        }
    }
}

/// A vendor's connection: there is at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Whose.
    pub vendor: VendorId,
    /// How it is reached.
    pub way: Way,
    /// Whether it is: of one that is not, nothing is ordered and nothing is asked.
    pub enabled: bool,
    /// The administrator who said so last.
    pub set_by: UserId,
    /// When.
    pub set_at: DateTime<Utc>,
}
