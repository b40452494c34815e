//! Mistakes that importers really made, and what is right.

use rust_xlsxwriter::{ExcelDateTime, Format, Formula};

use super::workbooks::{Parts, names, row, sheet, workbook};
use super::*;

const TITLES: &str = "Product,Denomination,Vendor,Code,Expiry";

fn csv(rows: &str) -> Vec<u8> {
    format!("{TITLES}\n{rows}").into_bytes()
}

#[test]
fn a_code_in_csv_is_taken_letter_by_letter() {
    let wanted = ["0012345678", "1E10", "12345678901234567890", "2-3", "00123", "TRUE", "=A1", "-5", "a b", "x\"y"];
    let rows: String =
        wanted.iter().map(|code| format!("Coffee,25,Beans,\"{}\",\n", code.replace('"', "\"\""))).collect();
    assert_eq!(codes(&vouchers(&csv(&rows), "codes.csv")), wanted);
    assert_eq!(codes(&vouchers(&csv("Coffee,25,Beans, 007 ,"), "codes.csv")), ["007"]);
}

#[test]
fn a_code_in_a_workbook_is_a_text_or_refused() {
    let wanted = ["0012345678", "1E10", "12345678901234567890", "2-3", "a&b<c>", "_x0041_", "código", "TRUE"];
    let texts = workbook(|sheet| {
        for (row, code) in (1..).zip(wanted) {
            names(sheet, row)?;
            sheet.write_string(row, 3, code)?;
        }
        Ok(())
    });
    assert_eq!(codes(&vouchers(&texts, "codes.xlsx")), wanted);

    let other = workbook(|sheet| {
        let (text, date) = (Format::new().set_num_format("@"), Format::new().set_num_format("yyyy-mm-dd"));
        (1..=6).try_for_each(|row| names(sheet, row))?;
        sheet.write_number(1, 3, 12_345_678)?;
        sheet.write_number_with_format(2, 3, 1e10, &text)?;
        sheet.write_number_with_format(3, 3, 46_477, &date)?;
        sheet.write_boolean(4, 3, true)?;
        sheet.write_formula(5, 3, Formula::new("=CONCAT(\"A\",1)").set_result("A1"))?;
        sheet.write_string(6, 3, "A1")?;
        Ok(())
    });
    let reasons = [
        Reason::NotText("a number"),
        Reason::NotText("a number"),
        Reason::NotText("a date"),
        Reason::NotText("a truth value"),
        Reason::Formula,
    ];
    let wanted: Vec<_> = (2..).zip(reasons).map(|(row, reason)| (row, "Code".to_owned(), reason)).collect();
    assert_eq!(errors(&other, "codes.xlsx"), wanted);
}

#[test]
fn marks_delimiters_line_ends_and_blank_rows_change_nothing() {
    let text =
        format!("{TITLES}\r\nCoffee,25,Beans,\"A;1\",2027-03-31\r\n\r\n,,,,\r\nTea,0.5,Leaves,Ä2,\r\n,,,,\r\n\r\n");
    let utf16 = |encode: fn(u16) -> [u8; 2], text: &str| -> Vec<u8> {
        format!("\u{FEFF}{text}").encode_utf16().flat_map(encode).collect()
    };
    let semicolons = text.replace("\"A;1\"", "A#1").replace(',', ";").replace("A#1", "\"A;1\"");
    for bytes in [
        text.clone().into_bytes(),
        format!("\u{FEFF}{text}").into_bytes(),
        utf16(u16::to_le_bytes, &text),
        utf16(u16::to_be_bytes, &text),
        utf16(u16::to_le_bytes, &text.replace(',', "\t")),
        semicolons.into_bytes(),
        text.replace("\r\n", "\n").into_bytes(),
        text.replace("\r\n", "\r").into_bytes(),
        text.trim_end().as_bytes().to_vec(),
    ] {
        let vouchers = vouchers(&bytes, "codes.csv");
        assert_eq!(codes(&vouchers), ["A;1", "Ä2"]);
        assert_eq!(vouchers.iter().map(|voucher| voucher.row).collect::<Vec<_>>(), [2, 5]);
        assert_eq!((vouchers[0].denomination_minor, vouchers[1].denomination_minor), (2_500, 50));
    }
}

