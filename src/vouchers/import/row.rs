//! What a row turns out to be: a voucher, or the reasons why it is none.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use iso_currency::Currency;

use crate::domain::money::{Money, MoneyError};
use crate::domain::voucher::Secrets;

/// A row that can be imported, once its names are known.
#[derive(Debug, Clone)]
pub struct ImportRow {
    /// As the spreadsheet shows it, from 1.
    pub row: u32,
    /// The product's name.
    pub product: String,
    /// What it is worth, in minor units of `currency`, or of [`super::Rules::currency`] if that is none.
    pub denomination_minor: i64,
    /// The row's currency, if it names one.
    pub currency: Option<Currency>,
    /// The vendor's name.
    pub vendor: String,
    /// What is sold.
    pub secrets: Secrets,
    /// The moment from which it is worth nothing.
    pub expires_at: DateTime<Utc>,
    /// The client that it is kept for.
    pub client: Option<String>,
}

/// What is wrong with one cell. It repeats nothing of the cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// As the spreadsheet shows it, from 1.
    pub row: u32,
    /// The column's title, or its letter if it has none.
    pub column: Cow<'static, str>,
    /// What is wrong, and what to do.
    pub reason: Reason,
}

/// A row of the file.
#[derive(Debug, Clone)]
pub enum RowOutcome {
    /// A voucher.
    Valid(Box<ImportRow>),
    /// At least one reason why it is none.
    Invalid(Vec<RowError>),
}

/// Why a cell cannot be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Nothing where something must be.
    #[error("must not be blank")]
    Blank,
    /// Neither a code nor a claim URL.
    #[error("the row has neither a code nor a claim URL")]
    NothingToSell,
    /// A value below no title.
    #[error("the column has no title: remove the value, or give the column a title of the template")]
    NoTitle,
    /// A formula, in any column.
    #[error("holds a formula: copy the cells and paste their values only")]
    Formula,
    /// A number, a date, a truth value where only a text is exact.
    #[error("must be a text, but the cell holds {0}: format the column as text and enter the value again")]
    NotText(&'static str),
    /// More characters than any such value has.
    #[error("has more than {0} characters")]
    TooLong(usize),
    /// Line ends, tabs and the like.
    #[error("contains a line end or another control character")]
    ControlCharacter,
    /// What nobody sees, and every comparison does.
    #[error("contains an invisible character or a no-break space: type the value again instead of pasting it")]
    InvisibleCharacter,
    /// Not an amount of the currency.
    #[error("{0}")]
    Amount(MoneyError),
    /// A number of which nobody can say what was typed.
    #[error("has more decimals than the currency, or is too large to be exact: enter it as a text")]
    InexactAmount,
    /// A date or the like.
    #[error("must be an amount, but the cell holds {0}")]
    NotAmount(&'static str),
    /// No currency.
    #[error("must be a currency's three letters, such as INR or EUR")]
    NotCurrency,
    /// Not an address.
    #[error("must be an address that starts with https://")]
    NotHttps,
    /// Which number is the month?
    #[error("which number is the month? Write the date as 2027-03-31, or format the cell as a date")]
    AmbiguousDate,
    /// What is left of a date when its format is lost.
    #[error("is a number, not a date: format the cell as a date, or write it as 2027-03-31")]
    SerialNumber,
    /// Anything else.
    #[error("must be a date such as 2027-03-31, or a moment such as 2027-03-31T18:00:00+05:30")]
    NotDate,
    /// Not after the import.
    #[error("has expired already")]
    Expired,
    /// More than fifty years.
    #[error("is more than 50 years away")]
    TooFar,
    /// Not in the inventory's lists.
    #[error("there is no {0} of this name: enter it first, or correct the name")]
    Unknown(&'static str),
    /// Not among what the product has.
    #[error("the product has no such {0}")]
    NotOfProduct(&'static str),
    /// The amount is of another currency than the product's.
    #[error("is not the product's currency")]
    OtherCurrency,
    /// The same secrets came in before.
    #[error("is in the inventory already")]
    InInventory,
    /// The same secrets as in a row before.
    #[error("is the same voucher as in row {first}")]
    Repeated {
        /// As the spreadsheet shows it.
        first: u32,
    },
}

impl ImportRow {
    /// The denomination in minor units of the product's currency, when the row names none. A currency that it names stands.
    ///
    /// # Errors
    /// When the product's currency is coarser than the one that the amount was read in, so that something would be lost.
    pub fn denomination_in(&self, read_in: Currency, product: Currency) -> Result<i64, MoneyError> {
        let read = Money { minor: self.denomination_minor, currency: self.currency.unwrap_or(read_in) };
        Money::parse_price(&read.major_text(), product).map(|money| money.minor)
    }
}
