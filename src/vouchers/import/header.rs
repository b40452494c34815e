//! The template's columns, and where a file has them.

use super::cell::{Cell, SheetRow, letters};
use super::fault::ImportFault;

/// Characters of an unknown title that a message repeats.
const TITLE_SHOWN_MAX: usize = 40;

/// A column of the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// The product's name.
    Product,
    /// What one voucher is worth, in major units.
    Denomination,
    /// ISO 4217.
    Currency,
    /// The vendor's name.
    Vendor,
    /// The code.
    Code,
    /// What is asked for together with the code.
    Pin,
    /// Where the voucher is redeemed or shown.
    ClaimUrl,
    /// The vendor's name for the voucher.
    Reference,
    /// When it expires.
    Expiry,
    /// The client that it is kept for.
    Client,
}

impl Column {
    /// In the order of the template.
    pub const ALL: [Self; 10] = [
        Self::Product,
        Self::Denomination,
        Self::Currency,
        Self::Vendor,
        Self::Code,
        Self::Pin,
        Self::ClaimUrl,
        Self::Reference,
        Self::Expiry,
        Self::Client,
    ];

    /// The title, as the template spells it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Product => "Product",
            Self::Denomination => "Denomination",
            Self::Currency => "Currency",
            Self::Vendor => "Vendor",
            Self::Code => "Code",
            Self::Pin => "Pin",
            Self::ClaimUrl => "Claim URL",
            Self::Reference => "Voucher Reference",
            Self::Expiry => "Expiry",
            Self::Client => "Tagged Client Name",
        }
    }

    fn of(title: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.title().eq_ignore_ascii_case(title))
    }
}

/// Which column of the file is which of the template's.
#[derive(Debug)]
pub(super) struct Header {
    columns: Vec<Option<Column>>,
}

impl Header {
    /// Reads the titles. Their order and case are free.
    pub(super) fn read(row: &SheetRow) -> Result<Self, ImportFault> {
        let title = |cell: &Cell| if let Cell::Text(text) = cell { Column::of(text.trim()) } else { None };
        let columns: Vec<Option<Column>> = row.cells.iter().map(title).collect();
        // A file without titles begins with a voucher, of which nothing may be repeated in a message.
        if columns.iter().all(Option::is_none) {
            return Err(ImportFault::NoTitles { row: row.number });
        }
        for (index, (cell, column)) in row.cells.iter().zip(&columns).enumerate() {
            match (cell, column) {
                (_, Some(column)) if columns[..index].contains(&Some(*column)) => {
                    return Err(ImportFault::RepeatedColumn { title: column.title() });
                }
                (_, Some(_)) | (Cell::Blank, None) => {}
                (Cell::Text(title), None) => {
                    let title = title.trim().escape_debug().take(TITLE_SHOWN_MAX).collect();
                    return Err(ImportFault::UnknownColumn { title });
                }
                (_, None) => return Err(ImportFault::TitleNotText { column: letters(index) }),
            }
        }
        let has = |column| columns.contains(&Some(column));
        for required in [Column::Product, Column::Denomination, Column::Vendor] {
            if !has(required) {
                return Err(ImportFault::MissingColumn { title: required.title() });
            }
        }
        if !has(Column::Code) && !has(Column::ClaimUrl) {
            return Err(ImportFault::NothingToSell);
        }
        Ok(Self { columns })
    }

    /// The cell of each of the template's columns, and the places of cells without a title that hold something.
    pub(super) fn sort(&self, row: SheetRow) -> (Cells, Vec<usize>) {
        let mut cells = Cells(std::array::from_fn(|_| Cell::Blank));
        let mut stray = Vec::new();
        for (index, cell) in row.cells.into_iter().enumerate() {
            match self.columns.get(index).copied().flatten() {
                Some(column) => cells.0[column as usize] = cell,
                None if cell == Cell::Blank => {}
                None => stray.push(index),
            }
        }
        (cells, stray)
    }
}

/// A row's cells by the template's columns.
pub(super) struct Cells([Cell; Column::ALL.len()]);

impl Cells {
    /// Takes a cell out.
    pub(super) const fn take(&mut self, column: Column) -> Cell {
        std::mem::replace(&mut self.0[column as usize], Cell::Blank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(titles: &[&str]) -> Result<Header, ImportFault> {
        let cells = titles.iter().map(|title| Cell::text((*title).to_owned())).collect();
        Header::read(&SheetRow { number: 1, cells })
    }

    #[test]
    fn order_case_and_spaces_are_free() {
        let header = read(&[" claim url ", "VENDOR", "", "denomination", "Product"]).unwrap();
        assert_eq!(header.columns[0], Some(Column::ClaimUrl));
        assert_eq!(header.columns[2], None);
        assert!(read(&Column::ALL.map(Column::title)).is_ok());
    }

    #[test]
    fn what_is_wrong_with_the_titles_is_named() {
        let message = |titles: &[&str]| read(titles).unwrap_err().to_string();
        assert!(message(&["Product", "Vendor", "Code"]).contains("\"Denomination\" is missing"));
        assert!(message(&["Product", "Vendor", "Denomination"]).contains("\"Code\" or the column \"Claim URL\""));
        assert!(message(&["Product", "Vendor", "Denomination", "Code", "CODE"]).contains("\"Code\" occurs twice"));
        assert!(message(&["Product", "Vendor", "Denomination", "Code", "Cöde\u{7}"]).contains("\"Cöde\\u{7}\""));
        let row = SheetRow { number: 1, cells: vec![Cell::Text("Code".into()), Cell::Number("2027".into())] };
        assert!(Header::read(&row).unwrap_err().to_string().contains("column B"));
    }

    #[test]
    fn a_file_without_titles_is_not_repeated() {
        let message = read(&["Coffee", "25", "Beans", "SECRET-CODE"]).unwrap_err().to_string();
        assert!(message.contains("row 1") && !message.contains("SECRET"), "{message}");
    }
}
