//! Imports: a spreadsheet is read, its rows are staged, and then all of them come in, or none does.
//!
//! 1. the file is read on a thread for that, row by row; names are looked up, codes sealed and hashed, rows staged
//! 2. it is decided, in one write, whether the staged rows come in (`COMMITTING`) or not
//! 3. they are moved into the inventory, page by page
//!
//! | the process dies in step | what it means |
//! |---|---|
//! | 1 | The file is gone. Another process fails the import; nothing came in. |
//! | 2, 3 | Another process goes on. A row that was moved before is there already. |

mod names;
mod problems;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use chrono::TimeDelta;
use tokio::sync::mpsc;

use self::names::Names;
pub use self::problems::ReportAt;
use super::import::{self, ImportRow, Limits, Reason, RowError, RowOutcome, Rules};
use super::{Vouchers, named};
use crate::domain::ids::ImportId;
use crate::domain::page::{Listed, Page};
use crate::domain::voucher::UnitId;
use crate::domain::voucher_import::{ImportCounts, ImportProblem, ImportState, VoucherImport};
use crate::error::{Code, Error, Result};
use crate::store::mongo::new_id;
use crate::store::mongo::vouchers::units::NewUnit;

/// Rows that are read ahead.
const ROWS_AHEAD: usize = 256;
/// Rows that are staged, and moved, at once.
const ROWS_AT_ONCE: usize = 500;
/// An import that has not said for so long that it is at work is another process' to finish.
const ALIVE: TimeDelta = TimeDelta::seconds(60);
/// Files that are read at once: each is held in memory, and a part of a workbook besides.
pub(super) const FILES_AT_ONCE: usize = 1;

/// An uploaded file.
#[derive(Debug)]
pub struct Upload {
    /// What the uploader calls it.
    pub name: String,
    /// Its content.
    pub bytes: Bytes,
    /// One wrong row, and nothing comes in.
    pub all_or_nothing: bool,
}

/// Rows that are read, and what is known of them.
struct Reading {
    import: ImportId,
    names: Names,
    counts: ImportCounts,
    rows: Vec<ImportRow>,
    problems: Vec<ImportProblem>,
}

impl Vouchers {
    /// Begins an import. What it needs to go on is in what is returned; give it to [`Self::read_import`].
    ///
    /// # Errors
    /// [`Code::Overloaded`] when too many files are being read. When the database does not answer.
    pub async fn begin_import(&self, upload: &Upload) -> Result<(VoucherImport, tokio::sync::OwnedSemaphorePermit)> {
        let turn = Arc::clone(&self.imports).try_acquire_owned();
        let busy = |_| Error::refused(Code::Overloaded, "other files are being read; try again in a minute");
        let turn = turn.map_err(busy)?;
        let now = self.clock.now();
        let import = VoucherImport {
            id: ImportId::from_bytes(new_id()),
            file_name: upload.name.chars().take(200).collect(),
            all_or_nothing: upload.all_or_nothing,
            state: ImportState::Reading,
            counts: ImportCounts::default(),
            reason: None,
            created_at: now,
        };
        self.durable.voucher_imports.begin(&import, now + ALIVE).await?;
        Ok((import, turn))
    }

    /// Reads an upload to its end, and brings its vouchers in, or none.
    ///
    /// # Errors
    /// When a store does not answer: another process finishes the import, or fails it.
    pub async fn read_import(&self, import: VoucherImport, upload: Upload) -> Result<()> {
        let rules =
            Rules { zone: self.zone, currency: self.currency, now: self.clock.now(), limits: Limits::default() };
        let (sender, mut receiver) = mpsc::channel(ROWS_AHEAD);
        let (keyring, name) = (Arc::clone(&self.keyring), upload.name);
        // Its end is awaited below, and it ends when nobody takes its rows.
        let reading = tokio::task::spawn_blocking(move || {
            let each = |row| {
                if sender.blocking_send(row).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            import::read(Cursor::new(upload.bytes), &name, &rules, |secrets| keyring.checksum(secrets), each)
        });
        let names = Names::default();
        let mut work = Reading {
            import: import.id,
            names,
            counts: ImportCounts::default(),
            rows: Vec::new(),
            problems: Vec::new(),
        };
        while let Some(row) = receiver.recv().await {
            work.take(row);
            if work.rows.len() + work.problems.len() >= ROWS_AT_ONCE {
                self.stage(&mut work).await?;
            }
        }
        drop(receiver);
        self.stage(&mut work).await?;
        match reading.await.map_err(|panic| Error::internal("reading a spreadsheet", panic))? {
            Ok(_) => self.decide(&import, work.counts).await,
            Err(fault) => self.give_up(import.id, work.counts, ImportState::Failed, &fault.to_string()).await,
        }
    }

    /// Looks up what a batch of rows names, and stages those that are vouchers.
    async fn stage(&self, work: &mut Reading) -> Result<()> {
        let rows = std::mem::take(&mut work.rows);
        work.names.learn(&self.durable, &rows).await?;
        let (mut numbers, mut incoming) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            let number = row.row;
            match self.named(&work.names, row, work.import) {
                Ok(unit) => {
                    numbers.push(number);
                    incoming.push(unit);
                }
                Err(errors) => work.refuse(errors),
            }
        }
        let sealed = self.sealed_units(&incoming).await?;
        let mut new: Vec<(u32, NewUnit)> = numbers.into_iter().zip(sealed).collect();
        let checksums: Vec<&str> = new.iter().map(|(_, unit)| unit.checksum.as_str()).collect();
        let known = self.durable.voucher_units.known_checksums(&checksums).await?;
        new.retain(|(row, unit)| {
            let is_new = !known.contains(&unit.checksum);
            if !is_new {
                work.refuse(vec![RowError { row: *row, column: "Code".into(), reason: Reason::InInventory }]);
            }
            is_new
        });
        let units: Vec<NewUnit> = new.into_iter().map(|(_, unit)| unit).collect();
        self.durable.voucher_imports.stage(work.import, &units).await?;
        self.durable.voucher_imports.record(work.import, &std::mem::take(&mut work.problems)).await?;
        work.counts.valid += u32::try_from(units.len()).unwrap_or(u32::MAX);
        let alive_until = self.clock.now() + ALIVE;
        if self.durable.voucher_imports.beat(work.import, ImportState::Reading, work.counts, alive_until).await? {
            return Ok(());
        }
        // It was too slow, and another process has failed it.
        self.durable.voucher_imports.unstage_all(work.import).await?;
        Err(Error::internal("importing vouchers", "the import was taken over by another process"))
    }

