//! What is wrong with a file, row by row, as a CSV to download.

use std::io::{self, Write};

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
        let mut csv = Self::csv(writer);
        csv.write_record(["row", "column", "reason"])?;
        Ok(Self { csv })
    }

    /// Goes on behind lines that were written before.
    #[must_use]
    pub fn going_on(writer: W) -> Self {
        Self { csv: Self::csv(writer) }
    }

    fn csv(writer: W) -> csv::Writer<W> {
        csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(writer)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn add(&mut self, row: u32, column: &str, reason: &str) -> io::Result<()> {
        self.csv.write_record([&*row.to_string(), &*inert(column), &*inert(reason)])?;
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
        report.add(7, "Code", &Reason::Repeated { first: 2 }.to_string()).unwrap();
        report.add(9, "=A1", &Reason::Blank.to_string()).unwrap();
        let text = String::from_utf8(report.finish().unwrap()).unwrap();
        let wanted = "row,column,reason\r\n7,Code,is the same voucher as in row 2\r\n9,'=A1,must not be blank\r\n";
        assert_eq!(text, wanted);
    }
}
