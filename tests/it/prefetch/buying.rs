//! Vendors that behave: what is bought, of whom, and what is shown of it.

use std::sync::Arc;
use std::time::Duration;

use orbit::domain::clock::SystemClock;
use orbit::domain::ids::{PrefetchJobId, VendorId};
use orbit::domain::page::Page;
use orbit::domain::prefetch::{BatchState, PrefetchState};
use orbit::error::Error;
use orbit::task::Tracker;
use orbit::vouchers::prefetch::{OrderOutcome, Prefetch, SandboxVendor, VendorApi, VendorOrder};
use secrecy::ExposeSecret;

use super::vendor::{Fault, Vendor};
use super::{ADMIN, CLIENT, Desk, assert_complete, wanted};
use crate::harness::eventually;

#[tokio::test]
async fn a_job_buys_every_unit_in_batches_five_at_a_time() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let id = desk.job(1_050, vec![vendor.candidate(300)]).await;
    let queued = desk.show(id).await;
    assert_eq!((queued.state, queued.created_by, queued.started_at), (PrefetchState::Queued, ADMIN, None));
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(11);
    let names: Vec<String> = (1..=11).map(|number| format!("{id}-{number}")).collect();
    assert!(names.iter().all(|name| vendor.posts()[name] == 1));
    assert_eq!(job.batches.iter().map(|batch| batch.units).collect::<Vec<_>>()[9..], [100, 50]);
    assert!((2..=5).contains(&vendor.in_flight_max()), "{}", vendor.in_flight_max());
    assert!(vendor.questions().is_empty(), "nobody asks about an order that was answered");
    let code = desk.stock.all().await.remove(0);
    assert_eq!(code.get_str("client").unwrap(), CLIENT.to_string());
    assert_eq!((code.get_str("job").unwrap(), code.get_str("pin").unwrap()), (id.to_string().as_str(), "0042"));
    assert!(job.started_at.is_some() && job.ended_at.is_some() && job.due_at.is_none() && !job.partial());
    desk.finish().await;
}

#[tokio::test]
async fn the_highest_discount_wins_among_vendors_that_answer_and_have_enough() {
    // Of whom the discount was agreed on, and of whom it is told now; too few; no answer; as good as the first.
    let vendors = [
        Vendor::start(4, 500, None).await,
        Vendor::start(2, 500, 300).await,
        Vendor::start(5, 149, 900).await,
        Vendor::start(1, 500, 800).await,
        Vendor::start(3, 500, 450).await,
    ];
    vendors[3].silent(true);
    let desk = Desk::at(&vendors.iter().collect::<Vec<_>>()).await;
    let agreed = [450, 1_000, 0, 0, 0];
    let candidates = vendors.iter().zip(agreed).map(|(vendor, agreed)| vendor.candidate(agreed)).collect();
    let id = desk.job(150, candidates).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &vendors.iter().collect::<Vec<_>>()).await;
    vendors[4].assert_sold_once(2);
    desk.finish().await;
}

#[tokio::test]
async fn a_job_that_nobody_can_serve_fails_and_says_why() {
    let (few, silent) = (Vendor::start(1, 99, None).await, Vendor::start(2, 500, None).await);
    silent.silent(true);
    let desk = Desk::at(&[&few, &silent]).await;
    let nowhere = super::NewCandidate { vendor: VendorId::from_bytes([3; 12]), ..few.candidate(0) };
    let id = desk.job(100, vec![few.candidate(0), silent.candidate(0), nowhere]).await;
    let job = desk.ended(id).await;
    assert_eq!((job.state, job.reason.as_deref()), (PrefetchState::Failed, Some("no vendor offers enough units")));
    assert_eq!((job.progress.bought, job.missing(), job.partial(), job.batches.len()), (0, 100, false, 0));
    assert_eq!(desk.stock.units().await, 0);
    desk.finish().await;
}

#[tokio::test]
async fn every_broken_rule_of_a_job_is_named() {
    let vendor = Vendor::start(1, 500, None).await;
    let desk = Desk::with(&[], |config| config.prefetch.batch_size = 10).await;
    let mut candidates = vec![vendor.candidate(10_001), vendor.candidate(0)];
    candidates[1].product_ref = "..".to_owned();
    let mut bad = wanted(10_001, candidates);
    bad.denomination.minor = 0;
    let Err(Error::Invalid { fields }) = desk.prefetch.create(ADMIN, bad).await else { panic!("it was made") };
    let named: Vec<&str> = fields.iter().map(|field| field.field.as_str()).collect();
    let expected =
        ["units", "denomination", "candidates[0].discountBp", "candidates[1].vendorId", "candidates[1].productRef"];
    assert_eq!(named, expected);
    let Err(Error::Invalid { fields }) = desk.prefetch.create(ADMIN, wanted(1, Vec::new())).await else { panic!() };
    assert_eq!(fields[0].field, "candidates");
    let unknown = desk.prefetch.job(PrefetchJobId::from_bytes([1; 12])).await.unwrap_err();
    assert_eq!(unknown.code().as_str(), "not_found");
    desk.finish().await;
}

