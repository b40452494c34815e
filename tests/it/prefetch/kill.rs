//! An administrator stops a job: nothing more is bought, and what was bought is kept.

use orbit::domain::ids::PrefetchJobId;
use orbit::domain::prefetch::{BatchState, PrefetchState};
use tokio_util::sync::CancellationToken;

use super::vendor::{Fault, Vendor};
use super::{ADMIN, Desk, assert_exact};
use crate::harness::eventually;

#[tokio::test]
async fn a_job_that_has_not_begun_is_killed_at_once() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let id = desk.job(100, vec![vendor.candidate(0)]).await;
    let killed = desk.prefetch.kill(ADMIN, id).await.unwrap();
    assert_eq!((killed.state, killed.due_at), (PrefetchState::Killed, None));
    assert!(!desk.prefetch.work(&CancellationToken::new()).await.unwrap(), "there is nothing to do");
    let again = desk.prefetch.kill(ADMIN, id).await.unwrap();
    assert_eq!((again.state, again.ended_at), (PrefetchState::Killed, killed.ended_at));
    assert!(vendor.posts().is_empty());
    let unknown = desk.prefetch.kill(ADMIN, PrefetchJobId::from_bytes([1; 12])).await.unwrap_err();
    assert_eq!(unknown.code().as_str(), "not_found");
    desk.finish().await;
}

#[tokio::test]
async fn a_job_that_has_ended_cannot_be_killed() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::at(&[&vendor]).await;
    let id = desk.job(10, vec![vendor.candidate(0)]).await;
    desk.ended(id).await;
    let job = desk.prefetch.kill(ADMIN, id).await.unwrap();
    assert_eq!((job.state, job.kill_asked_at), (PrefetchState::Completed, None));
    desk.finish().await;
}

#[tokio::test]
async fn what_is_under_way_when_a_job_is_killed_is_kept_and_nothing_more_is_bought() {
    let vendor = Vendor::start(1, 5_000, None).await;
    // Orders wait for the test.
    let desk = Desk::with(&[&vendor], |config| {
        (config.prefetch.deadline_ms, config.prefetch.absence_ms) = (20_000, 20_000);
        config.prefetch.claim_ttl_ms = 60_000;
    })
    .await;
    vendor.close_gate();
    // One that is answered, one whose answer is lost on its way, one that the vendor has not done and one that it refuses.
    vendor.meet([Fault::Short(0), Fault::Dropped, Fault::Refused { permanent: false }]);
    let id = desk.job(2_000, vec![vendor.candidate(0)]).await;
    let work = async { desk.prefetch.work(&CancellationToken::new()).await.unwrap() };
    let kill = async {
        eventually("five orders are under way", || async { vendor.posts().len() == 5 }).await;
        let asked = desk.prefetch.kill(ADMIN, id).await.unwrap();
        assert_eq!((asked.state, asked.progress.under_way), (PrefetchState::Running, 500));
        assert!(asked.kill_asked_at.is_some());
        vendor.let_in(1_000);
    };
    futures::join!(work, kill);
    let job = desk.show(id).await;
    assert_exact(&job);
    assert_eq!((job.state, job.reason.as_deref()), (PrefetchState::Killed, None));
    assert_eq!((job.progress.bought, job.progress.failed, job.partial()), (400, 100, true));
    assert_eq!(desk.stock.units().await, 400);
    assert!(vendor.posts().len() == 5 && vendor.posts().values().all(|times| *times == 1), "{:?}", vendor.posts());
    vendor.assert_sold_once(4);
    desk.finish().await;
}

#[tokio::test]
async fn a_killed_job_waits_until_it_is_known_what_was_bought() {
    let vendor = Vendor::start(1, 5_000, None).await;
    let desk = Desk::with(&[&vendor], |config| config.prefetch.concurrency = 2).await;
    // One was bought and one was not; the vendor says neither.
    vendor.meet([Fault::AnswerLost, Fault::Swallowed]);
    let id = desk.job(1_000, vec![vendor.candidate(0)]).await;
    let work = async { desk.prefetch.work(&CancellationToken::new()).await.unwrap() };
    let silence = async {
        eventually("two orders are under way", || async { vendor.posts().len() == 2 }).await;
        vendor.silent(true);
        desk.prefetch.kill(ADMIN, id).await.unwrap();
    };
    futures::join!(work, silence);
    let waiting = desk.show(id).await;
    assert_eq!((waiting.state, waiting.progress.under_way), (PrefetchState::Running, 200));
    vendor.silent(false);
    let job = desk.ended(id).await;
    assert_eq!((job.state, job.progress.bought, job.progress.failed), (PrefetchState::Killed, 100, 100));
    let states: Vec<BatchState> = job.batches.iter().map(|batch| batch.state).collect();
    assert!(states.contains(&BatchState::Stocked) && states.contains(&BatchState::Refused), "{states:?}");
    assert!(vendor.posts().values().all(|times| *times == 1), "a killed job orders nothing again");
    assert_eq!(desk.stock.units().await, 100);
    desk.finish().await;
}
