//! Imports: vouchers that come in with a spreadsheet.

use chrono::{DateTime, Utc};

use super::ids::ImportId;

/// What has become of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportState {
    /// The file is being read; nothing of it can be sold.
    Reading,
    /// It is decided that its vouchers come in; they do.
    Committing,
    /// Its vouchers are in the inventory.
    Done,
    /// Some rows are wrong and all were wanted, or none is right: nothing came in.
    Refused,
    /// The file cannot be read, or its reading was interrupted: nothing came in.
    Failed,
}

impl ImportState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Reading, Self::Committing, Self::Done, Self::Refused, Self::Failed];

    /// As it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reading => "READING",
            Self::Committing => "COMMITTING",
            Self::Done => "DONE",
            Self::Refused => "REFUSED",
            Self::Failed => "FAILED",
        }
    }

    /// Reads [`Self::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Rows of an import, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Rows that were read.
    pub rows: u32,
    /// Rows that are vouchers.
    pub valid: u32,
    /// Rows that are none, whose names are unknown, or whose vouchers are in the inventory already.
    pub invalid: u32,
    /// Units that are in the inventory now.
    pub added: u32,
}

/// An import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherImport {
    /// Its id.
    pub id: ImportId,
    /// What the uploader calls the file.
    pub file_name: String,
    /// One wrong row, and nothing comes in.
    pub all_or_nothing: bool,
    /// What has become of it.
    pub state: ImportState,
    /// How far it has come.
    pub counts: ImportCounts,
    /// Why it was refused, or failed.
    pub reason: Option<String>,
    /// When it was uploaded.
    pub created_at: DateTime<Utc>,
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// As the spreadsheet shows it, from 1.
    pub row: u32,
    /// The column's title.
    pub column: String,
    /// What is wrong, and what to do.
    pub reason: String,
}
