//! From a row of cells to a voucher, or to every reason why it is none.

use std::borrow::Cow;
use std::collections::HashMap;

use iso_currency::Currency;
use reqwest::Url;
use secrecy::SecretString;

use super::Rules;
use super::cell::{Cell, SheetRow, letters};
use super::expiry;
use super::header::{Cells, Column, Header};
use super::row::{ImportRow, Reason, RowError, RowOutcome};
use crate::domain::money::{self, Money, MoneyError};
use crate::domain::voucher::Secrets;

const NAME_CHARS_MAX: usize = 200;
const CODE_CHARS_MAX: usize = 256;
const PIN_CHARS_MAX: usize = 64;
const URL_CHARS_MAX: usize = 2048;
const AMOUNT_CHARS_MAX: usize = 32;

/// Checks rows one by one, and remembers the checksum of each: 32 bytes and a row number.
pub(super) struct Validator<'a, C> {
    header: Header,
    rules: &'a Rules,
    checksum: C,
    seen: HashMap<[u8; 32], u32>,
}

/// What is wrong with a row so far.
struct Wrong {
    row: u32,
    errors: Vec<RowError>,
}

impl Wrong {
    fn add(&mut self, column: impl Into<Cow<'static, str>>, reason: Reason) {
        self.errors.push(RowError { row: self.row, column: column.into(), reason });
    }

    fn keep<T>(&mut self, column: Column, result: Result<T, Reason>) -> Option<T> {
        result.map_err(|reason| self.add(column.title(), reason)).ok()
    }
}

impl<'a, C: Fn(&Secrets) -> [u8; 32]> Validator<'a, C> {
    pub(super) fn new(header: Header, rules: &'a Rules, checksum: C) -> Self {
        Self { header, rules, checksum, seen: HashMap::new() }
    }

    pub(super) fn check(&mut self, row: SheetRow) -> RowOutcome {
        let number = row.number;
        let mut wrong = Wrong { row: number, errors: Vec::new() };
        let (mut cells, stray) = self.header.sort(row);
        for index in stray {
            wrong.add(letters(index), Reason::NoTitle);
        }
        match self.voucher(&mut cells, &mut wrong) {
            Some(voucher) if wrong.errors.is_empty() => RowOutcome::Valid(Box::new(voucher)),
            _ => RowOutcome::Invalid(wrong.errors),
        }
    }

    /// The voucher, if every part of it can be read; what cannot is added to `wrong`.
    fn voucher(&mut self, cells: &mut Cells, wrong: &mut Wrong) -> Option<ImportRow> {
        let name = |cells: &mut Cells, column| text(cells.take(column), NAME_CHARS_MAX);
        let required = |name: Result<Option<String>, Reason>| name.and_then(|name| name.ok_or(Reason::Blank));
        let product = wrong.keep(Column::Product, required(name(cells, Column::Product)));
        let vendor = wrong.keep(Column::Vendor, required(name(cells, Column::Vendor)));
        let client = wrong.keep(Column::Client, name(cells, Column::Client));
        let currency = wrong.keep(Column::Currency, currency(cells.take(Column::Currency)));
        let amount = cells.take(Column::Denomination);
        let denomination = currency.and_then(|currency| {
            wrong.keep(Column::Denomination, denomination(amount, currency.unwrap_or(self.rules.currency)))
        });
        let expiry = expiry::read(cells.take(Column::Expiry), self.rules.zone, self.rules.now);
        let expires_at = wrong.keep(Column::Expiry, expiry);
        let secrets = self.secrets(cells, wrong);
        Some(ImportRow {
            row: wrong.row,
            product: product?,
            denomination_minor: denomination?,
            currency: currency?,
            vendor: vendor?,
            secrets: secrets?,
            expires_at: expires_at?,
            client: client?,
        })
    }

    fn secrets(&mut self, cells: &mut Cells, wrong: &mut Wrong) -> Option<Secrets> {
        let mut read = |column, chars_max, check: fn(&str) -> Result<(), Reason>| {
            wrong.keep(column, secret(cells.take(column), chars_max, check))
        };
        let code = read(Column::Code, CODE_CHARS_MAX, |_| Ok(()));
        let pin = read(Column::Pin, PIN_CHARS_MAX, |_| Ok(()));
        let claim_url = read(Column::ClaimUrl, URL_CHARS_MAX, check_url);
        let reference = read(Column::Reference, CODE_CHARS_MAX, |_| Ok(()));
        let secrets = Secrets { code: code?, pin: pin?, claim_url: claim_url?, reference: reference? };
        if secrets.code.is_none() && secrets.claim_url.is_none() {
            wrong.add(Column::Code.title(), Reason::NothingToSell);
            return None;
        }
        // A row that is wrong elsewhere counts as well: once it is put right, both would be there.
        let first = *self.seen.entry((self.checksum)(&secrets)).or_insert(wrong.row);
        if first != wrong.row {
            let column = if secrets.code.is_some() { Column::Code } else { Column::ClaimUrl };
            wrong.add(column.title(), Reason::Repeated { first });
        }
        Some(secrets)
    }
}

