//! What came of a run: counts, latencies and invariants. [`Report::json`] is for programs, [`Report::table`] for people.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::attempt::{Attempt, Outcome};
use super::invariants::Check;
use super::latency::{Latencies, Slice, timeline};
use super::plan::{Plan, Scenario};

/// A distribution of latencies, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl Percentiles {
    fn of(latencies: &Latencies) -> Self {
        Self {
            p50_ms: rounded(latencies.quantile_ms(0.5)),
            p95_ms: rounded(latencies.quantile_ms(0.95)),
            p99_ms: rounded(latencies.quantile_ms(0.99)),
            p999_ms: rounded(latencies.quantile_ms(0.999)),
            max_ms: rounded(latencies.max_ms()),
        }
    }
}

/// Everything a run found. Serialised, it is the JSON object that the programs print.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Whether every invariant holds.
    pub ok: bool,
    /// What was played.
    pub scenario: &'static str,
    /// Accounts that bought.
    pub buyers: usize,
    /// Products on sale.
    pub products: usize,
    /// Units of each.
    pub units: u32,
    /// Decided who tried what.
    pub seed: u64,
    /// Purchases tried and measured. The five counts that follow add up to it.
    pub attempts: usize,
    /// Purchases that got a unit.
    pub accepted: usize,
    /// Purchases refused because nothing was left.
    pub sold_out: usize,
    /// Purchases refused because the buyer had one.
    pub already_booked: usize,
    /// Purchases refused because the sale did not run.
    pub not_active: usize,
    /// Purchases without any of these answers, after asking again.
    pub errors: usize,
    /// The errors, by code.
    pub errors_by_code: BTreeMap<String, usize>,
    /// Purchases whose outcome was unknown at first, so that the buyer asked again. They are in the counts, and in none of
    /// the speeds and latencies.
    pub asked_again: usize,
    /// Purchases accepted before the clock started, or when buyers came a second time; in no other number here.
    pub accepted_before: usize,
    /// Orders that the seller found after the end.
    pub orders: usize,
    /// From the start to the last answer.
    pub duration_ms: f64,
    /// Purchases answered at the first asking.
    pub answered: usize,
    /// Of those, per second, whatever the answer.
    pub purchases_per_s: f64,
    /// What the percentiles beside this count from: `sending` in a rush, `arrival` in an open loop.
    pub latency_from: &'static str,
    /// Latency of all answered purchases.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// Of the accepted ones; null if there were none.
    pub latency_accepted: Option<Percentiles>,
    /// Of the refused ones; null if there were none.
    pub latency_refused: Option<Percentiles>,
    /// From sending, of all.
    pub latency_since_sent: Percentiles,
    /// From the arrival of the buyer, of all: in a rush, from the common start.
    pub latency_since_arrival: Percentiles,
    /// How long the opening of the sale took.
    pub open_ms: f64,
    /// How long ending and settling took.
    pub settle_ms: f64,
    /// What must hold.
    pub invariants: Vec<Check>,
    /// For the chart.
    #[serde(skip)]
    pub latencies: Latencies,
    /// For the chart: width and slices.
    #[serde(skip)]
    pub timeline: (Duration, Vec<Slice>),
}

/// What a run measured besides its purchases.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// How long the opening took.
    pub open: Duration,
    /// How long the end took.
    pub settle: Duration,
    /// Orders found.
    pub orders: usize,
}

impl Report {
    /// Puts together what was found.
    #[must_use]
    pub fn new(plan: &Plan, attempts: &[Attempt], measured: Measured, invariants: Vec<Check>) -> Self {
        let timed: Vec<&Attempt> = attempts.iter().filter(|attempt| attempt.measured).collect();
        let count = |wanted: fn(&Outcome) -> bool| timed.iter().filter(|attempt| wanted(&attempt.outcome)).count();
        let mut errors_by_code = BTreeMap::new();
        for attempt in &timed {
            if let Outcome::Failed { code, .. } = &attempt.outcome {
                *errors_by_code.entry(code.clone()).or_insert(0) += 1;
            }
        }
        let answered = || timed.iter().filter(|a| !a.asked_again && !matches!(a.outcome, Outcome::Failed { .. }));
        let open_loop = !matches!(plan.scenario, Scenario::Rush | Scenario::Payment | Scenario::Voucher);
        let latency = |attempt: &&&Attempt| if open_loop { attempt.since_arrival() } else { attempt.since_sent() };
        let latencies = Latencies::of(answered().map(|attempt| latency(&attempt)));
        let of = |accepted: bool| {
            let chosen = answered().filter(|attempt| attempt.outcome.is_accepted() == accepted);
            Some(Latencies::of(chosen.map(|attempt| latency(&attempt))))
                .filter(|l| l.count() > 0)
                .map(|l| Percentiles::of(&l))
        };
        let duration = timed.iter().map(|attempt| attempt.answered).max().unwrap_or_default();
        Self {
            ok: invariants.iter().all(|check| check.ok),
            scenario: plan.scenario.as_str(),
            buyers: plan.buyers,
            products: plan.products,
            units: plan.units_each(),
            seed: plan.seed,
            attempts: timed.len(),
            accepted: count(Outcome::is_accepted),
            sold_out: count(|outcome| matches!(outcome, Outcome::SoldOut)),
            already_booked: count(|outcome| matches!(outcome, Outcome::AlreadyBooked)),
            not_active: count(|outcome| matches!(outcome, Outcome::NotActive)),
            errors: count(|outcome| matches!(outcome, Outcome::Failed { .. })),
            errors_by_code,
            asked_again: timed.iter().filter(|attempt| attempt.asked_again).count(),
            accepted_before: attempts.iter().filter(|a| !a.measured && a.outcome.is_accepted()).count(),
            orders: measured.orders,
            duration_ms: millis(duration),
            answered: answered().count(),
            purchases_per_s: per_second(answered().count(), duration),
            latency_from: if open_loop { "arrival" } else { "sending" },
            latency: Percentiles::of(&latencies),
            latency_accepted: of(true),
            latency_refused: of(false),
            latency_since_sent: Percentiles::of(&Latencies::of(answered().map(|attempt| attempt.since_sent()))),
            latency_since_arrival: Percentiles::of(&Latencies::of(answered().map(|a| a.since_arrival()))),
            open_ms: millis(measured.open),
            settle_ms: millis(measured.settle),
            invariants,
            latencies,
            timeline: timeline(attempts),
        }
    }

    /// The JSON object, in one line.
    #[must_use]
    pub fn json(&self) -> String {
        // Numbers, texts and lists: there is nothing here that JSON cannot hold.
        serde_json::to_string(self).unwrap_or_else(|error| format!(r#"{{"ok":false,"error":"{error}"}}"#))
    }
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

/// Three decimals: a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a count below 2^53")]
fn per_second(count: usize, duration: Duration) -> f64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 { (count as f64 / seconds * 10.0).round() / 10.0 } else { 0.0 }
}

#[cfg(test)]
#[path = "report_tests.rs"]
pub(super) mod tests;
