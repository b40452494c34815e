//! What nobody could find out by itself: a person asks the vendor, and says what it was.

use bson::{Document, doc};
use orbit::config::ExposeSecret;
use serde_json::{Value, json};

use super::office::Office;
use super::vendor::{Fault, Vendor};
use crate::harness::eventually;
use crate::harness::process::{environment, orbit, text};

/// A job of two batches that were sold and one that was not, of all of which the vendor says nothing.
async fn unresolved(office: &Office, vendor: &Vendor) -> (String, Value) {
    office.connect(vendor).await;
    vendor.meet([Fault::AnswerLost, Fault::Swallowed, Fault::AnswerLost]);
    vendor.close_gate();
    let job = office.job("lost", 300).await;
    eventually("three orders have come", || async { vendor.posts().len() == 3 }).await;
    vendor.silent(true);
    vendor.let_in(1_000);
    // Rounds lie ever further apart; the test does not wait for all of them.
    let jobs = mongodb::Client::with_uri_str(office.app.config().mongo.uri.expose_secret()).await.unwrap();
    let jobs = jobs.database(&office.app.config().mongo.database).collection::<Document>("prefetchJobs");
    eventually("the job is given up", || async {
        let hurry = doc! { "$set": { "idleRounds": 20_i64, "dueAt": bson::DateTime::now() } };
        jobs.update_one(doc! { "claim": null, "state": "RUNNING" }, hurry).await.unwrap();
        office.show(&job).await["state"] == "FAILED"
    })
    .await;
    let shown = office.show(&job).await;
    assert_eq!(shown["progress"], json!({ "bought": 0, "failed": 0, "underWay": 0, "unresolved": 300 }), "{shown}");
    (job, shown)
}

/// The paths of its batches: two that were sold, and one that was not.
fn batches(job: &str, shown: &Value, vendor: &Vendor) -> (Vec<(String, String)>, String) {
    let (mut sold, mut not) = (Vec::new(), String::new());
    for batch in shown["batches"].as_array().unwrap() {
        let (name, path) =
            (batch["externalId"].as_str().unwrap().to_owned(), format!("{job}/batches/{}", batch["number"]));
        if vendor.sales().contains_key(&name) { sold.push((name, path)) } else { not = path }
    }
    (sold, not)
}

fn quick(config: &mut orbit::config::Config) {
    let prefetch = &mut config.prefetch;
    (prefetch.retry_pause_ms, prefetch.retries) = (1, 0);
    // Long enough for three orders to come before the first is given up.
    (prefetch.deadline_ms, prefetch.absence_ms, prefetch.claim_ttl_ms) = (2_000, 3_000, 10_000);
}

