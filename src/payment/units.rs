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

/// Refuses a price of which no whole number of units could be charged, or given back.
///
/// # Errors
/// [`Code::PaymentsOff`].
pub(super) fn check_price(price: Money) -> Result<()> {
    let code = price.currency.code();
    if to_stripe(price.minor, code).is_some() {
        return Ok(());
    }
    Err(Error::refused(
        Code::PaymentsOff,
        format!("this price cannot be charged: the payment gateway takes no such fraction of {code}"),
    ))
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
        let checked = |minor, currency| check_price(Money { minor, currency });
        assert!(checked(1_230, Currency::KWD).is_ok() && checked(1, Currency::JPY).is_ok());
        for (minor, currency) in [(1_234, Currency::KWD), (50, Currency::MGA), (1, Currency::TND)] {
            let refused = checked(minor, currency).unwrap_err();
            assert_eq!(refused.code(), Code::PaymentsOff);
            assert!(refused.to_string().contains(currency.code()), "{refused}");
        }
    }
}
