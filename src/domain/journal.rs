//! The journal of a sale: one entry for each accepted change, in the order in which the live store accepted them.

use std::fmt;
use std::str::FromStr;

/// The position of an entry: the live store's clock in milliseconds, and a number within that millisecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// Milliseconds since 1970.
    pub ms: u64,
    /// Within the millisecond, from 0.
    pub seq: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// Not the position of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the position of a journal entry")]
pub struct MalformedEntryId;

impl FromStr for EntryId {
    type Err = MalformedEntryId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (ms, seq) = text.split_once('-').ok_or(MalformedEntryId)?;
        let number = |text: &str| text.parse().map_err(|_| MalformedEntryId);
        Ok(Self { ms: number(ms)?, seq: number(seq)? })
    }
}

/// What the live store knows of a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalState {
    /// Entries ever appended, those trimmed since included.
    pub appended: u64,
    /// The newest position ever given.
    pub last: EntryId,
    /// Entries that are still there.
    pub length: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ordered_as_numbers_and_round_trip() {
        let [older, newer]: [EntryId; 2] = ["9-10".parse().unwrap(), "10-9".parse().unwrap()];
        assert!(older < newer);
        assert_eq!(newer.to_string(), "10-9");
        for text in ["", "1", "1-", "-1", "1-x", "1-2-3"] {
            assert!(text.parse::<EntryId>().is_err(), "{text}");
        }
    }
}
