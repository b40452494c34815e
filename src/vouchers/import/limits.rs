//! How much a file may ask of us.

/// Limits of one import. What goes beyond them is refused, not cut off.
///
/// A workbook's memory is `shared_text_bytes_max`, one row, and 40 bytes for each row that was read; a CSV file's is one row and
/// the same 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rows below the titles that are not blank.
    pub rows_max: u32,
    /// Columns that may have a content. The template has ten.
    pub columns_max: usize,
    /// Bytes of the file as it was uploaded.
    pub file_bytes_max: u64,
    /// Bytes of all parts of a workbook that are read, unpacked. They are streamed, so this bounds time more than memory.
    pub unpacked_bytes_max: u64,
    /// How many times its packed size a part may become. Real sheets become ten to twenty times larger.
    pub unpack_ratio_max: u64,
    /// Parts of a workbook. Real ones have a few dozen.
    pub parts_max: usize,
    /// Bytes of a workbook's shared strings, and 8 more for each: the one table that is held in memory.
    pub shared_text_bytes_max: usize,
    /// Bytes of one cell of a workbook, or of one record of a CSV file. Excel's cells hold 32,767 characters.
    pub text_bytes_max: usize,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            rows_max: 100_000,
            columns_max: 64,
            file_bytes_max: 64 * MIB as u64,
            unpacked_bytes_max: 256 * MIB as u64,
            unpack_ratio_max: 100,
            parts_max: 1_000,
            shared_text_bytes_max: 64 * MIB,
            text_bytes_max: 128 * KIB,
        }
    }
}
