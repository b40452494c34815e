//! Rows of the first visible sheet of a workbook.
//!
//! The sheet is never held as a whole: its XML is unpacked, parsed and forgotten row by row. Ready-made readers hold all of it,
//! or believe the sizes that a file announces of itself. Links to other files are not followed; formulas are not computed.

mod package;
mod sheet;
mod strings;
mod styles;
mod workbook;
mod xml;

use std::io::{BufReader, Read, Seek};

use self::package::Package;
use self::sheet::Context;
use self::strings::SharedStrings;
use self::styles::Styles;
use self::workbook::Workbook;
use super::cell::SheetRow;
use super::fault::ImportFault;
use super::limits::Limits;

/// Hands every row that is not blank to `sink`, in order.
pub(super) fn read_rows<F: Read + Seek>(
    file: F,
    limits: &Limits,
    sink: &mut dyn FnMut(SheetRow) -> Result<(), ImportFault>,
) -> Result<(), ImportFault> {
    let mut package = Package::open(BufReader::new(file), limits)?;
    let workbook = Workbook::read(&mut package)?;
    let mut strings = SharedStrings::default();
    if let Some(path) = &workbook.strings {
        strings = SharedStrings::read(package.part(path)?, limits)?;
    }
    let mut styles = Styles::default();
    if let Some(path) = &workbook.styles {
        styles = Styles::read(package.part(path)?)?;
    }
    let context = Context { strings: &strings, styles: &styles, epoch: workbook.epoch, limits };
    sheet::read_rows(package.part(&workbook.sheet)?, &context, sink)
}
