//! What is wrong with a file, row by row, as a CSV to download.

use std::io::{self, Write};

use super::row::RowError;
use crate::domain::spreadsheet::inert;

/// Writes rows' errors as they come. No value of the file is in it.
pub struct ErrorReport<W: Write> {
    csv: csv::Writer<W>,
}

impl<W: Write> std::fmt::Debug for ErrorReport<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ErrorReport")
    }
}

impl<W: Write> ErrorReport<W> {
    /// Begins with the titles.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn new(writer: W) -> io::Result<Self> {
        let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(writer);
        csv.write_record(["row", "column", "reason"])?;
        Ok(Self { csv })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn add(&mut self, error: &RowError) -> io::Result<()> {
        let (row, reason) = (error.row.to_string(), error.reason.to_string());
        self.csv.write_record([&*row, &*inert(&*error.column), &*inert(&*reason)])?;
        Ok(())
    }

    /// Ends it, and gives the writer back.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn finish(self) -> io::Result<W> {
        self.csv.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vouchers::import::row::Reason;

    #[test]
    fn the_report_is_inert_csv() {
        let mut report = ErrorReport::new(Vec::new()).unwrap();
        report.add(&RowError { row: 7, column: "Code".into(), reason: Reason::Repeated { first: 2 } }).unwrap();
        report.add(&RowError { row: 9, column: "=A1".into(), reason: Reason::Blank }).unwrap();
        let text = String::from_utf8(report.finish().unwrap()).unwrap();
        let wanted = "row,column,reason\r\n7,Code,is the same voucher as in row 2\r\n9,'=A1,must not be blank\r\n";
        assert_eq!(text, wanted);
    }
}
