//! Whatever the bytes, there is an answer; and what is written is read.

use proptest::prelude::*;

use super::workbooks::{Parts, names, sheet, workbook};
use super::*;

/// Reads a file that may be anything: no panic, and no more rows than allowed.
fn survive(bytes: &[u8], name: &str) -> Result<(), TestCaseError> {
    if let Ok(outcomes) = outcomes(bytes, name) {
        prop_assert!(outcomes.len() <= bytes.len());
    }
    Ok(())
}

fn one_voucher() -> Vec<u8> {
    workbook(|sheet| {
        names(sheet, 1)?;
        sheet.write_string(1, 3, "A1").map(drop)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        survive(&bytes, "codes.csv")?;
        survive(&bytes, "codes")?;
        survive(&[b"PK\x03\x04", &bytes[..]].concat(), "codes.xlsx")?;
        survive(&[b"\xFF\xFE", &bytes[..]].concat(), "codes.csv")?;
        survive(&[b"Product,Denomination,Vendor,Code,Expiry\n", &bytes[..]].concat(), "codes.csv")?;
    }

    #[test]
    fn no_text_below_the_titles_panics(text in "[A-Z0-9,;\"\r\n\t .:/=-]{0,400}") {
        survive(format!("Product,Denomination,Vendor,Code,Expiry\n{text}").as_bytes(), "codes.csv")?;
    }

    #[test]
    fn no_xml_panics(xml in "(<(row|c|v|t|is|f|/row|/c|/v|/t|/is|mergeCell|c t=\"s\"|c s=\"1\"|c r=\"C2\"|row r=\"7\"|v/|c/)>|[0-9.eE&;#x-]{1,9}){0,40}") {
        survive(&Parts::new(&sheet(&xml)).zip(), "codes.xlsx")?;
    }

    #[test]
    fn no_damage_to_a_workbook_panics(at in any::<prop::sample::Index>(), bits in 1..=255_u8, cut in any::<prop::sample::Index>()) {
        let mut bytes = one_voucher();
        let place = at.index(bytes.len());
        bytes[place] ^= bits;
        survive(&bytes, "codes.xlsx")?;
        bytes.truncate(cut.index(bytes.len()));
        survive(&bytes, "codes.xlsx")?;
    }

    #[test]
    fn every_code_comes_back_letter_by_letter(code in "[!-~¡-ÿ€]([ -~¡-ÿ€]{0,40}[!-~¡-ÿ€])?") {
        prop_assume!(!code.contains(['\u{AD}', '\u{A0}']));
        let quoted = code.replace('"', "\"\"");
        for delimiter in [",", ";", "\t"] {
            let titles = ["Product", "Denomination", "Vendor", "Code"].join(delimiter);
            let row = ["Coffee", "25", "Beans"].join(delimiter);
            let text = format!("{titles}\r\n{row}{delimiter}\"{quoted}\"\r\n");
            let read = vouchers(text.as_bytes(), "codes.csv");
            prop_assert_eq!(codes(&read), [code.as_str()]);
        }
        let bytes = workbook(|sheet| {
            names(sheet, 1)?;
            sheet.write_string(1, 3, &code).map(drop)
        });
        let read = vouchers(&bytes, "codes.xlsx");
        prop_assert_eq!(codes(&read), [code.as_str()]);
    }
}