#[test]
fn blank_rows_and_formats_without_values_are_passed_over_in_a_workbook() {
    let bytes = workbook(|sheet| {
        let bold = Format::new().set_bold();
        for row in [3, 7] {
            names(sheet, row)?;
            sheet.write_string(row, 3, format!("A{row}"))?;
        }
        sheet.write_string(5, 1, "   ")?;
        (8..200).try_for_each(|row| sheet.write_blank(row, 200, &bold).map(drop))
    });
    let vouchers = vouchers(&bytes, "codes.xlsx");
    assert_eq!(vouchers.iter().map(|voucher| voucher.row).collect::<Vec<_>>(), [4, 8]);
}

#[test]
fn merged_cells_are_refused_since_their_rows_are_not_filled() {
    let bytes = workbook(|sheet| {
        for row in 1..4 {
            names(sheet, row)?;
            sheet.write_string(row, 3, format!("A{row}"))?;
        }
        sheet.merge_range(1, 4, 3, 4, "2027-03-31", &Format::new())?;
        Ok(())
    });
    assert!(fault(&bytes, "codes.xlsx").to_string().contains("E2:E4"));
}

#[test]
fn a_day_means_its_end_in_the_issuers_zone_typed_or_written() {
    let wanted = "2027-03-31T18:29:59.999Z".parse::<DateTime<Utc>>().unwrap();
    let written = vouchers(&csv("Coffee,25,Beans,A1,2027-03-31"), "codes.csv");
    assert_eq!(written[0].expires_at, wanted);

    let bytes = workbook(|sheet| {
        (1..=3).try_for_each(|row| names(sheet, row))?;
        (1..=3).try_for_each(|row| sheet.write_string(row, 3, format!("A{row}")).map(drop))?;
        let date = Format::new().set_num_format("dd/mm/yyyy");
        sheet.write_datetime_with_format(1, 4, ExcelDateTime::from_ymd(2027, 3, 31)?, &date)?;
        sheet.write_string(2, 4, "2027-03-31")?;
        sheet.write_number(3, 4, 46_477)?;
        Ok(())
    });
    let outcomes = outcomes(&bytes, "codes.xlsx").unwrap();
    for outcome in &outcomes[..2] {
        assert!(matches!(outcome, RowOutcome::Valid(voucher) if voucher.expires_at == wanted), "{outcome:?}");
    }
    assert_eq!(errors(&bytes, "codes.xlsx"), [(4, "Expiry".to_owned(), Reason::SerialNumber)]);
}

#[test]
fn a_workbook_that_counts_from_1904_is_read_so() {
    let dated = row(&["Coffee", "25", "Beans", "A1"]).replace("</row>", "<c s=\"1\"><v>45015</v></c></row>");
    let mut parts = Parts::new(&sheet(&dated));
    let styles = "<styleSheet><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>";
    parts.set("xl/styles.xml", styles);
    parts.set(
        "xl/workbook.xml",
        "<workbook><workbookPr date1904=\"1\"/><sheets><sheet state=\"hidden\" r:id=\"r9\"/><sheet r:id=\"r1\"/></sheets></workbook>",
    );
    let kind = "http://purl.oclc.org/ooxml/officeDocument/relationships";
    parts.set(
        "xl/_rels/workbook.xml.rels",
        format!(
            "<Relationships><Relationship Id=\"r1\" Type=\"{kind}/worksheet\" Target=\"/xl/worksheets/sheet1.xml\"/>\
             <Relationship Id=\"r2\" Type=\"{kind}/styles\" Target=\"styles.xml\"/></Relationships>"
        ),
    );
    let vouchers = vouchers(&parts.zip(), "codes.xlsx");
    assert_eq!(vouchers[0].expires_at, "2027-03-31T18:29:59.999Z".parse::<DateTime<Utc>>().unwrap());
}

#[test]
fn formulas_are_refused_wherever_they_stand_and_reports_run_nothing() {
    let bytes = workbook(|sheet| {
        names(sheet, 1)?;
        sheet.write_string(1, 3, "A1")?;
        sheet.write_formula(1, 1, "=20+5")?;
        sheet.write_formula(1, 4, "=TODAY()+30")?;
        sheet.write_formula(1, 6, "=HYPERLINK(\"https://evil.example\")")?;
        Ok(())
    });
    let outcomes = outcomes(&bytes, "codes.xlsx").unwrap();
    let RowOutcome::Invalid(errors) = &outcomes[0] else { panic!("{outcomes:?}") };
    let found: Vec<_> = errors.iter().map(|error| (&*error.column, error.reason)).collect();
    let wanted = [("G", Reason::NoTitle), ("Denomination", Reason::Formula), ("Expiry", Reason::Formula)];
    assert_eq!(found, wanted);

    let mut report = ErrorReport::new(Vec::new()).unwrap();
    errors.iter().for_each(|error| report.add(error.row, &error.column, &error.reason.to_string()).unwrap());
    let text = String::from_utf8(report.finish().unwrap()).unwrap();
    assert!(
        !text.lines().flat_map(|line| line.split(',')).any(|cell| cell.starts_with(['=', '+', '-', '@'])),
        "{text}"
    );
}

