//! A spreadsheet on its way into the inventory.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use rust_xlsxwriter::Workbook;
use serde_json::{Value, json};

use orbit::domain::ids::ImportId;
use orbit::domain::voucher_import::{ImportCounts, ImportState, VoucherImport};
use orbit::store::mongo::new_id;

use super::{Shop, days, items};
use crate::harness::process::OrbitProcess;
use crate::harness::{self, Actor};

const TITLES: [&str; 6] = ["Product", "Denomination", "Vendor", "Code", "Expiry", "Tagged Client Name"];

fn csv(rows: &[&str]) -> Vec<u8> {
    format!("{}\n{}\n", TITLES.join(","), rows.join("\n")).into_bytes()
}

/// Uploads a file, and waits until it is decided what becomes of it.
async fn import(admin: &Actor, name: &str, bytes: Vec<u8>, mode: &str) -> Value {
    let file = Part::bytes(bytes).file_name(name.to_owned());
    let form = Form::new().part("file", file).text("mode", mode.to_owned());
    let begun =
        Actor::send(admin.request(Method::POST, "/api/admin/vouchers/imports").multipart(form)).await.expect(202);
    finished(admin, begun["id"].as_str().unwrap()).await
}

async fn finished(admin: &Actor, id: &str) -> Value {
    let path = format!("/api/admin/vouchers/imports/{id}");
    harness::eventually("the import is finished", || async {
        let state = admin.get(&path).await.expect(200)["state"].clone();
        state != "READING" && state != "COMMITTING"
    })
    .await;
    admin.get(&path).await.expect(200)
}

