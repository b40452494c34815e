//! Processes that die, stall, and work side by side: each batch is bought once.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use orbit::domain::clock::{Clock, SystemClock};
use orbit::domain::prefetch::{BatchState, PrefetchState};
use orbit::store::mongo::vouchers::BatchEnd;
use orbit::task::Tracker;
use orbit::vouchers::prefetch::Prefetch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::vendor::{Fault, Vendor};
use super::{Desk, assert_complete, assert_exact};
use crate::harness::eventually;

/// A process that works until the test ends it, without a word to anybody.
struct Doomed(JoinSet<()>);

impl Doomed {
    fn start(prefetch: Arc<Prefetch>) -> Self {
        let mut process = JoinSet::new();
        process.spawn(async move {
            loop {
                prefetch.work(&CancellationToken::new()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        Self(process)
    }

    async fn die(mut self) {
        self.0.shutdown().await;
    }
}

#[tokio::test]
async fn orders_of_a_process_that_died_are_found_by_another_one() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    vendor.meet([Fault::AnswerLost; 5]);
    let id = desk.job(800, vec![vendor.candidate(0)]).await;
    let doomed = Doomed::start(desk.second());
    eventually("five orders are sold", || async { vendor.sales().len() == 5 }).await;
    doomed.die().await;
    let left = desk.show(id).await;
    assert_eq!((left.state, left.progress.under_way, left.progress.bought), (PrefetchState::Running, 500, 0));
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(8);
    assert!(vendor.posts().values().all(|times| *times == 1), "{:?}", vendor.posts());
    desk.finish().await;
}

#[tokio::test]
async fn orders_that_a_dead_process_has_not_sent_are_sent_by_another_one() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    vendor.meet([Fault::Swallowed; 5]);
    let id = desk.job(800, vec![vendor.candidate(0)]).await;
    let doomed = Doomed::start(desk.second());
    eventually("five orders are under way", || async { vendor.posts().len() == 5 }).await;
    doomed.die().await;
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(8);
    assert_eq!(job.next_batch, 9, "under the same names");
    desk.finish().await;
}

#[tokio::test]
async fn codes_that_a_dead_process_has_put_into_stock_are_counted_once() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    // Added, and not recorded.
    desk.stock.permits.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
    let id = desk.job(800, vec![vendor.candidate(0)]).await;
    let doomed = Doomed::start(desk.second());
    eventually("five batches are in stock", || async { desk.stock.units().await == 500 }).await;
    doomed.die().await;
    assert_eq!(desk.show(id).await.progress.bought, 0);
    desk.stock.permits.add_permits(1_000);
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(8);
    desk.finish().await;
}

#[tokio::test]
async fn a_job_outlives_many_processes() {
    let vendor = Vendor::start(1, 50_000, None).await;
    vendor.careful();
    let desk = Desk::with(&[&vendor], |config| {
        config.prefetch.batch_size = 10;
        (config.prefetch.deadline_ms, config.prefetch.claim_ttl_ms) = (100, 200);
    })
    .await;
    let faults =
        [Fault::AnswerLost, Fault::Short(0), Fault::Dropped, Fault::Short(0), Fault::ErrorBefore, Fault::Rubbish];
    vendor.meet(faults.into_iter().cycle().take(120));
    let id = desk.job(1_000, vec![vendor.candidate(0)]).await;
    for life_ms in [40, 90, 150, 60, 220, 110] {
        let doomed = Doomed::start(desk.second());
        tokio::time::sleep(Duration::from_millis(life_ms)).await;
        doomed.die().await;
        assert_exact(&desk.show(id).await);
    }
    let job = desk.ended(id).await;
    assert_complete(&desk, &job, &[&vendor]).await;
    vendor.assert_sold_once(100);
    desk.finish().await;
}

#[tokio::test]
async fn processes_side_by_side_buy_each_batch_once() {
    let vendor = Vendor::start(1, 50_000, None).await;
    let desk = Desk::with(&[&vendor], |config| config.prefetch.batch_size = 20).await;
    vendor.meet([Fault::AnswerLost, Fault::ErrorAfter, Fault::Dropped, Fault::ErrorBefore]);
    let tasks = Tracker::new();
    for _ in 0..3 {
        tasks.spawn(desk.second().keep_prefetching(tasks.clone()));
    }
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(desk.job(210, vec![vendor.candidate(0)]).await);
    }
    eventually("every job has ended", || async {
        let ended = futures::future::join_all(jobs.iter().map(|id| async { desk.show(*id).await.state.ended() })).await;
        ended.into_iter().all(|ended| ended)
    })
    .await;
    assert!(tasks.stop(Duration::from_secs(10)).await);
    for id in &jobs {
        let job = desk.show(*id).await;
        assert_exact(&job);
        assert_eq!((job.state, job.progress.bought, job.batches.len()), (PrefetchState::Completed, 210, 11));
    }
    assert_eq!(desk.stock.units().await, 840);
    vendor.assert_sold_once(44);
    desk.finish().await;
}

