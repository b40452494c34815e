//! A clock that the test moves forward.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use orbit::domain::clock::{Clock, SystemClock};

/// The machine's clock and what the test has added.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    /// Moves it forward.
    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + TimeDelta::seconds(self.0.load(Ordering::SeqCst))
    }
}
