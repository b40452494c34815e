//! Files that were made to do harm, or were harmed on their way.

use rust_xlsxwriter::Format;

use super::workbooks::{Parts, names, row, sheet, workbook};
use super::*;

fn voucher_row() -> String {
    row(&["Coffee", "25", "Beans", "A1", ""])
}

fn of_sheet(xml: &str) -> ImportFault {
    fault(&Parts::new(xml).zip(), "codes.xlsx")
}

#[test]
fn the_hand_made_workbook_is_sound() {
    let bytes = Parts::new(&sheet(&voucher_row())).zip();
    assert_eq!(codes(&vouchers(&bytes, "codes.xlsx")), ["A1"]);
}

#[test]
fn a_zip_bomb_is_not_unpacked() {
    for padding in ["<x/>".repeat(2 << 20), "<!---->".repeat(1 << 20)] {
        let bytes = Parts::new(&format!("{padding}{}", sheet(&voucher_row()))).zip();
        assert!(bytes.len() < 100_000);
        assert!(matches!(fault(&bytes, "codes.xlsx"), ImportFault::UnpacksTooLarge));
    }
    // In one piece it does not get that far.
    let bytes = Parts::new(&format!("{}{}", " ".repeat(8 << 20), sheet(&voucher_row()))).zip();
    assert!(matches!(fault(&bytes, "codes.xlsx"), ImportFault::CellTooLong { .. }));
    // What compresses no better than real rows do is stopped by its size.
    let rows = voucher_row().repeat(10_000);
    let limits = Limits { unpacked_bytes_max: 1 << 20, unpack_ratio_max: 2_000, ..Limits::default() };
    let rules = Rules { limits, ..rules() };
    let bytes = Parts::new(&sheet(&rows)).zip();
    assert!(matches!(outcomes_by(&bytes, "codes.xlsx", &rules), Err(ImportFault::UnpacksTooLarge)));
}

#[test]
fn a_bomb_in_the_table_of_texts_is_not_held() {
    let bytes = workbook(|sheet| {
        (1..100).try_for_each(|row| {
            names(sheet, row)?;
            sheet.write_string(row, 3, format!("{row}-{}", "x".repeat(1_000))).map(drop)
        })
    });
    let limits = Limits { shared_text_bytes_max: 50_000, ..Limits::default() };
    let fault = outcomes_by(&bytes, "codes.xlsx", &Rules { limits, ..rules() }).unwrap_err();
    assert!(matches!(fault, ImportFault::TooMuchText { .. }), "{fault:?}");
}

#[test]
fn a_million_columns_and_one_endless_cell_are_refused() {
    let cells = "<c t=\"inlineStr\"><is><t>x</t></is></c>".repeat(1_000_000);
    let wide = Parts::new(&sheet(&format!("<row>{cells}</row>")));
    let limits = Limits { unpack_ratio_max: 10_000, ..Limits::default() };
    let fault = outcomes_by(&wide.zip(), "codes.xlsx", &Rules { limits, ..rules() }).unwrap_err();
    assert!(matches!(fault, ImportFault::TooManyColumns { row: 2, .. }), "{fault:?}");

    let long = sheet(&row(&["Coffee", "25", "Beans", &"x".repeat(200_000)]));
    assert!(matches!(of_sheet(&long), ImportFault::CellTooLong { .. }));
    let pieces = sheet(&row(&["Coffee", "25", "Beans", &"x&amp;".repeat(100_000)]));
    assert!(matches!(of_sheet(&pieces), ImportFault::CellTooLong { .. }));
    let deep = sheet(&format!("<row>{}", "<c>".repeat(100_000)));
    assert!(matches!(of_sheet(&deep), ImportFault::Damaged));
}

#[test]
fn more_rows_than_allowed_are_refused() {
    let limits = Limits { rows_max: 3, ..Limits::default() };
    let rules = Rules { limits, ..rules() };
    let csv = |rows: usize| format!("Product,Denomination,Vendor,Code\n{}", "Coffee,25,Beans,A1\n\n".repeat(rows));
    assert_eq!(outcomes_by(csv(3).as_bytes(), "codes.csv", &rules).unwrap().len(), 3);
    let fault = outcomes_by(csv(4).as_bytes(), "codes.csv", &rules).unwrap_err();
    assert!(matches!(fault, ImportFault::TooManyRows { rows_max: 3 }), "{fault:?}");
}

#[test]
fn entities_and_document_types_are_refused_in_every_part() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]>";
    let whole = Parts::new(&sheet(&voucher_row()));
    for part in ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "_rels/.rels", "[Content_Types].xml"] {
        let mut parts = whole.clone();
        parts.set(part, format!("{bomb}<a/>"));
        assert!(matches!(fault(&parts.zip(), "codes.xlsx"), ImportFault::Entities), "{part}");
    }
    assert!(matches!(of_sheet(&sheet(&row(&["&c;"]))), ImportFault::Entities));
}