#[test]
fn the_same_voucher_twice_names_the_first_row() {
    let rows =
        "Coffee,25,Beans,A1,\nCoffee,25,Beans,a1,\nTea,x,Leaves,B2,\nTea,25,Leaves,A1,2027-03-31\nTea,25,Leaves,B2,\n";
    let errors = errors(&csv(rows), "codes.csv");
    let repeated = |first| Reason::Repeated { first };
    assert_eq!(errors[1..], [(5, "Code".to_owned(), repeated(2)), (6, "Code".to_owned(), repeated(4))]);
    assert_eq!((errors[0].0, &*errors[0].1), (4, "Denomination"));
}

#[test]
fn every_reason_of_a_row_is_told_and_no_value_is_repeated() {
    let titles = "Product,Denomination,Vendor,Code,Pin,Claim URL,Voucher Reference,Expiry,Currency,Tagged Client Name";
    let row =
        "SECRET,-SECRET,,SECRET\u{200B},\"SECRET\n\",http://SECRET,SECRET\u{1},SECRET-2027,SECRET,SECRET\u{2},SECRET";
    let text = format!("{titles}\n{row}\n");
    let outcomes = outcomes(text.as_bytes(), "codes.csv").unwrap();
    let RowOutcome::Invalid(errors) = &outcomes[0] else { panic!("{outcomes:?}") };
    let columns: Vec<&str> = errors.iter().map(|error| &*error.column).collect();
    let wanted = ["K", "Vendor", "Tagged Client Name", "Currency", "Expiry", "Code", "Claim URL", "Voucher Reference"];
    assert_eq!(columns, wanted);
    let shown = format!("{errors:?} {}", errors.iter().map(|error| error.reason.to_string()).collect::<String>());
    assert!(!shown.contains("SECRET"), "{shown}");
}

#[test]
fn a_row_needs_a_code_or_a_claim_url() {
    let titles = "Product,Denomination,Vendor,Code,Claim URL,Pin";
    let text = format!(
        "{titles}\nCoffee,25,Beans,,,9\nCoffee,25,Beans,,https://x.example/1,\nCoffee,25,Beans,,https://x.example/1,\n"
    );
    let wanted =
        [(2, "Code".to_owned(), Reason::NothingToSell), (4, "Claim URL".to_owned(), Reason::Repeated { first: 3 })];
    assert_eq!(errors(text.as_bytes(), "codes.csv"), wanted);
}

#[test]
fn amounts_without_a_currency_are_of_the_default_and_fit_the_products() {
    let titles = "Product,Denomination,Currency,Vendor,Code";
    let text = format!(
        "{titles}\nCoffee,1000,,Beans,1\nCoffee,1000,jpy,Beans,2\nCoffee,1.5,JPY,Beans,3\nCoffee,1.5,,Beans,4\n"
    );
    let outcomes = outcomes(text.as_bytes(), "codes.csv").unwrap();
    let RowOutcome::Valid(plain) = &outcomes[0] else { panic!("{outcomes:?}") };
    assert_eq!((plain.denomination_minor, plain.currency), (100_000, None));
    assert_eq!(plain.denomination_in(Currency::INR, Currency::JPY), Ok(1_000));
    assert_eq!(plain.denomination_in(Currency::INR, Currency::KWD), Ok(1_000_000));
    let RowOutcome::Valid(yen) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert_eq!((yen.denomination_minor, yen.currency), (1_000, Some(Currency::JPY)));
    assert!(matches!(&outcomes[2], RowOutcome::Invalid(_)));
    let RowOutcome::Valid(half) = &outcomes[3] else { panic!("{outcomes:?}") };
    assert!(half.denomination_in(Currency::INR, Currency::JPY).is_err());
}
