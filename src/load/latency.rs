//! How long purchases took, and how many were answered when.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::attempt::{Attempt, Outcome};

/// Width of a slice of the timeline.
pub const SLICE: Duration = Duration::from_millis(100);
/// More slices than this would not be readable, and would cost memory in a long run.
const SLICES_MAX: u128 = 600;

/// Latencies in microseconds, with three significant digits.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Counts these.
    #[must_use]
    pub fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut histogram = Histogram::new_with_bounds(1, 600_000_000, 3)
            .expect("one microsecond to ten minutes with three digits are bounds that a histogram accepts");
        for time in times {
            histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1));
        }
        Self(histogram)
    }

    /// The latency, in milliseconds, that this share of the purchases (0.99) did not exceed. 0 if there were none.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        if self.0.is_empty() { 0.0 } else { millis(self.0.value_at_quantile(share)) }
    }

    /// The longest one, in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        millis(self.0.max())
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Counts in so many classes from the shortest to the longest, each a constant factor wider than the one before:
    /// (upper bound in milliseconds, count).
    #[must_use]
    pub fn classes(&self, count: u32) -> Vec<(f64, u64)> {
        if self.0.is_empty() || count == 0 {
            return Vec::new();
        }
        #[expect(clippy::cast_precision_loss, reason = "bounds of a picture")]
        let (low, high) = (self.0.min().max(1) as f64, self.0.max().max(2) as f64);
        let factor = (high / low).max(1.01).powf(1.0 / f64::from(count));
        let mut classes: Vec<(f64, u64)> = (1..=count)
            .map(|number| (low * factor.powi(i32::try_from(number).unwrap_or(i32::MAX)) / 1000.0, 0))
            .collect();
        for step in self.0.iter_recorded() {
            let value = millis(step.value_iterated_to());
            let class = classes.partition_point(|(bound, _)| *bound < value).min(classes.len() - 1);
            classes[class].1 += step.count_at_value();
        }
        classes
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// A slice of the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Purchases accepted in it.
    pub accepted: u64,
    /// Purchases refused.
    pub refused: u64,
    /// Purchases without an answer that says which.
    pub failed: u64,
}

/// How many purchases were answered when, and how wide each slice is.
#[must_use]
pub fn timeline(attempts: &[Attempt]) -> (Duration, Vec<Slice>) {
    let measured = || attempts.iter().filter(|attempt| attempt.measured);
    let Some(last) = measured().map(|attempt| attempt.answered).max() else { return (SLICE, Vec::new()) };
    let widen = u32::try_from(last.as_nanos() / SLICE.as_nanos() / SLICES_MAX + 1).unwrap_or(u32::MAX);
    let width = SLICE.saturating_mul(widen);
    let index = |time: Duration| usize::try_from(time.as_nanos() / width.as_nanos()).unwrap_or(usize::MAX);
    let mut slices = vec![Slice::default(); index(last) + 1];
    for attempt in measured() {
        let slice = &mut slices[index(attempt.answered)];
        if attempt.asked_again || matches!(attempt.outcome, Outcome::Failed { .. }) {
            slice.failed += 1;
        } else if attempt.outcome.is_accepted() {
            slice.accepted += 1;
        } else {
            slice.refused += 1;
        }
    }
    (width, slices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_millis(times: impl Iterator<Item = u64>) -> Latencies {
        Latencies::of(times.map(Duration::from_millis))
    }

    fn attempt(answered_ms: u64, outcome: Outcome, measured: bool) -> Attempt {
        let answered = Duration::from_millis(answered_ms);
        let (arrived, sent) = (Duration::ZERO, Duration::ZERO);
        Attempt {
            buyer: 0,
            product: 0,
            key: String::new(),
            outcome,
            arrived,
            sent,
            answered,
            measured,
            asked_again: false,
        }
    }

    #[test]
    fn quantiles_are_within_the_three_digits() {
        let latencies = of_millis(1..=1000);
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (0.999, 999.0)] {
            let got = latencies.quantile_ms(share);
            assert!((got - expected).abs() <= expected / 500.0, "{share}: {got}");
        }
        assert!((latencies.max_ms() - 1000.0).abs() < 2.0);
        assert!(of_millis(std::iter::empty()).quantile_ms(0.99).abs() < f64::EPSILON);
    }

    #[test]
    fn every_purchase_is_in_one_class() {
        for times in [vec![5], vec![1, 2, 3, 900], (1..=500).collect()] {
            let count = times.len() as u64;
            let classes = of_millis(times.into_iter()).classes(40);
            assert_eq!(classes.iter().map(|(_, count)| count).sum::<u64>(), count);
            assert!(classes.is_sorted_by(|a, b| a.0 < b.0));
        }
        assert!(of_millis(std::iter::empty()).classes(40).is_empty());
    }

    #[test]
    fn the_timeline_counts_what_was_measured_in_its_slice() {
        let accepted =
            || Outcome::Accepted { reservation_id: String::new(), price: crate::load::amount::Amount::default() };
        let attempts = [
            attempt(0, accepted(), true),
            attempt(99, Outcome::SoldOut, true),
            attempt(100, accepted(), true),
            Attempt { asked_again: true, ..attempt(110, accepted(), true) },
            attempt(900, accepted(), false),
        ];
        let expected = vec![Slice { accepted: 1, refused: 1, failed: 0 }, Slice { accepted: 1, refused: 0, failed: 1 }];
        assert_eq!(timeline(&attempts), (SLICE, expected));
        let (width, slices) = timeline(&[attempt(600_000, accepted(), true)]);
        assert!(width > SLICE && slices.len() <= 601, "{width:?} {}", slices.len());
    }
}
