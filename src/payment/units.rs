//! The unit that Stripe counts a currency in.
//!
//! It is ISO 4217's minor unit, as everywhere in Orbit, but for three currencies: a króna and a Ugandan shilling have no
//! smaller unit and are sent as hundredths all the same, and of an ariary Stripe takes only whole ones. And of what it counts
//! in thousandths it takes whole hundredths only. See <https://docs.stripe.com/currencies#minor-units>.

use crate::domain::money::Money;
use crate::error::{Code, Error, Result};

/// How many of our units are how many of theirs.
fn ratio(code: &str) -> (i64, i64) {
    match code {
        "ISK" | "UGX" => (1, 100),
        "MGA" => (100, 1),
        _ => (1, 1),
    }
}

/// An amount is a multiple of this, in their units.
fn step(code: &str) -> i64 {
    match code {
        "BHD" | "JOD" | "KWD" | "OMR" | "TND" => 10,
        _ => 1,
    }
}

/// An amount of ours, in Stripe's units; `None` if it has no such amount.
pub(super) fn to_stripe(minor: i64, code: &str) -> Option<i64> {
    let (ours, theirs) = ratio(code);
    let there = (minor / ours).checked_mul(theirs)?;
    (minor % ours == 0 && there % step(code) == 0).then_some(there)
}

/// An amount of Stripe's, in our units; `None` if we have no such amount.
pub(super) fn from_stripe(there: i64, code: &str) -> Option<i64> {
    let (ours, theirs) = ratio(code);
    if there % theirs != 0 {
        return None;
    }
    (there / theirs).checked_mul(ours)
}

/// The least that is charged, in ISO's minor units, by an account that is paid out in the same currency; by others it may be
/// a little more. See <https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts>.
const LEAST: [(&str, i64); 23] = [
    ("AED", 200),
    ("AUD", 50),
    ("BRL", 50),
    ("CAD", 50),
    ("CHF", 50),
    ("CZK", 1_500),
    ("DKK", 250),
    ("EUR", 50),
    ("GBP", 30),
    ("HKD", 400),
    ("HUF", 17_500),
    ("INR", 50),
    ("JPY", 50),
    ("MXN", 1_000),
    ("MYR", 200),
    ("NOK", 300),
    ("NZD", 50),
    ("PLN", 200),
    ("RON", 200),
    ("SEK", 300),
    ("SGD", 50),
    ("THB", 1_000),
    ("USD", 50),
];

/// The most that is charged, in their units: eight digits of the currencies that say so, and of none more than twelve.
fn most(code: &str) -> i64 {
    match code {
        "AUD" | "CAD" | "CHF" | "EUR" | "GBP" | "NZD" | "SGD" | "USD" => 99_999_999,
        _ => 999_999_999_999,
    }
}

/// Why nobody could pay for one unit at this price, or for so many, if they could not; or why not every number of them could
/// be given back.
pub(super) fn unchargeable(price: Money, units_max: u32) -> Option<String> {
    let code = price.currency.code();
    let Some(one) = to_stripe(price.minor, code) else {
        return Some(format!("the payment gateway takes no such fraction of {code}"));
    };
    let least = LEAST.iter().find(|(currency, _)| *currency == code).map_or(0, |(_, least)| *least);
    if price.minor < least {
        return Some(format!("the payment gateway takes no amount of {code} as small as this"));
    }
    let all = one.checked_mul(i64::from(units_max));
    if all.is_none_or(|all| all > most(code)) {
        return Some(format!("the payment gateway takes no amount of {code} as large as {units_max} times this price"));
    }
    None
}

/// Refuses what is asked for at a price that it cannot be charged at.
///
/// # Errors
/// [`Code::PriceNotChargeable`].
pub(super) fn check_price(price: Money, units: u32) -> Result<()> {
    let refused = |why| Err(Error::refused(Code::PriceNotChargeable, format!("this cannot be paid for: {why}")));
    unchargeable(price, units).map_or(Ok(()), refused)
}

#[cfg(test)]
mod tests {
    use iso_currency::Currency;

    use super::*;

    #[test]
    fn a_currency_without_a_smaller_unit_is_sent_as_it_is() {
        // 500 yen are 500, five dollars are 500, and half a dinar is 500.
        for code in ["JPY", "KRW", "CLP", "VND", "XOF", "USD", "INR", "HUF", "TWD", "KWD"] {
            assert_eq!((to_stripe(500, code), from_stripe(500, code)), (Some(500), Some(500)), "{code}");
        }
    }

    #[test]
    fn where_stripe_counts_otherwise_amounts_are_converted_both_ways() {
        for code in ["ISK", "UGX"] {
            assert_eq!((to_stripe(5, code), from_stripe(500, code)), (Some(500), Some(5)), "{code}");
            assert_eq!(from_stripe(550, code), None, "{code}: half of one is no amount");
        }
        // An ariary is a hundred of ISO's minor units, and one of Stripe's.
        assert_eq!((to_stripe(500, "MGA"), from_stripe(5, "MGA")), (Some(5), Some(500)));
        assert_eq!((from_stripe(0, "ISK"), to_stripe(i64::MAX, "UGX")), (Some(0), None));
    }

    #[test]
    fn a_price_that_stripe_has_no_amount_for_is_refused_before_anybody_is_asked_to_pay() {
        let checked = |minor, currency, units| check_price(Money { minor, currency }, units);
        for (minor, currency, units) in [
            (1_230, Currency::KWD, 3),
            (50, Currency::JPY, 1),
            (50, Currency::USD, 1),
            (99_999_999, Currency::EUR, 1),
            (33_333_333, Currency::EUR, 3),
            (1, Currency::XOF, 1),
            (100_000_000, Currency::IDR, 1),
        ] {
            assert!(checked(minor, currency, units).is_ok(), "{minor} {currency:?} x {units}");
        }
        for (minor, currency, units) in [
            (1_234, Currency::KWD, 1),
            (50, Currency::MGA, 1),
            (1, Currency::TND, 1),
            (49, Currency::USD, 1),
            (49, Currency::JPY, 100),
            (100_000_000, Currency::EUR, 1),
            (33_333_334, Currency::EUR, 3),
            (i64::MAX, Currency::IDR, 1),
            (i64::MAX / 2, Currency::IDR, 3),
        ] {
            let refused = checked(minor, currency, units).unwrap_err();
            assert_eq!(refused.code(), Code::PriceNotChargeable);
            assert!(refused.to_string().contains(currency.code()), "{refused}");
        }
    }
}
