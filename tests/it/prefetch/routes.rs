//! Prefetch over HTTP: from a request to codes in the inventory.

use std::process::Stdio;

use orbit::supervisor::free_port;
use reqwest::Method;
use serde_json::json;

use super::office::{JOBS, Office, entered};
use super::vendor::{API_KEY, Fault, Vendor};
use crate::harness::process::{environment, orbit};
use crate::harness::{Actor, eventually};

#[tokio::test]
async fn a_job_buys_codes_that_a_client_orders() {
    let (office, vendor) = (Office::open().await, Vendor::start(1, 5_000, None).await);
    let buyer = office.app.buyer().await;
    let client = entered(&office.admin, "clients", json!({ "name": "Shoes Inc", "members": [buyer.id] })).await;
    office.connect(&vendor).await;
    let mut wanted = office.wanted("first", 150);
    wanted["clientId"] = json!(client);
    let made = office.admin.post_json(JOBS, wanted.clone()).await.expect(201);
    assert_eq!(
        (&made["units"], &made["createdBy"], &made["clientId"]),
        (&json!(150), &json!(office.admin.id), &json!(client))
    );
    let job = office.until(&format!("{JOBS}/{}", made["id"].as_str().unwrap()), "COMPLETED").await;
    assert_eq!(job["progress"], json!({ "bought": 150, "failed": 0, "underWay": 0, "unresolved": 0 }));
    let batches = job["batches"].as_array().unwrap();
    assert_eq!((batches.len(), &job["missing"], &job["currency"]), (2, &json!(0), &json!("EUR")));
    let first = &batches[0];
    assert_eq!(
        (&first["vendorId"], &first["state"], &first["bought"]),
        (&json!(office.vendor), &json!("STOCKED"), &json!(100))
    );
    assert_eq!(first["externalId"], format!("{}-1", job["id"].as_str().unwrap()));
    vendor.assert_sold_once(2);
    assert_eq!(office.available().await, (150, 150));
    // Again, long after it has ended: it is the job that was made, and nothing is bought.
    let again = office.admin.post_json(JOBS, wanted).await.expect(201);
    assert_eq!((&again["id"], &again["state"]), (&job["id"], &json!("COMPLETED")));

    let line = json!({ "productId": office.product, "denomination": "50.00", "quantity": 1 });
    let order = json!({ "reference": "PO-1", "items": [line] });
    let order = buyer.post_json("/api/client/voucher-orders", order).await.expect(201);
    let codes =
        buyer.get(&format!("/api/client/voucher-orders/{}/codes", order["id"].as_str().unwrap())).await.expect(200);
    assert!(vendor.codes().iter().any(|code| codes["codes"][0]["code"] == code.as_str()), "a code of the vendor's");
    office.finish().await;
}

