//! Ids of entries: milliseconds and a number within the millisecond.

use crate::redis::reply::Reply;

const INVALID: &str = "ERR Invalid stream ID specified as stream command argument";

/// An entry's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Id {
    pub ms: u64,
    pub seq: u64,
}

impl Id {
    pub const ZERO: Self = Self { ms: 0, seq: 0 };
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// An id as text; one without its second part gets this one.
    pub fn parse(text: &[u8], missing_seq: u64) -> Result<Self, String> {
        let invalid = || INVALID.to_owned();
        let text = std::str::from_utf8(text).map_err(|_| invalid())?;
        let part = |text: &str| text.parse::<u64>().map_err(|_| invalid());
        match text.split_once('-') {
            None => Ok(Self { ms: part(text)?, seq: missing_seq }),
            Some((ms, seq)) => Ok(Self { ms: part(ms)?, seq: part(seq)? }),
        }
    }

    /// The lower end of a range, inclusive.
    pub fn parse_from(text: &[u8]) -> Result<Self, String> {
        match text.split_first() {
            Some((b'-', [])) => Ok(Self::ZERO),
            Some((b'+', [])) => Ok(Self::MAX),
            Some((b'(', rest)) => {
                Self::parse(rest, 0)?.next().ok_or_else(|| "ERR invalid start ID for the interval".to_owned())
            }
            _ => Self::parse(text, 0),
        }
    }

    /// The upper end of a range, inclusive.
    pub fn parse_to(text: &[u8]) -> Result<Self, String> {
        match text.split_first() {
            Some((b'-', [])) => Ok(Self::ZERO),
            Some((b'+', [])) => Ok(Self::MAX),
            Some((b'(', rest)) => {
                Self::parse(rest, u64::MAX)?.previous().ok_or_else(|| "ERR invalid end ID for the interval".to_owned())
            }
            _ => Self::parse(text, u64::MAX),
        }
    }

    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { ms: self.ms, seq }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { ms: self.ms, seq }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    pub fn reply(self) -> Reply {
        Reply::text(self.to_string())
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}
