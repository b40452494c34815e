//! What a watched sale looks like at one moment. It never changes: whoever watches holds the newest one, and what it says
//! is absolute, so that a listener who missed some has missed nothing once it has the newest.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::ProductId;
use crate::domain::product::StockLevel;
use crate::domain::sale::SaleStatus;

/// A sale at one moment.
#[derive(Debug)]
pub struct State {
    /// Counts the states of this watch; each differs from the one before.
    pub number: u64,
    /// What buyers are told that the sale is doing.
    pub status: SaleStatus,
    /// Whether that differs from the state before.
    pub status_changed: bool,
    /// When it was seen, by the live store's clock.
    pub at: DateTime<Utc>,
    /// Whether `levels` has every product of the sale; otherwise it has those that listeners asked for.
    pub complete: bool,
    /// The stock of each product.
    pub levels: BTreeMap<ProductId, StockLevel>,
    /// Products whose level differs from the state before.
    pub changed: Vec<ProductId>,
    /// The state as it is sent.
    pub frames: Frames,
}

/// A state as it is sent to everybody who watches the whole sale: written once, by the first who needs it.
#[derive(Debug, Default)]
pub struct Frames {
    /// All of it.
    pub whole: OnceLock<Bytes>,
    /// What differs from the state before.
    pub change: OnceLock<Bytes>,
}

/// What was seen.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub status: SaleStatus,
    pub at: DateTime<Utc>,
    pub complete: bool,
    pub levels: BTreeMap<ProductId, StockLevel>,
}

impl State {
    /// The state after `before`; `None` if nothing differs.
    pub(super) fn after(before: Option<&Self>, seen: Seen) -> Option<Self> {
        let changed: Vec<ProductId> = seen
            .levels
            .iter()
            .filter(|(id, level)| before.and_then(|before| before.levels.get(id)) != Some(level))
            .map(|(id, _)| *id)
            .collect();
        let status_changed = before.is_none_or(|before| before.status != seen.status);
        let scope_changed = before.is_some_and(|before| before.complete != seen.complete);
        if !status_changed && !scope_changed && changed.is_empty() {
            return None;
        }
        Some(Self {
            number: before.map_or(1, |before| before.number + 1),
            status: seen.status,
            status_changed,
            at: seen.at,
            complete: seen.complete,
            levels: seen.levels,
            changed,
            frames: Frames::default(),
        })
    }
}

/// A name for what a listener has been told: the same in every process, so that it may come back to another one.
#[must_use]
pub fn fingerprint<'a>(
    status: SaleStatus,
    levels: impl IntoIterator<Item = (&'a ProductId, &'a StockLevel)>,
) -> String {
    let mut hasher = DefaultHasher::new();
    status.hash(&mut hasher);
    for level in levels {
        level.hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(number: u8) -> ProductId {
        ProductId::from_bytes([number; 12])
    }

    fn seen(status: SaleStatus, levels: &[(u8, u64)]) -> Seen {
        let level = |available| StockLevel { available, held: 0 };
        let levels = levels.iter().map(|(id, available)| (product(*id), level(*available))).collect();
        Seen { status, at: DateTime::UNIX_EPOCH, complete: true, levels }
    }

    #[test]
    fn only_what_differs_is_a_change() {
        let first = State::after(None, seen(SaleStatus::Live, &[(1, 5), (2, 5)])).unwrap();
        assert_eq!((first.number, first.status_changed, first.changed.len()), (1, true, 2));
        assert!(State::after(Some(&first), seen(SaleStatus::Live, &[(1, 5), (2, 5)])).is_none());
        let second = State::after(Some(&first), seen(SaleStatus::Live, &[(1, 5), (2, 4), (3, 1)])).unwrap();
        assert_eq!((second.number, second.status_changed), (2, false));
        assert_eq!(second.changed, [product(2), product(3)]);
        let third = State::after(Some(&second), seen(SaleStatus::Paused, &[(1, 5), (2, 4), (3, 1)])).unwrap();
        assert!(third.status_changed && third.changed.is_empty());
    }

    #[test]
    fn a_fingerprint_tells_states_apart_and_is_the_same_everywhere() {
        let print = |seen: &Seen| fingerprint(seen.status, &seen.levels);
        let base = seen(SaleStatus::Live, &[(1, 5), (2, 5)]);
        assert_eq!(print(&base), print(&base.clone()));
        for other in [
            seen(SaleStatus::Paused, &[(1, 5), (2, 5)]),
            seen(SaleStatus::Live, &[(1, 5), (2, 4)]),
            seen(SaleStatus::Live, &[(1, 5)]),
        ] {
            assert_ne!(print(&base), print(&other));
        }
    }
}
