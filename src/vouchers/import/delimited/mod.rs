//! Rows of a CSV file, as spreadsheets and people save it: with a comma, a semicolon or a tab.

mod decode;

use std::io::{Read, Seek};

use csv::{ReaderBuilder, StringRecord};

use self::decode::Utf8Text;
use super::bounded::Bounded;
use super::cell::{Cell, SheetRow};
use super::fault::ImportFault;
use super::limits::Limits;

/// Hands every row that is not blank to `sink`, in order.
pub(super) fn read_rows<F: Read + Seek>(
    file: F,
    limits: &Limits,
    sink: &mut dyn FnMut(SheetRow) -> Result<(), ImportFault>,
) -> Result<(), ImportFault> {
    let mut text = Utf8Text::new(file)?;
    let start = start_of(&mut text, limits)?;
    let delimiter = delimiter_of(&start);
    let text = Bounded::new(start.as_slice().chain(text), limits.text_bytes_max);
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text);
    let mut record = StringRecord::new();
    let mut line_ends_in_fields = 0;
    loop {
        reader.get_mut().next_piece();
        let before = reader.position().line() - line_ends_in_fields;
        let more = reader.read_record(&mut record).map_err(|error| match error.into() {
            ImportFault::CellTooLong { bytes_max } => ImportFault::RecordTooLong { row: row_number(before), bytes_max },
            fault => fault,
        })?;
        if !more {
            return Ok(());
        }
        // A row may have several lines, and the parser passes over empty lines, which spreadsheets show as rows.
        line_ends_in_fields += record.iter().map(|field| count(field.as_bytes(), b'\n')).sum::<u64>();
        let number = row_number(reader.position().line() - 1 - line_ends_in_fields);
        if let Some(row) = row_of(number, &record, limits)? {
            sink(row)?;
        }
    }
}

fn row_of(number: u32, record: &StringRecord, limits: &Limits) -> Result<Option<SheetRow>, ImportFault> {
    let filled =
        record.iter().enumerate().filter(|(_, field)| !field.trim().is_empty()).last().map_or(0, |(last, _)| last + 1);
    if filled > limits.columns_max {
        return Err(ImportFault::TooManyColumns { row: number, columns_max: limits.columns_max });
    }
    let cells = record.iter().take(filled).map(|field| Cell::text(field.to_owned())).collect();
    Ok((filled > 0).then_some(SheetRow { number, cells }))
}

fn row_number(line: u64) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn count(bytes: &[u8], wanted: u8) -> u64 {
    bytes.iter().filter(|byte| **byte == wanted).count() as u64
}

/// The text up to the end of the first line that is not blank.
fn start_of(text: &mut impl Read, limits: &Limits) -> Result<Vec<u8>, ImportFault> {
    let mut start = Vec::new();
    let mut byte = [0];
    let mut blank = true;
    while text.read(&mut byte)? > 0 {
        start.push(byte[0]);
        if start.len() > limits.text_bytes_max {
            return Err(ImportFault::RecordTooLong { row: 1, bytes_max: limits.text_bytes_max });
        }
        blank &= byte[0].is_ascii_whitespace();
        if byte[0] == b'\n' && !blank {
            break;
        }
    }
    Ok(start)
}

/// The delimiter that the titles are separated by: the one that occurs most often, outside quotation marks.
fn delimiter_of(start: &[u8]) -> u8 {
    let mut quoted = false;
    let bare: Vec<u8> = start
        .iter()
        .copied()
        .filter(|byte| {
            quoted ^= *byte == b'"';
            !quoted
        })
        .collect();
    // Of equals the last counts: a file of one column has a comma's rules.
    [b'\t', b';', b','].into_iter().max_by_key(|delimiter| count(&bare, *delimiter)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn rows(text: &str) -> Result<Vec<(u32, Vec<String>)>, ImportFault> {
        let mut rows = Vec::new();
        read_rows(Cursor::new(text.as_bytes()), &Limits::default(), &mut |row| {
            let texts =
                row.cells.into_iter().map(|cell| if let Cell::Text(text) = cell { text } else { String::new() });
            rows.push((row.number, texts.collect()));
            Ok(())
        })?;
        Ok(rows)
    }

    fn row(number: u32, cells: &[&str]) -> (u32, Vec<String>) {
        (number, cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn the_delimiter_is_found_in_the_titles() {
        for delimiter in [",", ";", "\t"] {
            let text = format!("a{delimiter}\"b,,;;\"{delimiter}c\n1{delimiter}2{delimiter}3");
            assert_eq!(rows(&text).unwrap(), [row(1, &["a", "b,,;;", "c"]), row(2, &["1", "2", "3"])], "{delimiter:?}");
        }
        assert_eq!(rows("Code\nA,B\n").unwrap()[1], row(2, &["A", "B"]));
    }

    #[test]
    fn rows_are_numbered_as_a_spreadsheet_shows_them() {
        let text = "\r\na,b\r\n\"1\r\n1\",\"x\"\"y\"\r\n\r\n2,2\r\n,\r\n , \r\n3";
        let wanted = [row(2, &["a", "b"]), row(3, &["1\n1", "x\"y"]), row(5, &["2", "2"]), row(8, &["3"])];
        assert_eq!(rows(text).unwrap(), wanted);
    }

    #[test]
    fn an_open_quotation_mark_does_not_swallow_the_file() {
        let text = format!("a,b\n1,2\n3,\"4\n{}", "5,6\n".repeat(100_000));
        let fault = rows(&text).unwrap_err();
        assert!(matches!(fault, ImportFault::RecordTooLong { row: 3, .. }), "{fault:?}");
    }

    #[test]
    fn a_line_without_an_end_and_a_million_columns_are_refused() {
        let long = "x".repeat(1_000_000);
        assert!(matches!(rows(&long), Err(ImportFault::RecordTooLong { row: 1, .. })));
        assert!(matches!(rows(&",".repeat(1_000_000)), Err(ImportFault::RecordTooLong { row: 1, .. })));
        let wide = format!("a\n{}x\n", ",".repeat(100));
        assert!(matches!(rows(&wide), Err(ImportFault::TooManyColumns { row: 2, .. })));
        assert_eq!(rows(&format!("a\nb{}\n", ",".repeat(100))).unwrap()[1], row(2, &["b"]));
    }
}