#[tokio::test]
async fn jobs_are_listed_newest_first_by_cursor_and_by_state() {
    let vendor = Vendor::start(1, 500, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(desk.job(1, vec![vendor.candidate(0)]).await);
    }
    made.reverse();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = desk.prefetch.jobs(None, Page { limit: 2, after }).await.unwrap();
        seen.extend(page.items.iter().map(|job| job.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, made);
    // Five jobs of one time begin in any order; one of them has begun.
    desk.prefetch.work(&tokio_util::sync::CancellationToken::new()).await.unwrap();
    let all = Page { limit: 10, after: None };
    let completed = desk.prefetch.jobs(Some(PrefetchState::Completed), all).await.unwrap().items;
    assert_eq!(completed.len(), 1);
    assert!(completed[0].batches.is_empty() && completed[0].progress.bought == 1, "batches are not listed");
    assert_eq!(desk.prefetch.jobs(Some(PrefetchState::Queued), all).await.unwrap().items.len(), 4);
    desk.finish().await;
}

#[tokio::test]
async fn the_loop_works_on_jobs_and_leaves_them_to_others_when_it_stops() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let tasks = Tracker::new();
    tasks.spawn(Arc::clone(&desk.prefetch).keep_prefetching(tasks.clone()));
    let first = desk.job(250, vec![vendor.candidate(0)]).await;
    eventually("the first job is done", || async { desk.show(first).await.state.ended() }).await;
    vendor.meet([Fault::Pending(1_000)]);
    let second = desk.job(100, vec![vendor.candidate(0)]).await;
    eventually("the vendor is asked", || async { vendor.questions().contains_key(&format!("{second}-1")) }).await;
    assert!(tasks.stop(Duration::from_secs(10)).await);
    let left = desk.show(second).await;
    assert_eq!((left.state, left.batches[0].state), (PrefetchState::Running, BatchState::Ordered));
    desk.finish().await;
}

#[tokio::test]
async fn the_sandbox_sells_the_same_codes_to_whoever_asks_again() {
    let desk = Desk::at(&[]).await;
    let sandbox = |key: &str| SandboxVendor::new(Arc::clone(&desk.mongo), Arc::new(SystemClock), key.into());
    let id = VendorId::from_bytes([1; 12]);
    let api: Arc<dyn VendorApi> = Arc::new(sandbox("a key"));
    let (known, stock) = (Arc::clone(&api), Arc::clone(&desk.stock));
    let vendors = Arc::new(move |vendor: VendorId| (vendor == id).then(|| Arc::clone(&known)));
    let prefetch = Prefetch::new(Arc::clone(&desk.mongo), vendors, stock, Arc::new(SystemClock), &desk.config);
    let candidate =
        |product: &str| super::NewCandidate { vendor: id, product_ref: product.to_owned(), discount_bp: 100 };
    let job = prefetch.create(ADMIN, wanted(120, vec![candidate("card")])).await.unwrap();
    prefetch.work(&tokio_util::sync::CancellationToken::new()).await.unwrap();
    assert_eq!(prefetch.job(job.id).await.unwrap().state, PrefetchState::Completed);
    assert_eq!(desk.stock.units().await, 120);

    let name = format!("{}-1", job.id);
    let codes = |outcome: OrderOutcome| {
        let OrderOutcome::Fulfilled(vouchers) = outcome else { panic!("{outcome:?}") };
        vouchers.iter().map(|one| one.code.as_ref().unwrap().expose_secret().to_owned()).collect::<Vec<_>>()
    };
    let again = codes(sandbox("a key").find_order(&name).await.unwrap().unwrap());
    let denomination = wanted(1, Vec::new()).denomination;
    let order = VendorOrder { external_id: &name, product_ref: "card", denomination, count: 7 };
    assert_eq!(codes(api.order(&order).await.unwrap()), again, "an order of the same name is the same order");
    assert!(again.len() == 100 && again.iter().all(|code| code.starts_with("SBX-") && code.len() == 20));
    let stocked = desk.stock.all().await;
    assert!(again.iter().all(|code| stocked.iter().any(|row| row.get_str("_id").unwrap() == code)));
    assert_ne!(codes(sandbox("another key").find_order(&name).await.unwrap().unwrap()), again);
    assert!(api.find_order("unknown").await.unwrap().is_none());

    let sold_out = VendorOrder { external_id: "x-1", product_ref: "sold-out", ..order };
    assert_eq!(api.available("sold-out", denomination).await.unwrap().units, 0);
    assert!(matches!(api.order(&sold_out).await.unwrap(), OrderOutcome::Refused(refusal) if refusal.permanent));
    desk.finish().await;
}

#[tokio::test]
async fn the_index_that_finds_due_jobs_is_there() {
    let desk = Desk::at(&[]).await;
    assert!(desk.mongo.missing_indexes().await.unwrap().is_empty());
    desk.finish().await;
}
