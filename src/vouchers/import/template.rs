//! Files to start from. They hold no example: examples get imported.

use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};

use super::header::Column;

/// What people are told, beside the sheet that is imported.
const INSTRUCTIONS: [(&str, &str); 10] = [
    ("Product", "Required. The product's name, as it is listed."),
    ("Denomination", "Required. What one voucher is worth: 25 or 199.99, without a currency sign."),
    ("Currency", "Three letters, such as INR or EUR. Blank: the product's currency."),
    ("Vendor", "Required. The vendor's name, as it is listed."),
    ("Code", "The code. It or the claim URL is required. Keep the column formatted as text."),
    ("Pin", "What is asked for together with the code. Keep the column formatted as text."),
    ("Claim URL", "An address that starts with https://."),
    ("Voucher Reference", "The vendor's name for the voucher. Keep the column formatted as text."),
    (
        "Expiry",
        "2027-03-31, which means the end of that day; or a moment such as 2027-03-31T18:00:00+05:30. Blank: one year from now.",
    ),
    ("Tagged Client Name", "The client that the voucher is kept for. Blank: for everybody."),
];

/// The titles, as CSV.
#[must_use]
pub fn template_csv() -> String {
    format!("{}\r\n", Column::ALL.map(Column::title).join(","))
}

/// A workbook with the titles on a sheet of text columns, and a second sheet that explains them.
///
/// # Errors
/// When the workbook cannot be written to memory.
pub fn template_xlsx() -> Result<Vec<u8>, XlsxError> {
    let mut workbook = Workbook::new();
    write_titles(workbook.add_worksheet())?;
    write_instructions(workbook.add_worksheet())?;
    workbook.save_to_buffer()
}

fn write_titles(sheet: &mut Worksheet) -> Result<(), XlsxError> {
    // What is typed into a column of texts stays as it was typed: 0012, 1E10, 20 digits, 3-4.
    let text = Format::new().set_num_format("@");
    sheet.set_name("Vouchers")?;
    for (index, column) in (0..).zip(Column::ALL) {
        sheet.set_column_format(index, &text)?;
        sheet.set_column_width(index, 20)?;
        sheet.write_string_with_format(0, index, column.title(), &title())?;
    }
    sheet.set_freeze_panes(1, 0)?;
    Ok(())
}

fn write_instructions(sheet: &mut Worksheet) -> Result<(), XlsxError> {
    sheet.set_name("Instructions")?;
    sheet.set_column_width(0, 20)?;
    sheet.set_column_width(1, 100)?;
    sheet.write_string_with_format(0, 0, "Column", &title())?;
    sheet.write_string_with_format(0, 1, "What to enter", &title())?;
    for (row, (column, what)) in (1..).zip(INSTRUCTIONS) {
        sheet.write_string(row, 0, column)?;
        sheet.write_string(row, 1, what)?;
    }
    Ok(())
}

fn title() -> Format {
    Format::new().set_bold().set_num_format("@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_explained() {
        assert_eq!(INSTRUCTIONS.map(|(column, _)| column), Column::ALL.map(Column::title));
    }
}
