//! Clocks that disagree: sessions are dated by this machine, reservations by Redis, and expiry in MongoDB by MongoDB.

use std::future::Future;

use super::Finding;
use crate::domain::clock::Clock;
use crate::error::Result;

const WARN_ABOVE_MS: i64 = 1_000;
const FAIL_ABOVE_MS: i64 = 5_000;

/// Compares a server's clock with this machine's. `None` if the server does not tell the time.
pub(super) async fn compare(
    check: &'static str,
    clock: &dyn Clock,
    ask: impl Future<Output = Result<Option<i64>>>,
) -> Option<Finding> {
    let before = clock.now().timestamp_millis();
    let theirs = match ask.await {
        Ok(theirs) => theirs?,
        Err(error) => return Some(Finding::fail(check, error.chain(), "see that the server answers")),
    };
    let after = clock.now().timestamp_millis();
    Some(judge(check, theirs, before, after))
}

/// The server's clock was read at some moment between the two of ours.
fn judge(check: &'static str, theirs: i64, before: i64, after: i64) -> Finding {
    let apart_ms = (before - theirs).max(theirs - after).max(0);
    let found = format!("at least {apart_ms} ms from this machine's");
    let advice = "run a time service (chrony, systemd-timesyncd) on both machines";
    if apart_ms > FAIL_ABOVE_MS {
        Finding::fail(check, found, advice)
    } else if apart_ms > WARN_ABOVE_MS {
        Finding::warn(check, found, advice)
    } else {
        Finding::ok(check, found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn the_time_that_the_answer_took_is_not_held_against_a_clock() {
        let verdict = |theirs| judge("clock", theirs, 10_000, 12_000).verdict;
        for fine in [9_000, 10_500, 12_000, 13_000] {
            assert_eq!(verdict(fine), Verdict::Ok, "{fine}");
        }
        assert_eq!((verdict(8_999), verdict(13_001)), (Verdict::Warn, Verdict::Warn));
        assert_eq!((verdict(5_000), verdict(17_000)), (Verdict::Warn, Verdict::Warn));
        assert_eq!((verdict(4_999), verdict(17_001)), (Verdict::Fail, Verdict::Fail));
    }
}