/// A text without the spaces around it. Nothing but a text is one.
fn text(cell: Cell, chars_max: usize) -> Result<Option<String>, Reason> {
    let text = match cell {
        Cell::Blank => return Ok(None),
        Cell::Text(text) => text,
        Cell::Number(_) => return Err(Reason::NotText("a number")),
        Cell::Date(_) => return Err(Reason::NotText("a date")),
        Cell::Other(what) => return Err(Reason::NotText(what)),
        Cell::Formula => return Err(Reason::Formula),
    };
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if text.chars().count() > chars_max {
        return Err(Reason::TooLong(chars_max));
    }
    if text.chars().any(char::is_control) {
        return Err(Reason::ControlCharacter);
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn secret(cell: Cell, chars_max: usize, check: fn(&str) -> Result<(), Reason>) -> Result<Option<SecretString>, Reason> {
    let Some(text) = text(cell, chars_max)? else { return Ok(None) };
    if text.contains(is_invisible) {
        return Err(Reason::InvisibleCharacter);
    }
    check(&text)?;
    Ok(Some(text.into()))
}

/// Soft hyphens, no-break spaces, joiners, marks of direction and byte order: they come along when a code is pasted from a
/// message, and whoever types the code leaves them out.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{A0}' | '\u{AD}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202F}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

fn check_url(text: &str) -> Result<(), Reason> {
    let url = Url::parse(text).map_err(|_| Reason::NotHttps)?;
    // The parser forgives spaces and missing slashes; a buyer's program may not.
    let literal = text.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://")) && !text.contains(' ');
    if literal && url.scheme() == "https" && url.has_host() { Ok(()) } else { Err(Reason::NotHttps) }
}

fn currency(cell: Cell) -> Result<Option<Currency>, Reason> {
    let Some(code) = text(cell, NAME_CHARS_MAX)? else { return Ok(None) };
    money::currency(&code.to_ascii_uppercase()).map(Some).ok_or(Reason::NotCurrency)
}

fn denomination(cell: Cell, currency: Currency) -> Result<i64, Reason> {
    let text = match cell {
        Cell::Number(number) => exact(&number, currency)?,
        Cell::Date(_) => return Err(Reason::NotAmount("a date")),
        Cell::Other(what) => return Err(Reason::NotAmount(what)),
        cell => text(cell, AMOUNT_CHARS_MAX)?.ok_or(Reason::Blank)?,
    };
    Money::parse_price(&text, currency).map(|money| money.minor).map_err(Reason::Amount)
}

/// A number as the decimal that was typed: the one with the currency's decimals that is stored as this number, bit for bit.
fn exact(number: &str, currency: Currency) -> Result<String, Reason> {
    let value: f64 = number.parse().map_err(|_| Reason::Amount(MoneyError::NotDecimal))?;
    let places = currency.exponent().map_or(0, usize::from);
    let text = format!("{value:.places$}");
    let same = text.parse::<f64>() == Ok(value);
    // From 2^53 on, neighbouring decimals are stored as the same number.
    if same && value.abs() < 9e15 { Ok(text) } else { Err(Reason::InexactAmount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numeric_denomination_must_be_exact() {
        for (number, wanted) in [("25", 2_500), ("19.99", 1_999), ("19.989999999999998", 1_999), ("2.5E1", 2_500)] {
            assert_eq!(denomination(Cell::Number(number.into()), Currency::INR), Ok(wanted), "{number}");
        }
        for number in ["0.001", "19.999", "0.30000000000000004", "1E300", "NaN", "1E15.5"] {
            assert!(denomination(Cell::Number(number.into()), Currency::INR).is_err(), "{number}");
        }
        assert_eq!(denomination(Cell::Number("1200".into()), Currency::JPY), Ok(1_200));
        assert_eq!(denomination(Cell::Number("1.5".into()), Currency::JPY), Err(Reason::InexactAmount));
        let out_of_range = Err(Reason::Amount(MoneyError::OutOfRange));
        assert_eq!(denomination(Cell::Number("0".into()), Currency::INR), out_of_range);
        assert_eq!(denomination(Cell::Number("-5".into()), Currency::INR), out_of_range);
        assert_eq!(denomination(Cell::Blank, Currency::INR), Err(Reason::Blank));
    }

    #[test]
    fn claim_urls_are_https_and_literal() {
        assert_eq!(check_url("https://cards.example/c?id=1#x"), Ok(()));
        for text in
            ["http://cards.example/", "https:cards.example", "javascript:alert(1)", "https://", "https://a b/", "x"]
        {
            assert_eq!(check_url(text), Err(Reason::NotHttps), "{text}");
        }
    }

    #[test]
    fn only_the_spaces_around_a_secret_are_taken_away() {
        let read = |text: &str| text.to_owned();
        assert_eq!(text(Cell::Text(read(" 00 12 \t")), 10), Ok(Some("00 12".to_owned())));
        assert_eq!(text(Cell::Text(read("12345678901")), 10), Err(Reason::TooLong(10)));
        assert_eq!(text(Cell::Text(read("a\nb")), 10), Err(Reason::ControlCharacter));
        for hidden in ["a\u{200B}b", "\u{FEFF}ab", "ab\u{A0}", "a\u{202E}b"] {
            let secret = secret(Cell::Text(read(hidden)), 10, |_| Ok(()));
            assert!(matches!(secret, Err(Reason::InvisibleCharacter)), "{hidden:?}");
        }
    }
}
