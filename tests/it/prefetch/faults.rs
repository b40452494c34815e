//! Vendors that misbehave: what was sold is found out and kept, what was not is bought elsewhere, nothing is bought twice.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bson::{Document, doc};
use orbit::config::{Config, ExposeSecret};
use orbit::domain::prefetch::{BatchState, PrefetchState};
use orbit::vouchers::prefetch::VendorApi;
use tokio_util::sync::CancellationToken;

use super::vendor::{API_KEY, Fault, PRODUCT, Vendor};
use super::{Desk, assert_complete, assert_exact, wanted};
use crate::harness::eventually;

#[tokio::test]
async fn an_order_whose_answer_is_no_good_is_found_by_asking() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let faults = [
        Fault::AnswerLost,
        Fault::ErrorAfter,
        Fault::Dropped,
        Fault::Rubbish,
        Fault::Oversized,
        Fault::Bare,
        Fault::Redirect,
    ];
    vendor.meet(faults);
    let id = desk.job(900, vec![vendor.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(9);
    assert!(vendor.posts().values().all(|times| *times == 1), "{:?}", vendor.posts());
    // Nobody asked about `elsewhere`.
    assert_eq!(vendor.questions().len(), faults.len());
    desk.finish().await;
}

#[tokio::test]
async fn what_a_vendor_has_not_done_is_ordered_again_under_the_same_name() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    vendor.meet([Fault::ErrorBefore, Fault::Swallowed, Fault::Refused { permanent: false }]);
    let id = desk.job(300, vec![vendor.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(3);
    assert!(vendor.posts().values().all(|times| *times == 2), "{:?}", vendor.posts());
    assert_eq!(job.batches.iter().map(|batch| batch.orders).collect::<Vec<_>>(), [2, 2, 2]);
    desk.finish().await;
}

#[tokio::test]
async fn a_vendor_that_refuses_in_the_middle_is_followed_by_the_next_best() {
    let (first, second, third) =
        (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await, Vendor::start(3, 5_000, 100).await);
    let desk = Desk::with(&[&first, &second, &third], |config| config.prefetch.concurrency = 1).await;
    first.meet([Fault::Short(0), Fault::Short(0), Fault::Refused { permanent: true }]);
    let id = desk.job(600, vec![third.candidate(0), second.candidate(0), first.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&first, &second]).await;
    assert_eq!((first.posts().len(), second.posts().len(), third.posts().len()), (3, 4, 0));
    first.assert_sold_once(2);
    second.assert_sold_once(4);
    let refused = &job.batches[2];
    assert_eq!(
        (refused.state, refused.bought, refused.reason.as_deref()),
        (BatchState::Refused, 0, Some("out_of_stock"))
    );
    assert_eq!(job.progress.failed, 100);
    assert!(second.posts().keys().all(|name| !first.posts().contains_key(name)), "a name is of one vendor");
    let passed_over = |index: usize| job.candidates[index].passed_over.as_deref();
    assert_eq!((passed_over(2), passed_over(1), passed_over(0)), (Some("out_of_stock"), None, None));
    desk.finish().await;
}

#[tokio::test]
async fn a_vendor_that_refuses_for_the_moment_is_asked_three_times_more() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    let desk = Desk::at(&[&first, &second]).await;
    first.always(Fault::Refused { permanent: false });
    let id = desk.job(100, vec![first.candidate(0), second.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&second]).await;
    assert_eq!(first.posts()[&format!("{id}-1")], 4);
    assert_eq!(second.posts()[&format!("{id}-2")], 1);
    desk.finish().await;
}

#[tokio::test]
async fn missing_and_repeated_codes_are_bought_of_the_next_best() {
    for (fault, reason) in [(Fault::Short(40), "short_delivery"), (Fault::Twice, "codes_known")] {
        let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
        let desk = Desk::at(&[&first, &second]).await;
        first.meet([fault]);
        let id = desk.job(100, vec![first.candidate(0), second.candidate(0)]).await;
        let job = desk.ended(id).await;
        assert_complete(&desk, &job, &[&first, &second]).await;
        let delivered = if fault == Fault::Twice { 50 } else { 60 };
        let of = |index: usize| (job.batches[index].units, job.batches[index].bought);
        assert_eq!((of(0), of(1)), ((100, delivered), (100 - delivered, 100 - delivered)), "{fault:?}");
        assert_eq!(job.batches[0].reason.as_deref(), Some(reason));
        assert_eq!(job.progress.failed, 100 - delivered);
        desk.finish().await;
    }
}

#[tokio::test]
async fn a_job_ends_with_a_part_when_every_vendor_has_failed() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    let desk = Desk::at(&[&first, &second]).await;
    first.meet([Fault::Short(90)]);
    second.meet([Fault::Refused { permanent: true }]);
    let id = desk.job(100, vec![first.candidate(0), second.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_eq!((job.state, job.reason.as_deref()), (PrefetchState::Failed, Some("every vendor has refused or failed")));
    assert_eq!((job.progress.bought, job.progress.failed, job.missing(), job.partial()), (10, 180, 90, true));
    assert_eq!(desk.stock.units().await, 10);
    desk.finish().await;
}

#[tokio::test]
async fn a_vendor_that_takes_its_time_is_waited_for() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    let desk = Desk::at(&[&first, &second]).await;
    first.always(Fault::Pending(8));
    let id = desk.job(700, vec![first.candidate(0), second.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&first]).await;
    first.assert_sold_once(7);
    assert!(first.posts().values().all(|times| *times == 1) && second.posts().is_empty());
    desk.finish().await;
}

#[tokio::test]
async fn the_rest_is_bought_elsewhere_if_a_vendor_takes_very_long() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    let desk = Desk::with(&[&first, &second], |config| config.prefetch.retries = 1).await;
    first.always(Fault::Pending(12));
    let id = desk.job(700, vec![first.candidate(0), second.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&first, &second]).await;
    assert_eq!((first.posts().len(), second.posts().len()), (5, 2));
    first.assert_sold_once(5);
    desk.finish().await;
}

