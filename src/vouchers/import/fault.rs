//! Why a whole file is refused.

use std::io;
use std::sync::Arc;

use zip::result::ZipError;

/// The file as a whole cannot be imported. The message says what to do, and repeats nothing from below the titles.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// Nothing, or nothing but blank rows.
    #[error("the file is empty: fill in the template and upload it")]
    Empty,
    /// Titles, and nothing below.
    #[error("the file has titles but no rows: fill in the template and upload it")]
    NoRows,
    /// Above [`super::Limits::file_bytes_max`].
    #[error("the file has more than {bytes_max} bytes: split it into smaller files")]
    FileTooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// The name says one thing and the content another.
    #[error(
        "the file's name ends in .{extension}, but it holds {found}: save it as .xlsx or .csv, do not only rename it"
    )]
    WrongName {
        /// What the name ends in.
        extension: String,
        /// What the first bytes announce.
        found: &'static str,
    },
    /// Neither a workbook nor text.
    #[error("the file is neither an .xlsx workbook nor a .csv text: use the template")]
    NotASpreadsheet,
    /// OLE: the old binary format, or a workbook with a password, which is kept in the same container.
    #[error("the file is an Excel 97-2003 workbook or is protected by a password: save it as .xlsx without a password")]
    OldOrEncrypted,
    /// `.xlsb`.
    #[error("the file is a binary workbook (.xlsb): save it as .xlsx")]
    BinaryWorkbook,
    /// `.ods` and its like.
    #[error("the file is an OpenDocument file: save it as .xlsx or .csv")]
    OpenDocument,
    /// The file carries a program.
    #[error("the workbook contains macros: save it as .xlsx, without macros")]
    Macros,
    /// Cut short, or not what its structure says.
    #[error("the file is incomplete or damaged: open it, save it again as .xlsx, and upload that")]
    Damaged,
    /// Unpacked, it is more than any workbook of so many rows.
    #[error("the workbook unpacks to far more than its rows need: copy the rows into the template")]
    UnpacksTooLarge,
    /// Above [`super::Limits::parts_max`].
    #[error("the workbook has more than {parts_max} parts: copy the rows into the template")]
    TooManyParts {
        /// The limit.
        parts_max: usize,
    },
    /// Above [`super::Limits::shared_text_bytes_max`].
    #[error("the texts of the workbook take more than {bytes_max} bytes: split it, or save it as .csv")]
    TooMuchText {
        /// The limit.
        bytes_max: usize,
    },
    /// A document type or an entity of its own: no spreadsheet program writes one.
    #[error("the workbook's XML defines entities: open it, save it again as .xlsx, and upload that")]
    Entities,
    /// A cell above [`super::Limits::text_bytes_max`].
    #[error("a cell of the workbook has more than {bytes_max} bytes: shorten it")]
    CellTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// A record above [`super::Limits::text_bytes_max`].
    #[error("row {row} has more than {bytes_max} bytes: is a quotation mark left open there?")]
    RecordTooLong {
        /// As the spreadsheet shows it.
        row: u32,
        /// The limit.
        bytes_max: usize,
    },
    /// Above [`super::Limits::columns_max`].
    #[error("row {row} has something right of column {columns_max}: the template has ten columns")]
    TooManyColumns {
        /// As the spreadsheet shows it.
        row: u32,
        /// The limit.
        columns_max: usize,
    },
    /// Above [`super::Limits::rows_max`].
    #[error("the file has more than {rows_max} rows: split it")]
    TooManyRows {
        /// The limit.
        rows_max: u32,
    },
    /// A merged cell shows one value for many rows, and holds it for the first alone.
    #[error("the cells {range} are merged: unmerge them, and fill in every row")]
    MergedCells {
        /// Such as `A2:A9`.
        range: String,
    },
    /// Bytes that are no text of the encoding.
    #[error("line {line} is not {encoding}: save the file as \"CSV UTF-8\"")]
    NotText {
        /// Counted from 1.
        line: u64,
        /// The encoding that the file's first bytes announce.
        encoding: &'static str,
    },
    /// A zero byte: no text, or UTF-16 without its mark.
    #[error("line {line} contains a zero byte: save the file as \"CSV UTF-8\"")]
    ZeroByte {
        /// Counted from 1.
        line: u64,
    },
    /// None of the titles is one of the template's.
    #[error("row {row} has none of the template's titles: start with the template's first row")]
    NoTitles {
        /// As the spreadsheet shows it.
        row: u32,
    },
    /// A title is a number, a date or a formula.
    #[error("the title of column {column} is not a text: use the template's titles")]
    TitleNotText {
        /// A letter, as the spreadsheet shows it.
        column: String,
    },
    /// A title that the template does not have.
    #[error("the column \"{title}\" is not in the template: remove it, or correct its title")]
    UnknownColumn {
        /// Shortened.
        title: String,
    },
    /// The same title twice.
    #[error("the column \"{title}\" occurs twice: remove one")]
    RepeatedColumn {
        /// As in the template.
        title: &'static str,
    },
    /// A title that must be there.
    #[error("the column \"{title}\" is missing: use the template's titles")]
    MissingColumn {
        /// As in the template.
        title: &'static str,
    },
    /// Neither of the columns that can hold what is sold.
    #[error("the column \"Code\" or the column \"Claim URL\" must be there: use the template's titles")]
    NothingToSell,
    /// The receiver wants no more rows.
    #[error("the import was stopped")]
    Stopped,
    /// The disk, not the file.
    #[error("the file could not be read: try again")]
    Unreadable(#[source] io::Error),
}

impl ImportFault {
    /// Sends a fault through a library that knows only I/O errors; `From<io::Error>` takes it out again.
    pub(super) fn through_io(self) -> io::Error {
        io::Error::other(self)
    }
}

impl From<io::Error> for ImportFault {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(fault) => fault,
            Err(error) => match error.kind() {
                // What decompressors say of data that is cut short or is not theirs.
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    Self::Damaged
                }
                _ => Self::Unreadable(error),
            },
        }
    }
}

impl From<quick_xml::Error> for ImportFault {
    fn from(error: quick_xml::Error) -> Self {
        match error {
            quick_xml::Error::Io(error) => Arc::try_unwrap(error).map_or(Self::Damaged, Self::from),
            _ => Self::Damaged,
        }
    }
}

impl From<quick_xml::events::attributes::AttrError> for ImportFault {
    fn from(_: quick_xml::events::attributes::AttrError) -> Self {
        Self::Damaged
    }
}

impl From<ZipError> for ImportFault {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => error.into(),
            ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Self::OldOrEncrypted,
            _ => Self::Damaged,
        }
    }
}

impl From<csv::Error> for ImportFault {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            _ => Self::Damaged,
        }
    }
}
