//! Money: an integer count of a currency's minor unit. Nothing here is ever a float.

use iso_currency::Currency;

/// The largest amount, in minor units: ten million million, far below 2^53, where Lua and JSON still count exactly.
pub const MINOR_MAX: i64 = 10_000_000_000_000;

/// An amount of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    /// The amount in minor units (cents, paise, yen).
    pub minor: i64,
    /// ISO 4217.
    pub currency: Currency,
}

/// Why a text is not a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not digits with an optional decimal point.
    #[error("must be a decimal number such as 199.99")]
    NotDecimal,
    /// More decimals than the currency has.
    #[error("has more decimals than the currency")]
    TooPrecise,
    /// Zero, negative, or above [`MINOR_MAX`].
    #[error("must be greater than 0 and at most 10000000000000 minor units")]
    OutOfRange,
}

/// Reads an ISO 4217 code such as `INR`.
#[must_use]
pub fn currency(code: &str) -> Option<Currency> {
    Currency::from_code(code)
}

fn decimals(currency: Currency) -> u32 {
    currency.exponent().map_or(0, u32::from)
}

impl Money {
    /// Reads a price in major units, `249999` or `199.99`, exactly.
    ///
    /// # Errors
    /// When the text is not plain decimal, is finer than the currency, or is out of range.
    pub fn parse_price(text: &str, currency: Currency) -> Result<Self, MoneyError> {
        let text = text.trim();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') {
            return Err(match text.strip_prefix('-') {
                Some(rest) if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                    MoneyError::OutOfRange
                }
                _ => MoneyError::NotDecimal,
            });
        }
        let places = decimals(currency) as usize;
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > places {
            return Err(MoneyError::TooPrecise);
        }
        let minor = format!("{whole}{fraction:0<places$}").parse::<i64>().map_err(|_| MoneyError::OutOfRange)?;
        if (1..=MINOR_MAX).contains(&minor) { Ok(Self { minor, currency }) } else { Err(MoneyError::OutOfRange) }
    }

    /// The amount in major units as [`Money::parse_price`] reads it: `249999.00`, `0.10`.
    #[must_use]
    pub fn major_text(self) -> String {
        let places = decimals(self.currency) as usize;
        let digits = format!("{:0>width$}", self.minor, width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        if places == 0 { digits } else { format!("{whole}.{fraction}") }
    }

    /// The amount in major units as a JSON number: `249999`, `199.99`. Exact for every amount we accept.
    #[must_use]
    pub fn major_number(self) -> serde_json::Number {
        let scale = 10_i64.pow(decimals(self.currency));
        if self.minor % scale == 0 {
            return (self.minor / scale).into();
        }
        // Below 2^53 the shortest text of the nearest double is the decimal itself.
        #[expect(clippy::cast_precision_loss, reason = "both are below 2^53")]
        let major = self.minor as f64 / scale as f64;
        serde_json::Number::from_f64(major).unwrap_or_else(|| 0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inr(text: &str) -> Result<i64, MoneyError> {
        Money::parse_price(text, Currency::INR).map(|m| m.minor)
    }

    #[test]
    fn reads_exactly() {
        assert_eq!(inr("249999"), Ok(24_999_900));
        assert_eq!(inr(" 199.99 "), Ok(19_999));
        assert_eq!(inr("0.1"), Ok(10));
        assert_eq!(inr("19.990"), Ok(1_999));
        assert_eq!(Money::parse_price("1200", Currency::JPY).map(|m| m.minor), Ok(1_200));
        assert_eq!(Money::parse_price("1.234", Currency::KWD).map(|m| m.minor), Ok(1_234));
    }

    #[test]
    fn refuses_what_doubles_let_through() {
        for text in ["", "Inf", "NaN", "1e3", "0x10", "1.", ".5", "1,000", "--1"] {
            assert_eq!(inr(text), Err(MoneyError::NotDecimal), "{text}");
        }
        assert_eq!(inr("0.001"), Err(MoneyError::TooPrecise));
        assert_eq!(Money::parse_price("1.5", Currency::JPY), Err(MoneyError::TooPrecise));
        for text in ["0", "0.00", "-1", "100000000000.01", "99999999999999999999"] {
            assert_eq!(inr(text), Err(MoneyError::OutOfRange), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_json_number_reads_back_as_the_same_amount(minor in 1..=MINOR_MAX) {
            let money = Money { minor, currency: Currency::INR };
            prop_assert_eq!(Money::parse_price(&money.major_number().to_string(), Currency::INR), Ok(money));
        }

        #[test]
        fn the_text_reads_back_as_the_same_amount(minor in 1..=MINOR_MAX) {
            for currency in [Currency::INR, Currency::JPY, Currency::KWD] {
                let money = Money { minor, currency };
                prop_assert_eq!(Money::parse_price(&money.major_text(), currency), Ok(money));
            }
        }
    }
}