#[tokio::test]
async fn codes_that_stock_does_not_acknowledge_are_added_again_and_counted_once() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    desk.stock.faults.store(3, Ordering::SeqCst);
    let id = desk.job(800, vec![vendor.candidate(0)]).await;
    let failed = desk.prefetch.work(&CancellationToken::new()).await.unwrap_err();
    assert_eq!(failed.code().as_str(), "database_unavailable");
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(8);
    assert!(vendor.posts().values().all(|times| *times == 1));
    desk.finish().await;
}

#[tokio::test]
async fn a_batch_of_unknown_outcome_is_never_bought_elsewhere() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    let desk = Desk::with(&[&first, &second], |config| config.prefetch.concurrency = 1).await;
    first.meet([Fault::AnswerLost]);
    let id = desk.job(300, vec![first.candidate(0), second.candidate(0)]).await;
    // It said what it had, and from its first order on it says nothing.
    let (work, stop) =
        (async { desk.prefetch.work(&CancellationToken::new()).await.unwrap() }, CancellationToken::new());
    let silence = async {
        eventually("an order has come", || async { !first.posts().is_empty() }).await;
        first.silent(true);
    };
    futures::join!(work, silence);
    let waiting = desk.show(id).await;
    assert_exact(&waiting);
    assert_eq!(
        (waiting.state, waiting.progress.bought, waiting.progress.under_way),
        (PrefetchState::Running, 200, 100)
    );
    assert_eq!((first.posts().len(), second.posts().len()), (1, 2), "the rest is bought of somebody who answers");
    // Long after "there is no such order" could be believed. It was not said.
    tokio::time::sleep(Duration::from_millis(desk.config.prefetch.absence_ms)).await;
    desk.prefetch.work(&stop).await.unwrap();
    assert_eq!(desk.show(id).await.progress.under_way, 100);
    first.silent(false);
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&first, &second]).await;
    first.assert_sold_once(1);
    assert_eq!(first.posts()[&format!("{id}-1")], 1);
    desk.finish().await;
}

#[tokio::test]
async fn that_there_is_no_such_order_is_believed_after_a_while_only() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    let desk = Desk::with(&[&first, &second], |config| config.prefetch.absence_ms = 1_500).await;
    first.always(Fault::ErrorBefore);
    let id = desk.job(100, vec![first.candidate(0), second.candidate(0)]).await;
    desk.prefetch.work(&CancellationToken::new()).await.unwrap();
    assert_eq!(first.posts()[&format!("{id}-1")], 4, "three retries under the same name");
    assert!(second.posts().is_empty());
    assert_eq!(desk.show(id).await.progress.under_way, 100);
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&second]).await;
    assert_eq!((job.batches[0].state, job.batches[0].orders), (BatchState::Refused, 4));
    let waited = job.ended_at.unwrap() - job.batches[0].ordered_at;
    assert!(waited.num_milliseconds() >= 1_500, "{waited}");
    assert_eq!(first.posts()[&format!("{id}-1")], 4);
    desk.finish().await;
}