async fn report(admin: &Actor, import: &Value) -> String {
    let path = format!("/api/admin/vouchers/imports/{}/report.csv", import["id"].as_str().unwrap());
    admin.get(&path).await.expect(200).as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_workbook_from_the_template_comes_in_and_its_codes_are_sold_as_they_were_typed() {
    let shop = Shop::open().await;
    let admin = shop.app.admin().await;
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    for (column, title) in (0..).zip(TITLES) {
        sheet.write_string(0, column, title).unwrap();
    }
    for (row, code) in (1..).zip(["0012345678", "1E10", "12345678901234567890"]) {
        for (column, text) in (0..).zip(["coffee", "25.00", "ACME", code, "2027-12-31", ""]) {
            sheet.write_string(row, column, text).unwrap();
        }
    }
    let done = import(&admin, "codes.xlsx", workbook.save_to_buffer().unwrap(), "all").await;
    assert_eq!((&done["state"], &done["added"], &done["invalid"]), (&json!("DONE"), &json!(3), &json!(0)), "{done}");
    shop.assert_placed().await;
    let order = shop.app().vouchers().order(&shop.client, "all of them", vec![shop.line(3)]).await.unwrap();
    let shown = shop.app().vouchers().show_codes(&order, shop.client.members[0]).await.unwrap();
    let codes: Vec<_> = shown
        .iter()
        .map(|shown| orbit::config::ExposeSecret::expose_secret(shown.secrets.code.as_ref().unwrap()).to_owned())
        .collect();
    assert_eq!(codes, ["0012345678", "1E10", "12345678901234567890"]);
    // The last day, in the issuers' zone, to its end.
    assert_eq!(shown[0].unit.expires_at.to_rfc3339(), "2027-12-31T18:29:59.999+00:00");
    shop.finish().await;
}

#[tokio::test]
async fn one_wrong_row_and_nothing_comes_in_unless_the_right_ones_are_wanted() {
    let shop = Shop::open().await;
    let admin = shop.app.admin().await;
    let rows = [
        "Coffee,25.00,Acme,GOOD-1,2027-12-31,",
        "Tea,25.00,Acme,X-1,2027-12-31,",
        "Coffee,26.00,Acme,X-2,2027-12-31,",
        "Coffee,25.00,Nobody,X-3,2027-12-31,",
        "Coffee,25.00,Acme,X-4,03/04/2027,Nobody Inc",
        "Coffee,25.00,Acme,GOOD-1,2027-12-31,",
        "Coffee,25.00,Bolt,GOOD-2,2027-12-31,shoes inc",
    ];
    let refused = import(&admin, "codes.csv", csv(&rows), "all").await;
    assert_eq!((&refused["state"], &refused["added"]), (&json!("REFUSED"), &json!(0)), "{refused}");
    assert_eq!(refused["reason"], "5 of 7 rows are wrong; nothing came in");
    let text = report(&admin, &refused).await;
    for line in [
        "row,column,reason",
        "3,Product,\"there is no product of this name: enter it first, or correct the name\"",
        "4,Denomination,the product has no such denomination",
        "5,Vendor,\"there is no vendor of this name: enter it first, or correct the name\"",
        "7,Code,is the same voucher as in row 2",
    ] {
        assert!(text.replace('"', "").contains(&line.replace('"', "")), "{line} is not in\n{text}");
    }
    assert!(text.contains("6,Expiry,") && !text.contains("X-") && !text.contains("GOOD"), "{text}");
    assert_eq!(shop.app().vouchers().check().await.unwrap().units, 0);
    let done = import(&admin, "codes.csv", csv(&rows), "valid").await;
    assert_eq!((&done["state"], &done["added"], &done["invalid"]), (&json!("DONE"), &json!(2), &json!(5)), "{done}");
    shop.assert_placed().await;
    let given = shop.allocate(&items("o", 2)).await.unwrap();
    assert_eq!(given.iter().filter(|unit| unit.client.is_some()).count(), 1);
    shop.finish().await;
}

#[tokio::test]
async fn the_same_file_again_adds_nothing() {
    let shop = Shop::open().await;
    let admin = shop.app.admin().await;
    let file = csv(&["Coffee,25.00,Acme,A,2027-12-31,", "Coffee,25.00,Acme,B,2027-12-31,"]);
    assert_eq!(import(&admin, "codes.csv", file.clone(), "all").await["added"], 2);
    let again = import(&admin, "codes.csv", file, "valid").await;
    assert_eq!(
        (&again["state"], &again["added"], &again["invalid"]),
        (&json!("REFUSED"), &json!(0), &json!(2)),
        "{again}"
    );
    assert!(report(&admin, &again).await.contains("2,Code,is in the inventory already"));
    let listed = admin.get("/api/admin/vouchers/imports?limit=1").await.expect(200);
    assert_eq!(listed["imports"][0]["id"], again["id"]);
    assert_eq!(shop.app().vouchers().check().await.unwrap().pooled, 2);
    shop.finish().await;
}

#[tokio::test]
async fn a_file_that_is_none_fails_with_a_sentence_and_changes_nothing() {
    let shop = Shop::open().await;
    let admin = shop.app.admin().await;
    for (name, bytes) in [
        ("codes.xlsx", csv(&["Coffee,25.00,Acme,A,2027-12-31,"])),
        ("codes.csv", b"\x89PNG\r\n\x1a\n".to_vec()),
        ("codes.csv", b"Product,Code\nCoffee,A\n".to_vec()),
        ("codes.xlsx", b"PK\x03\x04 and then nothing".to_vec()),
    ] {
        let failed = import(&admin, name, bytes, "all").await;
        assert_eq!(failed["state"], "FAILED", "{failed}");
        assert!(failed["reason"].as_str().unwrap().len() > 20, "{failed}");
    }
    let empty = Form::new().text("mode", "some");
    let request = admin.request(Method::POST, "/api/admin/vouchers/imports").multipart(empty);
    Actor::send(request).await.refused(400, "validation_failed");
    assert_eq!(shop.app().vouchers().check().await.unwrap().units, 0);
    for template in ["xlsx", "csv"] {
        let reply = admin.get(&format!("/api/admin/vouchers/template.{template}")).await;
        assert!(reply.headers["content-disposition"].contains("attachment"), "{:?}", reply.headers);
    }
    shop.finish().await;
}

#[tokio::test]
async fn an_import_whose_process_is_gone_is_failed_or_finished() {
    let shop = Shop::open().await;
    let imports = &shop.app().mongo().voucher_imports;
    let gone = |state| VoucherImport {
        id: ImportId::from_bytes(new_id()),
        file_name: "codes.csv".to_owned(),
        all_or_nothing: true,
        state,
        counts: ImportCounts { rows: 1, valid: 1, invalid: 0, added: 0 },
        reason: None,
        created_at: days(0),
    };
    let (reading, committing) = (gone(ImportState::Reading), gone(ImportState::Committing));
    for import in [&reading, &committing] {
        imports.begin(import, days(-1)).await.unwrap();
        let unit = shop.unit(0, 60, &import.id.to_string());
        let staged = shop.app().vouchers().sealed_units(&[unit]).await.unwrap();
        imports.stage(import.id, &staged).await.unwrap();
    }
    shop.app().vouchers().reconcile().await.unwrap();
    let now = |id| shop.app().vouchers().voucher_import(id);
    let (failed, done) = (now(reading.id).await.unwrap(), now(committing.id).await.unwrap());
    assert_eq!((failed.state, done.state, done.counts.added), (ImportState::Failed, ImportState::Done, 1));
    assert!(
        imports.staged(reading.id, 1).await.unwrap().is_empty()
            && imports.staged(committing.id, 1).await.unwrap().is_empty()
    );
    shop.assert_placed().await;
    assert_eq!(shop.app().vouchers().check().await.unwrap().pooled, 1);
    shop.finish().await;
}

/// `ORBIT_TEST_IMPORT_ROWS=100000 cargo test --test it a_large_import` reads as many rows as a file may have.
#[tokio::test]
async fn a_large_import_comes_in_within_bounded_memory() {
    const MEMORY_MIB_MAX: u64 = 256;
    let rows: usize = std::env::var("ORBIT_TEST_IMPORT_ROWS").map_or(5_000, |rows| rows.parse().unwrap());
    let shop = Shop::open().await;
    let process = OrbitProcess::start(shop.app.config()).await;
    let admin = shop.app.admin().await.at(process.url.clone());
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    for (column, title) in (0..).zip(TITLES) {
        sheet.write_string(0, column, title).unwrap();
    }
    for row in 1..=u32::try_from(rows).unwrap() {
        let code = format!("CODE-{row:08}");
        for (column, text) in (0..).zip(["Coffee", "25.00", "Acme", &code, "2027-12-31", ""]) {
            sheet.write_string(row, column, text).unwrap();
        }
    }
    let started = std::time::Instant::now();
    let file = Part::bytes(workbook.save_to_buffer().unwrap()).file_name("codes.xlsx");
    let form = Form::new().part("file", file);
    let begun =
        Actor::send(admin.request(Method::POST, "/api/admin/vouchers/imports").multipart(form)).await.expect(202);
    let path = format!("/api/admin/vouchers/imports/{}", begun["id"].as_str().unwrap());
    let done = loop {
        let import = admin.get(&path).await.expect(200);
        if import["state"] != "READING" && import["state"] != "COMMITTING" {
            break import;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!((&done["state"], &done["added"]), (&json!("DONE"), &json!(rows)), "{done}");
    let peak = process.peak_mib();
    eprintln!("{rows} rows in {:?}; the service held at most {peak} MiB", started.elapsed());
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    process.kill().await;
    shop.assert_placed().await;
    shop.finish().await;
}
