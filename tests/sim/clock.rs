//! The time in the simulator: the paused time of the runtime, and a wall clock that can be set forward and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use orbit::domain::clock::Clock;
use tokio::time::Instant;

/// When every simulation begins: 2025-06-01T00:00:00Z.
pub const START_MS: i64 = 1_748_736_000_000;

/// A wall clock of one machine.
#[derive(Debug, Clone)]
pub struct WallClock {
    started: Instant,
    jumped_ms: Arc<AtomicI64>,
}

impl WallClock {
    pub fn new() -> Self {
        Self { started: Instant::now(), jumped_ms: Arc::default() }
    }

    /// Sets the clock forward, or back.
    pub fn jump(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        let passed = i64::try_from(self.started.elapsed().as_micros()).unwrap();
        (START_MS + self.jumped_ms.load(Ordering::Relaxed)) * 1000 + passed
    }
}

impl Clock for WallClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.now_us()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_clock_goes_with_the_runtime_and_jumps() {
    let clock = WallClock::new();
    let start = clock.now_us();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(clock.now_us() - start, 5_000_000);
    clock.jump(-60_000);
    assert_eq!(clock.now_us() - start, -55_000_000);
    assert_eq!(clock.now().timestamp_micros(), clock.now_us());
}