    /// Step 2.
    async fn decide(&self, import: &VoucherImport, counts: ImportCounts) -> Result<()> {
        if counts.valid == 0 || (import.all_or_nothing && counts.invalid > 0) {
            let reason = format!("{} of {} rows are wrong; nothing came in", counts.invalid, counts.rows);
            return self.give_up(import.id, counts, ImportState::Refused, &reason).await;
        }
        let (from, to) = (ImportState::Reading, ImportState::Committing);
        if self.durable.voucher_imports.advance(import.id, from, to, counts, None).await? {
            return self.commit(import.id, counts).await;
        }
        Ok(())
    }

    /// Step 3. Can be repeated: a unit that was moved before is a duplicate, and gone from the staged ones.
    async fn commit(&self, import: ImportId, mut counts: ImportCounts) -> Result<()> {
        loop {
            let staged = self.durable.voucher_imports.staged(import, ROWS_AT_ONCE as u32).await?;
            if staged.is_empty() {
                break;
            }
            self.durable.voucher_units.insert(&staged).await?;
            let ids: Vec<UnitId> = staged.iter().map(|new| new.unit.id).collect();
            let units = self.durable.voucher_units.by_ids(&ids).await?;
            self.place(&units).await?;
            self.durable.voucher_imports.unstage(&ids).await?;
            counts.added += u32::try_from(units.len()).unwrap_or(u32::MAX);
            let alive_until = self.clock.now() + ALIVE;
            self.durable.voucher_imports.beat(import, ImportState::Committing, counts, alive_until).await?;
        }
        let (from, to) = (ImportState::Committing, ImportState::Done);
        self.durable.voucher_imports.advance(import, from, to, counts, None).await?;
        tracing::info!(%import, added = counts.added, "vouchers imported");
        Ok(())
    }

    async fn give_up(&self, import: ImportId, counts: ImportCounts, to: ImportState, reason: &str) -> Result<()> {
        if self.durable.voucher_imports.advance(import, ImportState::Reading, to, counts, Some(reason)).await? {
            tracing::info!(%import, state = to.as_str(), reason, "no vouchers were imported");
        }
        self.durable.voucher_imports.unstage_all(import).await
    }

    /// Brings imports that nobody works on to their end.
    pub(super) async fn finish_imports(&self) -> Result<()> {
        let now = self.clock.now();
        while let Some(import) = self.durable.voucher_imports.take_over(now, now + ALIVE).await? {
            match import.state {
                ImportState::Committing => self.commit(import.id, import.counts).await?,
                _ => {
                    let reason = "its reading was interrupted: upload the file again";
                    self.give_up(import.id, import.counts, ImportState::Failed, reason).await?;
                }
            }
        }
        Ok(())
    }

    /// An import.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn voucher_import(&self, id: ImportId) -> Result<VoucherImport> {
        self.durable.voucher_imports.by_id(id).await?.ok_or_else(|| named::unknown("import"))
    }

    /// Imports, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn voucher_imports(&self, page: Page) -> Result<Listed<VoucherImport>> {
        self.durable.voucher_imports.list(page).await
    }
}

impl Reading {
    fn take(&mut self, row: RowOutcome) {
        self.counts.rows += 1;
        match row {
            RowOutcome::Valid(row) => self.rows.push(*row),
            RowOutcome::Invalid(errors) => self.refuse(errors),
        }
    }

    fn refuse(&mut self, errors: Vec<RowError>) {
        self.counts.invalid += 1;
        let problem = |error: RowError| ImportProblem {
            row: error.row,
            column: error.column.into_owned(),
            reason: error.reason.to_string(),
        };
        self.problems.extend(errors.into_iter().map(problem));
    }
}
