//! Every seed is a schedule, and no schedule may break an invariant.
//!
//! `ORBIT_SIM_SEEDS=100000` plays more of them, `ORBIT_SIM_SEED=7` plays one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use orbit::domain::payment::PaymentOutcome;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::world::{Bug, Catalogue, Failure, Step, Story, play, schedule};

/// Seeds that are played by default.
pub const SEEDS: u64 = 1_000;

/// A schedule that breaks an invariant.
#[derive(Debug)]
pub struct Found {
    pub seed: u64,
    processes: usize,
    steps: Vec<Step>,
    failure: Failure,
}

impl Found {
    /// The invariant that does not hold.
    pub fn what(&self) -> &str {
        &self.failure.what
    }
}

/// What a seed stands for.
fn schedule_of(seed: u64) -> (usize, Vec<Step>) {
    let mut random = StdRng::seed_from_u64(seed);
    let processes = random.random_range(2..4);
    let pays = Catalogue::random(&mut StdRng::seed_from_u64(seed)).pays;
    (processes, schedule(&mut random, processes, pays))
}

fn play_seed(seed: u64, bug: Option<Bug>) -> Result<Story, Found> {
    let (processes, steps) = schedule_of(seed);
    play(seed, processes, &steps, bug).map_err(|failure| Found { seed, processes, steps, failure })
}

/// Plays these seeds on every core until one fails. Returns what came of them all; of a single one with its history.
///
/// # Errors
/// The failure with the lowest seed among those that were found at the same time.
pub fn play_seeds(seeds: std::ops::Range<u64>, bug: Option<Bug>) -> Result<Story, Found> {
    let single = seeds.end - seeds.start == 1;
    let (next, found, all) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()), Mutex::new(Story::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds.end) {
                    match play_seed(seed, bug) {
                        Ok(story) => all.lock().unwrap_or_else(PoisonError::into_inner).add(story, single),
                        Err(failed) => {
                            next.store(seeds.end, Ordering::Relaxed);
                            found.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
                        }
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let first = found.into_iter().min_by_key(|found: &Found| found.seed);
    first.map_or_else(|| Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner)), Err)
}

/// Takes steps out as long as it still fails: halves, quarters, and at last single ones.
fn shrink(mut found: Found, bug: Option<Bug>) -> Found {
    let mut size = found.steps.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < found.steps.len() {
            let mut steps = found.steps.clone();
            steps.drain(from..(from + size).min(steps.len()));
            match play(found.seed, found.processes, &steps, bug) {
                Ok(_) => from += size,
                Err(failure) => found = Found { steps, failure, ..found },
            }
        }
        if size == 1 {
            return found;
        }
        size = size.div_ceil(2);
    }
}

fn report(found: &Found) -> String {
    let steps: Vec<String> =
        found.steps.iter().map(|step| format!("  {:?}, then {} ms", step.action, step.then_ms)).collect();
    format!(
        "{}\n\nORBIT_SIM_SEED={} breaks it. The shortest schedule found, of {} processes:\n{}\n\nWhat happened:\n{}",
        found.failure.what,
        found.seed,
        found.processes,
        steps.join("\n"),
        found.failure.history.join("\n")
    )
}

/// A number in the environment.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
fn no_schedule_breaks_an_invariant() {
    let seeds = match number("ORBIT_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ORBIT_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let story = play_seeds(seeds.clone(), None).unwrap_or_else(|found| panic!("{}", report(&shrink(found, None))));
    for line in &story.history {
        eprintln!("{line}");
    }
    // What never happens is not tested.
    if seeds == (0..SEEDS) {
        assert!(story.reservations > 3_000 && story.lost_on_purpose > 20, "{story:?}");
        for kind in ["half_open", "mended", "rebuilt", "stopped_and_lost", "unfinished_end"] {
            assert!(story.repairs.contains_key(kind), "nothing was {kind}: {:?}", story.repairs);
        }
        let outcomes = PaymentOutcome::ALL.into_iter().map(PaymentOutcome::as_str);
        for outcome in outcomes.chain(["REFUNDED", "REFUNDED_IN_PART"]) {
            let often = story.payments.get(outcome).copied().unwrap_or_default();
            assert!(often > 0, "no payments were {outcome}: {:?}", story.payments);
        }
    }
}

#[test]
fn a_seed_has_one_outcome() {
    for seed in 0..20 {
        let histories = [(); 2].map(|()| play_seed(seed, None).unwrap().history);
        assert!(histories[0].len() > 5, "nothing happened");
        assert_eq!(histories[0], histories[1], "seed {seed}");
    }
}

#[test]
fn a_failing_schedule_is_shortened_and_fails_still() {
    let bug = Some(Bug::NoUniqueIndex);
    let found = play_seeds(0..SEEDS, bug).unwrap_err();
    let (what, length) = (found.what().to_owned(), found.steps.len());
    let found = shrink(found, bug);
    assert!(found.steps.len() < length && found.what().starts_with("invariant 7"), "{what}, {}", report(&found));
    assert!(play(found.seed, found.processes, &found.steps, bug).is_err());
}