#[tokio::test]
async fn an_order_that_shows_up_late_is_bought_once() {
    let (first, second) = (Vendor::start(1, 5_000, 900).await, Vendor::start(2, 5_000, 500).await);
    first.careful();
    let desk = Desk::at(&[&first, &second]).await;
    // Known after so many questions: more than one round asks, though it is ordered again in between.
    first.meet([Fault::Hidden(9), Fault::ErrorBefore, Fault::ErrorBefore, Fault::ErrorBefore]);
    let id = desk.job(100, vec![first.candidate(0), second.candidate(0)]).await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&first]).await;
    first.assert_sold_once(1);
    assert!(second.posts().is_empty());
    desk.finish().await;
}

#[tokio::test]
async fn what_nobody_can_find_out_is_left_to_a_person() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let quick = |config: &mut Config| (config.prefetch.retry_pause_ms, config.prefetch.retries) = (1, 0);
    let desk = Desk::with(&[&vendor], |config| quick(config)).await;
    vendor.meet([Fault::AnswerLost]);
    let id = desk.job(100, vec![vendor.candidate(0)]).await;
    let work = async { desk.prefetch.work(&CancellationToken::new()).await.unwrap() };
    let silence = async {
        eventually("an order has come", || async { !vendor.posts().is_empty() }).await;
        vendor.silent(true);
    };
    futures::join!(work, silence);
    // Rounds lie ever further apart; the test does not wait for all of them.
    let jobs = mongodb::Client::with_uri_str(desk.config.mongo.uri.expose_secret()).await.unwrap();
    let jobs = jobs.database(&desk.config.mongo.database).collection::<Document>("prefetchJobs");
    jobs.update_one(doc! {}, doc! { "$set": { "idleRounds": 20_i64, "dueAt": bson::DateTime::now() } }).await.unwrap();
    let job = desk.ended(id).await;
    assert_eq!((job.state, job.progress.unresolved, job.progress.bought), (PrefetchState::Failed, 100, 0));
    assert_eq!((job.batches[0].state, vendor.posts().len()), (BatchState::Unresolved, 1));
    desk.finish().await;
}

#[tokio::test]
async fn no_code_and_no_key_is_in_an_error_or_in_a_job() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let api = vendor.api(&desk.config.prefetch);
    let denomination = wanted(1, Vec::new()).denomination;
    for (number, fault) in
        [Fault::Rubbish, Fault::Oversized, Fault::Dropped, Fault::ErrorAfter, Fault::AnswerLost].into_iter().enumerate()
    {
        vendor.meet([fault]);
        let name = format!("order-{number}");
        let order =
            orbit::vouchers::prefetch::VendorOrder { external_id: &name, product_ref: PRODUCT, denomination, count: 3 };
        let error = api.order(&order).await.unwrap_err();
        assert_eq!(error.code().as_str(), "vendor_unavailable");
        let text = format!("{error:?} {} {}", error.chain(), error.public_message());
        for secret in ["CODE-", "0042", API_KEY, "127.0.0.1"] {
            assert!(!text.contains(secret), "{fault:?}: {text}");
        }
        let found = api.find_order(&name).await.unwrap().unwrap();
        assert!(!format!("{found:?}").contains("CODE-"), "a code can be printed");
    }
    vendor.meet([Fault::Rubbish]);
    let id = desk.job(10, vec![vendor.candidate(0)]).await;
    desk.ended(id).await;
    let client = mongodb::Client::with_uri_str(desk.config.mongo.uri.expose_secret()).await.unwrap();
    let jobs = client.database(&desk.config.mongo.database).collection::<Document>("prefetchJobs");
    let stored = jobs.find_one(doc! {}).await.unwrap().unwrap().to_string();
    assert!(stored.contains(&format!("{id}-1")) && !stored.contains("CODE-"), "{stored}");
    desk.finish().await;
}