#[tokio::test]
async fn a_process_that_stalled_finds_that_it_has_lost_its_job() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let id = desk.job(200, vec![vendor.candidate(0)]).await;
    let (jobs, now, ttl) = (&desk.mongo.prefetch_jobs, SystemClock.now(), Duration::from_secs(1));
    let stalled = jobs.claim(now, ttl).await.unwrap().unwrap();
    let mut batch = orbit::domain::prefetch::Batch {
        number: 1,
        vendor: vendor.id,
        units: 100,
        state: BatchState::Ordered,
        bought: 0,
        orders: 1,
        ordered_at: now,
        reason: None,
        resolution: None,
    };
    assert!(jobs.begin_batch(id, &stalled.claim, &batch).await.unwrap());
    assert!(!jobs.begin_batch(id, &stalled.claim, &batch).await.unwrap(), "a number is used once");
    assert!(jobs.claim(now, ttl).await.unwrap().is_none(), "it is taken");
    let later = now + TimeDelta::seconds(2);
    let other = jobs.claim(later, ttl).await.unwrap().unwrap();
    assert_eq!((other.job.id, other.job.open_batches().count()), (id, 1));

    let end = BatchEnd { state: BatchState::Stocked, bought: 100, reason: None };
    let refused = [
        jobs.renew(id, &stalled.claim, later, ttl).await.unwrap(),
        jobs.order_again(id, &stalled.claim, 1, later).await.unwrap(),
        jobs.end_batch(id, &stalled.claim, &batch, &end).await.unwrap(),
        jobs.end(id, &stalled.claim, PrefetchState::Failed, None, later).await.unwrap(),
        jobs.give_back(&stalled.job, &stalled.claim, 0, later).await.unwrap(),
    ];
    assert_eq!(refused, [false; 5]);
    assert!(jobs.held(id, &stalled.claim).await.unwrap().is_none());
    assert!(!jobs.end(id, &other.claim, PrefetchState::Completed, None, later).await.unwrap(), "a batch is open");
    assert!(jobs.end_batch(id, &other.claim, &batch, &end).await.unwrap());
    assert!(!jobs.end_batch(id, &other.claim, &batch, &end).await.unwrap(), "a batch is decided once");
    jobs.kill(id, later).await.unwrap();
    batch.number = 2;
    assert!(!jobs.begin_batch(id, &other.claim, &batch).await.unwrap(), "no batch begins after a kill");
    assert!(!jobs.give_back(&other.job, &other.claim, 0, later).await.unwrap(), "the kill was not seen");
    assert!(!jobs.end(id, &other.claim, PrefetchState::Failed, None, later).await.unwrap(), "it is killed");
    assert!(jobs.end(id, &other.claim, PrefetchState::Killed, None, later).await.unwrap());
    let job = desk.show(id).await;
    assert_exact(&job);
    assert_eq!((job.state, job.progress.bought), (PrefetchState::Killed, 100));
    desk.finish().await;
}
