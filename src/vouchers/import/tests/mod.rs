//! Whole files through the whole import.

mod golden;
mod hostile;
mod properties;
mod template;
mod volume;
mod workbooks;

use std::io::Cursor;
use std::ops::ControlFlow;

use chrono_tz::Tz;
use iso_currency::Currency;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::*;

fn rules() -> Rules {
    Rules {
        zone: Tz::Asia__Kolkata,
        currency: Currency::INR,
        now: "2026-11-30T12:00:00Z".parse().unwrap(),
        limits: Limits::default(),
    }
}

fn checksum(secrets: &Secrets) -> [u8; 32] {
    let parts = [&secrets.code, &secrets.pin, &secrets.claim_url, &secrets.reference];
    let texts = parts.map(|part| part.as_ref().map_or("", |secret| secret.expose_secret()));
    Sha256::digest(texts.join("|")).into()
}

/// Every row of a file.
fn outcomes_by(bytes: &[u8], name: &str, rules: &Rules) -> Result<Vec<RowOutcome>, ImportFault> {
    let mut outcomes = Vec::new();
    let counts = read(Cursor::new(bytes), name, rules, checksum, |outcome| {
        outcomes.push(outcome);
        ControlFlow::Continue(())
    })?;
    assert_eq!((counts.valid + counts.invalid) as usize, outcomes.len());
    Ok(outcomes)
}

fn outcomes(bytes: &[u8], name: &str) -> Result<Vec<RowOutcome>, ImportFault> {
    outcomes_by(bytes, name, &rules())
}

/// Every row of a file in which every row is a voucher.
fn vouchers(bytes: &[u8], name: &str) -> Vec<ImportRow> {
    let voucher = |outcome| match outcome {
        RowOutcome::Valid(voucher) => *voucher,
        RowOutcome::Invalid(errors) => panic!("{errors:?}"),
    };
    outcomes(bytes, name).unwrap().into_iter().map(voucher).collect()
}

/// Row, column and reason of everything that is wrong with a file's rows.
fn errors(bytes: &[u8], name: &str) -> Vec<(u32, String, Reason)> {
    let errors = |outcome| match outcome {
        RowOutcome::Valid(_) => Vec::new(),
        RowOutcome::Invalid(errors) => errors,
    };
    let all = outcomes(bytes, name).unwrap().into_iter().flat_map(errors);
    all.map(|error| (error.row, error.column.into_owned(), error.reason)).collect()
}

fn codes(vouchers: &[ImportRow]) -> Vec<&str> {
    vouchers.iter().filter_map(|voucher| voucher.secrets.code.as_ref()).map(|code| code.expose_secret()).collect()
}

fn fault(bytes: &[u8], name: &str) -> ImportFault {
    outcomes(bytes, name).unwrap_err()
}