#[test]
fn macros_and_other_formats_are_refused_whatever_they_are_called() {
    let whole = Parts::new(&sheet(&voucher_row()));
    let with = |part: &str, content: &str| {
        let mut parts = whole.clone();
        parts.set(part, content);
        fault(&parts.zip(), "codes.xlsx")
    };
    let types = |kind: &str| {
        let part = format!("<Types><Override PartName=\"/xl/workbook.xml\" ContentType=\"{kind}\"/></Types>");
        with("[Content_Types].xml", &part)
    };
    assert!(matches!(with("xl/vbaProject.bin", "x"), ImportFault::Macros));
    assert!(matches!(with("xl/VBAPROJECT.BIN", "x"), ImportFault::Macros));
    assert!(matches!(with("xl/macrosheets/sheet1.xml", "x"), ImportFault::Macros));
    assert!(matches!(types("application/vnd.ms-excel.sheet.macroEnabled.main+xml"), ImportFault::Macros));
    assert!(matches!(types("application/vnd.ms-excel.sheet.binary.macroEnabled.main"), ImportFault::BinaryWorkbook));
    let document = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
    assert!(matches!(types(document), ImportFault::NotASpreadsheet));
    assert!(matches!(with("xl/workbook.bin", "x"), ImportFault::BinaryWorkbook));
    assert!(matches!(with("mimetype", "application/vnd.oasis"), ImportFault::OpenDocument));
    assert!(matches!(fault(&whole.zip(), "codes.xlsm"), ImportFault::Macros));
    assert!(matches!(fault(&whole.zip(), "codes.csv"), ImportFault::WrongName { .. }));
    assert!(matches!(fault(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1rest", "codes.xlsx"), ImportFault::OldOrEncrypted));
}

#[test]
fn a_workbook_that_was_cut_short_is_damaged_wherever_it_was_cut() {
    let whole = workbook(|sheet| {
        names(sheet, 1)?;
        sheet.write_string_with_format(1, 3, "A1", &Format::new().set_num_format("@")).map(drop)
    });
    assert_eq!(vouchers(&whole, "codes.xlsx").len(), 1);
    for length in (4..whole.len()).step_by(13) {
        let fault = fault(&whole[..length], "codes.xlsx");
        assert!(matches!(fault, ImportFault::Damaged), "cut at {length}: {fault:?}");
    }
    let xml = sheet(&voucher_row());
    for length in (1..xml.len()).filter(|length| xml.is_char_boundary(*length)) {
        let mut parts = Parts::new("");
        parts.set("xl/worksheets/sheet1.xml", format!("<worksheet>{}", &xml[..length]));
        let fault = fault(&parts.zip(), "codes.xlsx");
        assert!(matches!(fault, ImportFault::Damaged), "cut at {length}: {fault:?}");
    }
}

#[test]
fn rows_and_cells_that_come_twice_or_backwards_are_damage() {
    for rows in [
        "<row r=\"3\"/><row r=\"3\"/>",
        "<row r=\"1\"/>",
        "<row r=\"9999999\"/>",
        "<row r=\"0\"/>",
        "<row><c r=\"B2\"/><c r=\"B2\"/></row>",
        "<row><c r=\"ABCD1\"/></row>",
        "<row><c t=\"s\"><v>99</v></c></row>",
        "<row><c><v>12x</v></c></row>",
        "<row><c t=\"surprise\"><v>1</v></c></row>",
    ] {
        assert!(matches!(of_sheet(&sheet(rows)), ImportFault::Damaged), "{rows}");
    }
}

#[test]
fn an_archive_of_countless_parts_is_refused_before_it_is_opened() {
    let mut parts = Parts::new(&sheet(&voucher_row()));
    for index in 0..100 {
        parts.set(&format!("x/{index}"), "");
    }
    let limits = Limits { parts_max: 50, ..Limits::default() };
    let fault = outcomes_by(&parts.zip(), "codes.xlsx", &Rules { limits, ..rules() }).unwrap_err();
    assert!(matches!(fault, ImportFault::TooManyParts { parts_max: 50 }), "{fault:?}");
}

#[test]
fn countless_pointers_between_parts_are_damage() {
    let mut parts = Parts::new(&sheet(&voucher_row()));
    let pointers = "<Relationship Id=\"r1\" Type=\"a/b\" Target=\"c\"/>".repeat(10_001);
    parts.set("xl/_rels/workbook.xml.rels", format!("<Relationships>{pointers}</Relationships>"));
    assert!(matches!(fault(&parts.zip(), "codes.xlsx"), ImportFault::Damaged));
}

#[test]
fn a_file_above_the_limit_is_not_looked_at() {
    let limits = Limits { file_bytes_max: 10, ..Limits::default() };
    let fault = outcomes_by(b"Product,Code", "codes.csv", &Rules { limits, ..rules() }).unwrap_err();
    assert!(matches!(fault, ImportFault::FileTooLarge { bytes_max: 10 }), "{fault:?}");
}
