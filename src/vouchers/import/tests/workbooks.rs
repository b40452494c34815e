//! Workbooks for tests: as spreadsheet programs save them, and as nobody would.

use std::io::{Cursor, Write};

use rust_xlsxwriter::{Workbook, Worksheet, XlsxError};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The titles that must be there, and one more for each test.
pub(super) const TITLES: [&str; 5] = ["Product", "Denomination", "Vendor", "Code", "Expiry"];

/// A workbook whose first sheet has [`TITLES`]; `fill` writes the rest.
pub(super) fn workbook(fill: impl FnOnce(&mut Worksheet) -> Result<(), XlsxError>) -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    for (column, title) in (0..).zip(TITLES) {
        sheet.write_string(0, column, title).unwrap();
    }
    fill(sheet).unwrap();
    workbook.save_to_buffer().unwrap()
}

/// Writes a product, a denomination and a vendor.
pub(super) fn names(sheet: &mut Worksheet, row: u32) -> Result<(), XlsxError> {
    sheet.write_string(row, 0, "Coffee")?;
    sheet.write_number(row, 1, 25)?;
    sheet.write_string(row, 2, "Beans")?;
    Ok(())
}

/// Parts of a workbook by hand.
#[derive(Clone)]
pub(super) struct Parts(Vec<(String, Vec<u8>)>);

impl Parts {
    /// A workbook with one sheet, of this XML between its tags.
    pub(super) fn new(sheet: &str) -> Self {
        let main = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let types = "application/vnd.openxmlformats-officedocument.spreadsheetml";
        let mut parts = Self(Vec::new());
        parts.set(
            "[Content_Types].xml",
            format!("<Types><Override PartName=\"/xl/workbook.xml\" ContentType=\"{types}.sheet.main+xml\"/></Types>"),
        );
        let root = format!(
            "<Relationships><Relationship Id=\"r1\" Type=\"{main}/officeDocument\" Target=\"xl/workbook.xml\"/>"
        );
        parts.set("_rels/.rels", format!("{root}</Relationships>"));
        parts.set("xl/workbook.xml", "<workbook><sheets><sheet name=\"A\" r:id=\"r1\"/></sheets></workbook>");
        let related = format!(
            "<Relationships><Relationship Id=\"r1\" Type=\"{main}/worksheet\" Target=\"worksheets/sheet1.xml\"/>\
             <Relationship Id=\"r2\" Type=\"{main}/externalLink\" TargetMode=\"External\" Target=\"file:///etc/passwd\"/>"
        );
        parts.set("xl/_rels/workbook.xml.rels", format!("{related}</Relationships>"));
        parts.set("xl/worksheets/sheet1.xml", format!("<worksheet>{sheet}</worksheet>"));
        parts
    }

    /// Adds a part, or replaces it.
    pub(super) fn set(&mut self, name: &str, content: impl Into<Vec<u8>>) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), content.into()));
    }

    pub(super) fn zip(&self) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in &self.0 {
            zip.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }
}

/// A row of XML with texts in its cells.
pub(super) fn row(texts: &[&str]) -> String {
    let cells: String = texts.iter().map(|text| format!("<c t=\"inlineStr\"><is><t>{text}</t></is></c>")).collect();
    format!("<row>{cells}</row>")
}

/// A sheet with the titles and these rows.
pub(super) fn sheet(rows: &str) -> String {
    format!("<sheetData>{}{rows}</sheetData>", row(&TITLES))
}
