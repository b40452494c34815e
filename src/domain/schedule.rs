//! What a seller has planned for a sale: when it opens and ends, and how its moments are shown.

use chrono::{DateTime, FixedOffset, Utc};
use chrono_tz::Tz;

use super::event::Event;
use super::sale::SaleStatus;

/// Why a sale that was to open by itself has not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleProblem {
    /// The stable code of the refusal.
    pub code: String,
    /// A sentence for the seller.
    pub message: String,
    /// Since when it is this reason, by the live store's clock.
    pub since: DateTime<Utc>,
}

/// What a sale does next by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextMoment {
    /// `opens` or `ends`.
    pub what: &'static str,
    /// When.
    pub at: DateTime<Utc>,
}

impl Event {
    /// What buyers are told at a moment of the live store's clock: from the end on nobody can buy, however late the
    /// process comes that stops the sale.
    #[must_use]
    pub fn status_at(&self, status: SaleStatus, now: DateTime<Utc>) -> SaleStatus {
        let ended = self.ends_at.is_some_and(|at| now >= at);
        match status {
            SaleStatus::Live | SaleStatus::Paused if ended => SaleStatus::Stopped,
            status => status,
        }
    }

    /// Whether buyers may know of it before it opens: it is to open by itself, and could still sell something.
    #[must_use]
    pub fn announced(&self, now: DateTime<Utc>) -> bool {
        self.auto_open && self.ends_at.is_none_or(|at| now < at)
    }

    /// What the sale does next by itself, if anything.
    #[must_use]
    pub fn next_moment(&self, status: SaleStatus) -> Option<NextMoment> {
        match status {
            SaleStatus::NotStarted => self.auto_open.then_some(NextMoment { what: "opens", at: self.scheduled_at }),
            SaleStatus::Live | SaleStatus::Paused => self.ends_at.map(|at| NextMoment { what: "ends", at }),
            SaleStatus::Stopped => None,
        }
    }

    /// A moment as the clocks show it in the event's zone, with the offset that holds there at that moment.
    #[must_use]
    pub fn local(&self, at: DateTime<Utc>) -> Option<DateTime<FixedOffset>> {
        let zone: Tz = self.time_zone.as_deref()?.parse().ok()?;
        Some(at.with_timezone(&zone).fixed_offset())
    }
}

/// Whether a text is the name of a zone in the IANA database, spelled as there.
#[must_use]
pub fn is_time_zone(name: &str) -> bool {
    name.parse::<Tz>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_their_names_alone() {
        for name in ["Europe/Berlin", "Asia/Kolkata", "America/Argentina/Buenos_Aires", "UTC"] {
            assert!(is_time_zone(name), "{name}");
        }
        for name in ["", "Berlin", "europe/berlin", "+05:30", "Mars/Olympus", "Europe/Berlin "] {
            assert!(!is_time_zone(name), "{name}");
        }
    }
}
