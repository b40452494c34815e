//! Numbers as text, the way that Redis reads and writes them.

use super::reply::NOT_AN_INTEGER;

/// An integer as Redis accepts it: its one shortest spelling, nothing around it.
pub fn integer(text: &[u8]) -> Result<i64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    number.filter(|number| number.to_string().as_bytes() == text).ok_or_else(|| NOT_AN_INTEGER.to_owned())
}

/// A number that cannot be negative.
pub fn unsigned(text: &[u8]) -> Result<u64, String> {
    u64::try_from(integer(text)?).map_err(|_| NOT_AN_INTEGER.to_owned())
}

/// A score.
pub fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse::<f64>().ok().filter(|number| !number.is_nan())
}

/// A float as C prints it with `%.17g`.
pub fn float_text(value: f64) -> String {
    const DIGITS: i32 = 17;
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let scientific = format!("{:.*e}", (DIGITS - 1) as usize, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (DIGITS - 1 - exponent) as usize;
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[test]
fn floats_read_as_c_prints_them() {
    let cases = [
        (0.0, "0"),
        (3.0, "3"),
        (-3.5, "-3.5"),
        (0.1, "0.10000000000000001"),
        (1e16, "10000000000000000"),
        (1e17, "1e+17"),
        (1e18, "1e+18"),
        (9_007_199_254_740_993.0, "9007199254740992"),
        (1e-5, "1.0000000000000001e-05"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ];
    for (value, text) in cases {
        assert_eq!(float_text(value), text);
    }
}

#[test]
fn an_integer_has_one_spelling() {
    for text in ["", "+1", "01", " 1", "1 ", "-0", "1.0", "1e3", "9223372036854775808"] {
        assert!(integer(text.as_bytes()).is_err(), "{text:?}");
    }
    assert_eq!(integer(b"-9223372036854775808"), Ok(i64::MIN));
}
