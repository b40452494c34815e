//! Vouchers, simulated: the production allocation, placing, orders and repairs, over the production Lua, with faults.
//!
//! `ORBIT_SIM_SEEDS` and `ORBIT_SIM_SEED` are as for sales.

mod check;
mod fefo;
mod inventory;
mod planted;
mod step;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::seeds::{SEEDS, number};
use step::{Step, schedule};
use world::World;

/// Something that is wrong on purpose, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Some texts of the scripts are others.
    Script(&'static [(&'static str, &'static str)]),
    /// A unit is given to an item whatever has become of it.
    AssignmentIsNotGuarded,
    /// A unit is released from a state in which it is no more.
    ReleaseDoesNotCompare,
    /// A released unit is not marked as one that is to be placed.
    ReleaseIsNotMarked,
}

/// A schedule that breaks something.
#[derive(Debug)]
struct Found {
    seed: u64,
    steps: Vec<Step>,
    what: String,
}

fn play(seed: u64, steps: &[Step], bug: Option<Bug>) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed, bug);
        let verdict = world.play(steps).await;
        let history = std::mem::take(&mut world.history);
        verdict.map(|()| history)
    })
}

fn play_seed(seed: u64, bug: Option<Bug>) -> Result<Vec<String>, Found> {
    let steps = schedule(&mut StdRng::seed_from_u64(seed));
    play(seed, &steps, bug).map_err(|what| Found { seed, steps, what })
}

fn play_seeds(seeds: std::ops::Range<u64>, bug: Option<Bug>) -> Result<(), Found> {
    let (next, found) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds.end) {
                    if let Err(failed) = play_seed(seed, bug) {
                        next.store(seeds.end, Ordering::Relaxed);
                        found.lock().unwrap().push(failed);
                    }
                }
            });
        }
    });
    let first = found.into_inner().unwrap().into_iter().min_by_key(|found: &Found| found.seed);
    first.map_or(Ok(()), Err)
}

/// Takes steps out, one after the other, as long as it still fails.
fn shrink(mut found: Found, bug: Option<Bug>) -> Found {
    let mut from = 0;
    while from < found.steps.len() {
        let mut steps = found.steps.clone();
        steps.remove(from);
        match play(found.seed, &steps, bug) {
            Ok(_) => from += 1,
            Err(what) => found = Found { steps, what, ..found },
        }
    }
    found
}

#[test]
fn no_schedule_loses_a_voucher_or_sells_one_twice() {
    let seeds = match number("ORBIT_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ORBIT_SIM_SEEDS").unwrap_or(SEEDS),
    };
    if let Err(found) = play_seeds(seeds, None) {
        let found = shrink(found, None);
        let steps: Vec<String> =
            found.steps.iter().map(|step| format!("  {:?}, then {} ms", step.action, step.then_ms)).collect();
        panic!(
            "{}\n\nORBIT_SIM_SEED={} breaks it. The shortest schedule found:\n{}",
            found.what,
            found.seed,
            steps.join("\n")
        );
    }
}

#[test]
fn a_schedule_of_vouchers_has_one_outcome() {
    for seed in 0..10 {
        let played = [(); 2].map(|()| play_seed(seed, None).unwrap());
        assert!(played[0].len() > 5 && played[0] == played[1], "seed {seed}");
    }
}
