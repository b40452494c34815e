//! What a Redis that is killed among purchases and comes back from its append-only file has lost, at each level. Each test
//! prints what it measured; `cargo test --test it sale::crashes -- --nocapture` shows it.

use std::time::Duration;

use orbit::config::Durability;
use orbit::supervisor::{AppendFsync, RedisServer};
use tokio::time::Instant;

use super::{load, without_hurry};
use crate::harness::{self, TestApp};

const UNITS: u32 = 3_000;
const ACKNOWLEDGED: usize = 1_500;

/// How many acknowledged reservations a kill has lost, and how long before it the oldest of them was acknowledged.
struct Loss {
    acknowledged: usize,
    lost: usize,
    oldest: Duration,
}

/// Kills Redis among purchases, starts it again on its append-only file, and sells what is left.
async fn kill_among_purchases(level: Durability, append_fsync: AppendFsync) -> Loss {
    let mut redis = RedisServer::start(harness::redis_options(append_fsync)).await.unwrap();
    let mut config = without_hurry(harness::config().await);
    config.live.url = redis.url().into();
    config.live.durability = level;
    let app = TestApp::with(config).await;
    let sale = app.live_sale(1, UNITS).await;

    let acknowledged = load::until_the_server_dies(&app, &sale, ACKNOWLEDGED, &mut redis).await;
    let killed = Instant::now();
    redis.restart().await.unwrap();
    load::until_it_sells_again(&app, &sale).await;

    let there = load::reservations(&app, &sale).await;
    let lost: Vec<_> = acknowledged.iter().filter(|made| !there.contains(&made.reservation)).collect();
    let oldest = lost.iter().map(|made| killed - made.at).max().unwrap_or_default();
    // Whatever was lost, what is left agrees with itself, and no unit of it is sold twice.
    load::sell_out(&app, &sale, UNITS as usize).await;
    let loss = Loss { acknowledged: acknowledged.len(), lost: lost.len(), oldest };
    eprintln!(
        "{}: {} of {} acknowledged reservations lost by a kill of Redis; the oldest {:?} old",
        level.as_str(),
        loss.lost,
        loss.acknowledged,
        loss.oldest
    );
    app.finish().await;
    loss
}

#[tokio::test]
async fn always_loses_no_acknowledged_reservation_when_redis_is_killed() {
    let loss = kill_among_purchases(Durability::Always, AppendFsync::Always).await;
    assert!(loss.acknowledged >= ACKNOWLEDGED);
    assert_eq!(loss.lost, 0);
}

/// The operating system has what Redis has written, and a kill takes nothing of that. But while the disk is busy with the
/// fsync of the last second, Redis answers and holds the next writes back, for up to two seconds: a kill takes those.
#[tokio::test]
async fn everysec_loses_at_most_the_last_two_seconds_when_redis_is_killed_and_sells_no_unit_twice() {
    const HELD_BACK_MAX: Duration = Duration::from_secs(2);
    // From the kill to our learning of it, on a busy machine.
    const SLACK: Duration = Duration::from_secs(3);
    let loss = kill_among_purchases(Durability::Everysec, AppendFsync::Everysec).await;
    assert!(loss.acknowledged >= ACKNOWLEDGED);
    assert!(loss.oldest <= HELD_BACK_MAX + SLACK, "{} lost, the oldest {:?} old", loss.lost, loss.oldest);
}
