//! Amounts as the API writes them: JSON numbers in major units, compared and summed exactly.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// Decimals kept: no currency has more.
const PLACES: usize = 4;
const SCALE: i128 = 10_000;

/// An amount of whatever currency, in ten-thousandths of its major unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i128);

/// The text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number with at most four decimals")]
pub struct NotAnAmount;

impl Amount {
    /// This many major units and hundredths.
    #[must_use]
    pub const fn new(major: u32, hundredths: u8) -> Self {
        Self(major as i128 * SCALE + hundredths as i128 * (SCALE / 100))
    }

    /// So many times the amount.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0 * count as i128)
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.map(|amount| amount.0).sum())
    }
}

impl FromStr for Amount {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // A double of a whole amount may be written 199.0.
        let fraction = fraction.trim_end_matches('0');
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !plain(whole) || !plain(fraction) || fraction.len() > PLACES {
            return Err(NotAnAmount);
        }
        let units: i128 = format!("{whole}{fraction:0<PLACES$}").parse().map_err(|_| NotAnAmount)?;
        Ok(Self(sign * units))
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) =
            (self.0.unsigned_abs() / SCALE.unsigned_abs(), self.0.unsigned_abs() % SCALE.unsigned_abs());
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!("{part:0PLACES$}");
        // Two decimals at least, more only if they say something.
        let fraction = if fraction.ends_with("00") { &fraction[..2] } else { &fraction };
        write!(f, "{sign}{whole}.{fraction}")
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The shortest text of a double below 2^53 is the decimal that it was made from.
        let number = serde_json::Number::deserialize(deserializer)?;
        number.to_string().parse().map_err(|error| serde::de::Error::custom(format!("{number}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Amount> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn reads_numbers_exactly() {
        assert_eq!(read("199.99"), Some(Amount::new(199, 99)));
        assert_eq!(read("199"), read("199.0"));
        assert_eq!(read("0.1").zip(read("0.2")).map(|(a, b)| [a, b].into_iter().sum()), read("0.3"));
        assert_eq!(read("1234.5678").map(|amount| amount.to_string()).as_deref(), Some("1234.5678"));
        assert_eq!(read("-0.5").map(|amount| amount.to_string()).as_deref(), Some("-0.50"));
        assert_eq!(Amount::new(999, 90).times(3).to_string(), "2999.70");
    }

    #[test]
    fn refuses_what_it_could_not_keep() {
        for text in ["0.00001", "1e300", "\"5\"", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