#[tokio::test]
async fn a_person_resolves_what_no_vendor_has_said() {
    let (office, vendor) = (Office::with(quick).await, Vendor::start(1, 5_000, None).await);
    let (job, shown) = unresolved(&office, &vendor).await;
    let (sold, not) = batches(&job, &shown, &vendor);
    let ([(_, asked), (name, told)], admin) = (&sold[..], &office.admin) else { panic!("{sold:?}") };
    let check = || async {
        let mut command = orbit();
        command.args(["check", "--vouchers"]).envs(environment(office.app.config(), 1)).output().await.unwrap()
    };
    let warned = check().await;
    assert!(
        !warned.status.success() && text(&warned).contains(&format!("order {name} of 100 units")),
        "{}",
        text(&warned)
    );

    // Its vendor is asked once more.
    admin.post(&format!("{asked}/ask")).await.refused(503, "vendor_unavailable");
    vendor.silent(false);
    let after = admin.post(&format!("{asked}/ask")).await.expect(200);
    assert_eq!(after["progress"], json!({ "bought": 100, "failed": 0, "underWay": 0, "unresolved": 200 }));
    let again = admin.post(&format!("{asked}/ask")).await.expect(200);
    assert_eq!((&again["progress"], office.available().await), (&after["progress"], (100, 100)));

    // The administrator was told that nothing was sold, and of what was.
    let nothing = json!({ "outcome": "NOTHING_SOLD", "note": "by telephone" });
    admin.post_json(&format!("{not}/resolve"), nothing.clone()).await.expect(200);
    admin.post_json(&format!("{not}/resolve"), nothing.clone()).await.expect(200);
    let mut these = json!({ "outcome": "SOLD", "vouchers": vendor.sold(name) });
    admin.post_json(&format!("{not}/resolve"), these.clone()).await.refused(409, "voucher_state");
    let done = admin.post_json(&format!("{told}/resolve"), these.clone()).await.expect(200);
    assert_eq!(done["progress"], json!({ "bought": 200, "failed": 100, "underWay": 0, "unresolved": 0 }));
    admin.post_json(&format!("{told}/resolve"), nothing).await.refused(409, "voucher_state");
    these["note"] = json!("again");
    assert_eq!(admin.post_json(&format!("{told}/resolve"), these).await.expect(200)["batches"], done["batches"]);
    assert_eq!((&done["state"], office.available().await), (&json!("FAILED"), (200, 200)));
    let said: Vec<(&Value, &Value)> = done["batches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|batch| (&batch["resolution"]["by"], &batch["resolution"]["saidBy"]))
        .collect();
    assert!(said.iter().all(|(by, _)| **by == json!(admin.id)), "{done}");
    assert_eq!(said.iter().filter(|(_, who)| **who == json!("VENDOR")).count(), 1, "{done}");
    assert!(done.to_string().contains("by telephone") && !done.to_string().contains("CODE-"), "{done}");
    assert_eq!(vendor.posts().values().copied().collect::<Vec<_>>(), [1, 1, 1], "nothing was ordered again");
    let sound = check().await;
    assert!(sound.status.success(), "{}", text(&sound));
    office.finish().await;
}

#[tokio::test]
async fn only_what_is_unresolved_can_be_resolved_and_only_with_what_can_be_sold() {
    let (office, vendor) = (Office::with(quick).await, Vendor::start(1, 5_000, None).await);
    let (job, shown) = unresolved(&office, &vendor).await;
    let (sold, _) = batches(&job, &shown, &vendor);
    let path = format!("{}/resolve", sold[0].1);
    for wrong in [
        json!({ "outcome": "SOLD" }),
        json!({ "outcome": "SOLD", "vouchers": [{ "pin": "0042" }] }),
        json!({ "outcome": "SOLD", "vouchers": [{ "code": "x".repeat(4_097) }] }),
        json!({ "outcome": "NOTHING_SOLD", "vouchers": [{ "code": "A" }] }),
        json!({ "outcome": "PERHAPS" }),
    ] {
        office.admin.post_json(&path, wrong).await.refused(400, "validation_failed");
    }
    let number = json!({ "outcome": "SOLD", "vouchers": [{ "code": 77_123_456 }] });
    let refused = office.admin.post_json(&path, number).await;
    refused.refused(400, "malformed_body");
    assert!(!refused.body.to_string().contains("77123456"), "{}", refused.body);
    for nowhere in [format!("{job}/batches/9/ask"), format!("{job}/batches/0/ask"), format!("{job}/batches/x/ask")] {
        office.admin.post(&nowhere).await.refused(404, "not_found");
    }
    assert_eq!(office.show(&job).await["progress"]["unresolved"], 300);

    // Fewer than were ordered.
    let one = json!({ "outcome": "SOLD", "vouchers": &vendor.sold(&sold[0].0)[..60] });
    let short = office.admin.post_json(&path, one).await.expect(200);
    assert_eq!(short["progress"], json!({ "bought": 60, "failed": 40, "underWay": 0, "unresolved": 200 }));
    vendor.silent(false);
    let fine = office.job("fine", 10).await;
    office.until(&fine, "COMPLETED").await;
    office.admin.post(&format!("{fine}/batches/1/ask")).await.refused(409, "voucher_state");
    let nothing = json!({ "outcome": "NOTHING_SOLD" });
    office.admin.post_json(&format!("{fine}/batches/1/resolve"), nothing.clone()).await.refused(409, "voucher_state");
    office.admin.delete(&office.connection()).await.expect(200);
    office.admin.post(&format!("{}/ask", sold[1].1)).await.refused(409, "voucher_state");
    office.finish().await;
}