#[tokio::test]
async fn a_reference_is_one_job_and_a_key_one_answer() {
    let (office, vendor) = (Office::open().await, Vendor::start(1, 5_000, None).await);
    office.connect(&vendor).await;
    let keyed = || office.admin.request(Method::POST, JOBS).header("idempotency-key", "one");
    let first = Actor::send(keyed().json(&office.wanted("a", 10))).await.expect(201);
    let second = Actor::send(keyed().json(&office.wanted("a", 10))).await;
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert_eq!(second.expect(201)["id"], first["id"]);
    office.admin.post_json(JOBS, office.wanted("a", 11)).await.refused(409, "reference_reused");
    let made = [office.job("b", 5).await, office.job("c", 5).await];
    for job in &made {
        office.until(job, "COMPLETED").await;
    }
    assert_eq!(office.available().await, (20, 20));

    let (mut seen, mut path) = (Vec::new(), format!("{JOBS}?limit=2&state=COMPLETED"));
    loop {
        let page = office.admin.get(&path).await.expect(200);
        let jobs = page["jobs"].as_array().unwrap();
        assert!(jobs.iter().all(|job| job.get("batches").is_none()), "batches are not listed");
        seen.extend(jobs.iter().map(|job| job["reference"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("{JOBS}?limit=2&state=COMPLETED&cursor={cursor}");
    }
    assert_eq!(seen, ["c", "b", "a"]);
    assert_eq!(office.admin.get(&format!("{JOBS}?state=KILLED")).await.expect(200)["jobs"], json!([]));
    office.admin.get(&format!("{JOBS}?state=GONE")).await.refused(400, "validation_failed");
    office.finish().await;
}

#[tokio::test]
async fn what_cannot_be_bought_is_refused_before_anything_is_asked() {
    let (office, vendor) = (Office::open().await, Vendor::start(1, 5_000, None).await);
    office.admin.post_json(JOBS, office.wanted("a", 10)).await.refused(400, "validation_failed");
    office.connect(&vendor).await;
    let nobody = "0123456789abcdef01234567";
    let other = entered(&office.admin, "vendors", json!({ "name": "Bolt" })).await;
    for (field, value) in [
        ("denomination", json!("51.00")),
        ("units", json!(0)),
        ("reference", json!("")),
        ("reference", json!("a b")),
        ("candidates", json!([])),
        ("candidates", json!([{ "vendorId": other, "productRef": "x" }])),
        ("candidates", json!([{ "vendorId": "x", "productRef": "x" }])),
        ("candidates", json!([{ "vendorId": office.vendor, "productRef": ".." }])),
        ("candidates", json!([{ "vendorId": office.vendor, "productRef": "x", "discountBp": 10_001 }])),
    ] {
        let mut wanted = office.wanted("a", 10);
        wanted[field] = value;
        office.admin.post_json(JOBS, wanted).await.refused(400, "validation_failed");
    }
    for field in ["productId", "clientId"] {
        let mut wanted = office.wanted("a", 10);
        wanted[field] = json!(nobody);
        office.admin.post_json(JOBS, wanted).await.refused(404, "not_found");
    }
    assert_eq!(office.admin.get(JOBS).await.expect(200)["jobs"], json!([]));
    office.finish().await;
}

#[tokio::test]
async fn a_killed_job_keeps_what_was_under_way_and_orders_no_more() {
    // Orders wait at the vendor longer than they may elsewhere.
    let patient = |config: &mut orbit::config::Config| {
        let prefetch = &mut config.prefetch;
        (prefetch.deadline_ms, prefetch.absence_ms, prefetch.claim_ttl_ms) = (10_000, 10_000, 30_000);
    };
    let (office, vendor) = (Office::with(patient).await, Vendor::start(1, 5_000, None).await);
    office.connect(&vendor).await;
    vendor.close_gate();
    let job = office.job("doomed", 2_000).await;
    eventually("five orders are under way", || async { vendor.posts().len() == 5 }).await;
    let asked = office.admin.post(&format!("{job}/kill")).await.expect(200);
    assert_eq!(asked["state"], "RUNNING");
    assert!(asked["killAskedAt"].is_string());
    vendor.let_in(1_000);
    let killed = office.until(&job, "KILLED").await;
    let bought = killed["progress"]["bought"].as_u64().unwrap();
    assert_eq!((killed["batches"].as_array().unwrap().len(), killed["progress"]["underWay"].as_u64()), (5, Some(0)));
    assert_eq!((u64::try_from(vendor.codes().len()).unwrap(), office.available().await), (bought, (bought, bought)));
    let again = office.admin.post(&format!("{job}/kill")).await.expect(200);
    assert_eq!((&again["state"], &again["endedAt"]), (&killed["state"], &killed["endedAt"]));
    office.finish().await;
}

#[tokio::test]
async fn neither_key_nor_code_is_in_an_answer_or_in_a_log() {
    // The service here takes no job; the process beside it does, and tells all that it has to tell.
    let office = Office::with(|config| config.prefetch.poll_interval_ms = 3_600_000).await;
    let vendor = Vendor::start(1, 5_000, None).await;
    vendor.meet([Fault::ErrorAfter, Fault::Rubbish]);
    let (port, file) = (free_port().unwrap(), office.app.config().media.filesystem.dir.with_extension("log"));
    let said = std::fs::File::create(&file).unwrap();
    let mut process = orbit();
    process.arg("serve").envs(environment(office.app.config(), port)).env("ORBIT__LOG__FILTER", "debug,orbit=trace");
    for (name, value) in [("ALLOW_HTTP", "true"), ("ALLOW_PRIVATE", "true"), ("POLL_INTERVAL_MS", "100")] {
        process.env(format!("ORBIT__PREFETCH__{name}"), value);
    }
    let mut process = process.stdout(Stdio::from(said.try_clone().unwrap())).stderr(Stdio::from(said)).spawn().unwrap();
    let there = office.admin.at(format!("http://127.0.0.1:{port}"));
    let ready = there.request(Method::GET, "/health/ready");
    eventually("the process is ready", || async {
        ready.try_clone().unwrap().send().await.is_ok_and(|answer| answer.status().is_success())
    })
    .await;

    let body = json!({ "kind": "HTTP", "baseUrl": vendor.url(), "apiKey": API_KEY });
    let mut answers = vec![there.put_json(&office.connection(), body.clone()).await.expect(200)];
    let mut broken = body.clone();
    broken["apiKey"] = json!([API_KEY]);
    answers.push(there.put_json(&office.connection(), broken).await.expect(400));
    broken = body;
    broken["apiKey"] = json!(format!("{API_KEY} {API_KEY}"));
    answers.push(there.put_json(&office.connection(), broken).await.expect(400));
    answers.push(there.get(&office.connection()).await.expect(200));
    answers.push(there.post_json(JOBS, office.wanted("told", 300)).await.expect(201));
    let job = format!("{JOBS}/{}", answers.last().unwrap()["id"].as_str().unwrap());
    answers.push(office.until(&job, "COMPLETED").await);
    answers.push(there.get(JOBS).await.expect(200));
    answers.push(there.delete(&office.connection()).await.expect(200));
    process.kill().await.unwrap();
    let log = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(log.contains("prefetch job made") && log.contains("has no answer"), "the process has told nothing");
    for secret in [API_KEY, "CODE-"] {
        assert!(!log.contains(secret), "{secret} is in the log");
        assert!(answers.iter().all(|answer| !answer.to_string().contains(secret)), "{secret} is in an answer");
    }
    office.finish().await;
}
