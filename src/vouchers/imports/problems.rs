//! What is wrong with the rows of an import, as a CSV to download, page by page.

use super::super::Vouchers;
use super::super::import::ErrorReport;
use crate::domain::ids::ImportId;
use crate::error::{Error, Result};

/// Lines that are read, and sent, at once.
const LINES_PER_PAGE: u32 = 1_000;

/// Where a report goes on.
#[derive(Debug, Clone, Copy, Default)]
pub enum ReportAt {
    /// At its titles.
    #[default]
    Start,
    /// Behind this line.
    Behind(u32, [u8; 12]),
    /// There is nothing more.
    End,
}

impl Vouchers {
    /// The next part of an import's report, and where it goes on; `None` when there is nothing more.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn import_report(&self, import: ImportId, at: ReportAt) -> Result<Option<(Vec<u8>, ReportAt)>> {
        let (mut report, after) = match at {
            ReportAt::Start => (ErrorReport::new(Vec::new()), None),
            ReportAt::Behind(row, id) => (Ok(ErrorReport::going_on(Vec::new())), Some((row, id))),
            ReportAt::End => return Ok(None),
        };
        let lines = self.durable.voucher_imports.problems(import, after, LINES_PER_PAGE).await?;
        let next = match lines.last() {
            Some((id, line)) if lines.len() >= LINES_PER_PAGE as usize => ReportAt::Behind(line.row, *id),
            _ => ReportAt::End,
        };
        let broken = |error| Error::internal("writing a report", error);
        if let Ok(report) = &mut report {
            for (_, line) in &lines {
                report.add(line.row, &line.column, &line.reason).map_err(broken)?;
            }
        }
        let bytes = report.and_then(ErrorReport::finish).map_err(broken)?;
        Ok(Some((bytes, next)))
    }
}
