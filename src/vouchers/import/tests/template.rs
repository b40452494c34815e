use rust_xlsxwriter::Workbook;

use super::workbooks::Parts;
use super::*;

#[test]
fn a_template_that_was_not_filled_in_has_no_rows() {
    assert!(matches!(fault(template_csv().as_bytes(), "template.csv"), ImportFault::NoRows));
    assert!(matches!(fault(&template_xlsx().unwrap(), "template.xlsx"), ImportFault::NoRows));
}

#[test]
fn a_template_that_was_filled_in_is_read() {
    let text = format!("{}Coffee,25,INR,Beans,0012,7,https://x.example/1,REF-1,2027-03-31,Acme\r\n", template_csv());
    let vouchers = vouchers(text.as_bytes(), "template.csv");
    assert_eq!(vouchers[0].client.as_deref(), Some("Acme"));
    let secrets = &vouchers[0].secrets;
    assert!(secrets.pin.is_some() && secrets.claim_url.is_some() && secrets.reference.is_some());
    assert!(!format!("{:?}", vouchers[0]).contains("0012"), "no log shows a code");
}

#[test]
fn only_the_first_sheet_that_is_shown_is_read() {
    let mut workbook = Workbook::new();
    workbook.add_worksheet().set_hidden(true).write_string(0, 0, "Hidden").unwrap();
    let shown = workbook.add_worksheet();
    shown.set_active(true);
    for (column, text) in (0..).zip(["Product", "Denomination", "Vendor", "Code"]) {
        shown.write_string(0, column, text).unwrap();
        shown.write_string(1, column, if column == 1 { "25" } else { text }).unwrap();
    }
    workbook.add_worksheet().write_formula(0, 0, "=1").unwrap();
    assert_eq!(codes(&vouchers(&workbook.save_to_buffer().unwrap(), "codes.xlsx")), ["Code"]);
    assert!(matches!(fault(&Parts::new("<sheetData/>").zip(), "codes.xlsx"), ImportFault::Empty));
}
