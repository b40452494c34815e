//! What a file is: by its first bytes, which the name may only confirm.

use super::fault::ImportFault;

/// Bytes that [`Format::of`] wants to see, if the file has as many.
pub(super) const FIRST_BYTES: usize = 8;

const ZIP: &[u8] = b"PK\x03\x04";
const ZIP_WITHOUT_PARTS: &[u8] = b"PK\x05\x06";
const OLE: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";

/// A format that is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A workbook: XML parts in a ZIP archive.
    Xlsx,
    /// Text with a delimiter.
    Csv,
}

impl Format {
    /// The format that the first bytes announce, if the name does not speak against it.
    pub(super) fn of(first: &[u8], name: &str) -> Result<Self, ImportFault> {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        let extension = extension.as_deref();
        let format = Self::of_bytes(first)?;
        match (format, extension) {
            // What the archive holds is looked at later; a name that promises macros is refused here.
            (Self::Xlsx, Some("xlsm" | "xltm" | "xlam")) => Err(ImportFault::Macros),
            (Self::Xlsx, Some("xlsb")) => Err(ImportFault::BinaryWorkbook),
            (Self::Xlsx, Some("ods" | "fods" | "ots")) => Err(ImportFault::OpenDocument),
            (Self::Xlsx, None | Some("xlsx")) | (Self::Csv, None | Some("csv" | "tsv" | "txt")) => Ok(format),
            (_, Some(extension)) => {
                let found = match format {
                    Self::Xlsx => "a ZIP archive, as .xlsx files are",
                    Self::Csv => "plain text or something unknown",
                };
                Err(ImportFault::WrongName { extension: extension.escape_debug().take(10).collect(), found })
            }
        }
    }

    fn of_bytes(first: &[u8]) -> Result<Self, ImportFault> {
        let foreign: [&[u8]; 7] = [ZIP_WITHOUT_PARTS, b"%PDF", b"{\\rtf", b"<", b"\xEF\xBB\xBF<", b"\x1F\x8B", b"Rar!"];
        if first.is_empty() {
            Err(ImportFault::Empty)
        } else if first.starts_with(ZIP) {
            Ok(Self::Xlsx)
        } else if first.starts_with(OLE) {
            Err(ImportFault::OldOrEncrypted)
        } else if foreign.iter().any(|foreign| first.starts_with(foreign)) {
            Err(ImportFault::NotASpreadsheet)
        } else {
            // Whether it really is text shows when it is decoded, strictly.
            Ok(Self::Csv)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_confirms_and_never_decides() {
        assert_eq!(Format::of(b"PK\x03\x04....", "codes.XLSX").unwrap(), Format::Xlsx);
        assert_eq!(Format::of(b"Product,", "codes.csv").unwrap(), Format::Csv);
        assert_eq!(Format::of(b"Product,", "codes").unwrap(), Format::Csv);
        for (first, name) in [(&b"PK\x03\x04...."[..], "codes.csv"), (b"Product,", "a.xlsx"), (b"Product,", "a.exe")] {
            let fault = Format::of(first, name).unwrap_err();
            assert!(matches!(fault, ImportFault::WrongName { .. }), "{name}: {fault:?}");
        }
    }

    #[test]
    fn foreign_formats_are_refused_by_their_first_bytes() {
        assert!(matches!(Format::of(OLE, "codes.xlsx"), Err(ImportFault::OldOrEncrypted)));
        assert!(matches!(Format::of(b"", "codes.csv"), Err(ImportFault::Empty)));
        assert!(matches!(Format::of(b"PK\x03\x04", "codes.xlsm"), Err(ImportFault::Macros)));
        assert!(matches!(Format::of(b"PK\x03\x04", "codes.xlsb"), Err(ImportFault::BinaryWorkbook)));
        for first in [&b"%PDF-1.7"[..], b"<html><b", b"\xEF\xBB\xBF<?xml", b"{\\rtf1\\a", b"PK\x05\x06", b"\x1F\x8B"] {
            assert!(matches!(Format::of(first, "codes.csv"), Err(ImportFault::NotASpreadsheet)), "{first:?}");
        }
    }
}
