//! The state machine of a sale.

use serde::{Deserialize, Serialize};

/// What a sale is doing, as the live store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SaleStatus {
    /// No buyer can reserve yet.
    NotStarted,
    /// Reservations are accepted.
    Live,
    /// Reservations are refused until the seller resumes.
    Paused,
    /// Over for good.
    Stopped,
}

impl SaleStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::NotStarted, Self::Live, Self::Paused, Self::Stopped];

    /// The text in the live store and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "NOT_STARTED",
            Self::Live => "LIVE",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl std::fmt::Display for SaleStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a seller does to a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleAction {
    /// Open the sale: the last step of opening.
    Live,
    /// Refuse reservations for a while.
    Pause,
    /// Accept them again.
    Resume,
    /// Stop for good.
    End,
    /// Bring back a sale that the live store lost: the last step of rebuilding it. The seller resumes it.
    Rebuild,
}

impl SaleAction {
    /// The status it leads to.
    #[must_use]
    pub const fn target(self) -> SaleStatus {
        match self {
            Self::Live | Self::Resume => SaleStatus::Live,
            Self::Pause | Self::Rebuild => SaleStatus::Paused,
            Self::End => SaleStatus::Stopped,
        }
    }

    /// The statuses it may start from.
    #[must_use]
    pub const fn sources(self) -> &'static [SaleStatus] {
        match self {
            Self::Live | Self::Rebuild => &[SaleStatus::NotStarted],
            Self::Pause => &[SaleStatus::Live],
            Self::Resume => &[SaleStatus::Paused],
            Self::End => &[SaleStatus::Live, SaleStatus::Paused],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_is_terminal_and_only_an_opened_sale_runs() {
        use SaleAction::{End, Live, Pause, Rebuild, Resume};
        for action in [Live, Pause, Resume, End, Rebuild] {
            assert!(!action.sources().contains(&SaleStatus::Stopped), "{action:?} leaves STOPPED");
            let opens = action.sources().contains(&SaleStatus::NotStarted);
            assert_eq!(opens, matches!(action, Live | Rebuild));
        }
    }

    #[test]
    fn names_round_trip() {
        for status in SaleStatus::ALL {
            assert_eq!(SaleStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(SaleStatus::parse("live"), None);
    }
}
