//! Reads vouchers from a spreadsheet that somebody uploaded, XLSX or CSV, row by row.
//!
//! What the file is worth is decided in three steps. A file that is not what it says, is damaged, or asks for too much is
//! refused as a whole ([`ImportFault`]). A row is then a voucher ([`ImportRow`]) or has reasons why it is none
//! ([`RowError`]). Whether its names are known, and whether a code was imported before, is for the caller to find out.
//!
//! Nothing is guessed: codes are texts or refused, dates are unambiguous or refused. Secrets appear in no error.

mod bounded;
mod cell;
mod delimited;
mod expiry;
mod fault;
mod format;
mod header;
mod limits;
mod report;
mod row;
mod template;
mod validate;
mod xlsx;

use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use iso_currency::Currency;

use self::cell::SheetRow;
pub use self::fault::ImportFault;
use self::format::{FIRST_BYTES, Format};
pub use self::header::Column;
use self::header::Header;
pub use self::limits::Limits;
pub use self::report::ErrorReport;
pub use self::row::{ImportRow, Reason, RowError, RowOutcome};
pub use self::template::{template_csv, template_xlsx};
use self::validate::Validator;
use crate::domain::voucher::Secrets;

/// What a row is read by.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Where the issuer's days begin and end.
    pub zone: Tz,
    /// Of amounts in rows that name no currency.
    pub currency: Currency,
    /// The moment of the import.
    pub now: DateTime<Utc>,
    /// What the file may ask of us.
    pub limits: Limits,
}

/// How many rows a file had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that are vouchers.
    pub valid: u32,
    /// Rows that are none.
    pub invalid: u32,
}

/// Reads a file, and hands every row below the titles to `each`, in order. Rows count only if the whole file could be read:
/// some faults show at its end.
///
/// It blocks, so it belongs on a thread for that. No row is held: whoever is slow in `each` slows the reading. `name` is
/// what the uploader calls the file; the content decides. Two rows with the same `checksum` are the same voucher.
///
/// # Errors
/// When the file is refused as a whole, or `each` breaks off ([`ImportFault::Stopped`]).
pub fn read<F: Read + Seek>(
    mut file: F,
    name: &str,
    rules: &Rules,
    checksum: impl Fn(&Secrets) -> [u8; 32],
    mut each: impl FnMut(RowOutcome) -> ControlFlow<()>,
) -> Result<Counts, ImportFault> {
    let format = format_of(&mut file, name, &rules.limits)?;
    let mut checksum = Some(checksum);
    let mut validator = None;
    let mut counts = Counts::default();
    let mut sink = |row: SheetRow| {
        let Some(validator) = &mut validator else {
            // The first row that is not blank.
            let header = Header::read(&row)?;
            validator = checksum.take().map(|checksum| Validator::new(header, rules, checksum));
            return Ok(());
        };
        if counts.valid + counts.invalid >= rules.limits.rows_max {
            return Err(ImportFault::TooManyRows { rows_max: rules.limits.rows_max });
        }
        let outcome = validator.check(row);
        match &outcome {
            RowOutcome::Valid(_) => counts.valid += 1,
            RowOutcome::Invalid(_) => counts.invalid += 1,
        }
        if each(outcome).is_break() { Err(ImportFault::Stopped) } else { Ok(()) }
    };
    match format {
        Format::Xlsx => xlsx::read_rows(file, &rules.limits, &mut sink)?,
        Format::Csv => delimited::read_rows(file, &rules.limits, &mut sink)?,
    }
    match validator {
        None => Err(ImportFault::Empty),
        Some(_) if counts == Counts::default() => Err(ImportFault::NoRows),
        Some(_) => Ok(counts),
    }
}

/// Looks at the size and the first bytes, and goes back to the start.
fn format_of(file: &mut (impl Read + Seek), name: &str, limits: &Limits) -> Result<Format, ImportFault> {
    let bytes = file.seek(SeekFrom::End(0))?;
    if bytes > limits.file_bytes_max {
        return Err(ImportFault::FileTooLarge { bytes_max: limits.file_bytes_max });
    }
    file.rewind()?;
    let mut first = Vec::with_capacity(FIRST_BYTES);
    file.by_ref().take(FIRST_BYTES as u64).read_to_end(&mut first)?;
    file.rewind()?;
    Format::of(&first, name)
}

#[cfg(test)]
mod tests;
