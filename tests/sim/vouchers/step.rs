//! Schedules of vouchers.

use rand::RngExt;
use rand::rngs::StdRng;

use super::world::{CLIENTS, PROCESSES};
use crate::faults::Rates;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// Codes come in; the same ones again are duplicates.
    Import { process: usize, count: usize, first: u64, client: Option<u8> },
    /// A client orders; the same reference is the same order.
    Order { process: usize, client: u8, reference: u8, quantity: u32 },
    /// Some order is cancelled.
    Cancel { process: usize, order: usize },
    /// Some order is given other units.
    Reset { process: usize, order: usize },
    /// The codes of some order are shown.
    Look { process: usize, order: usize },
    /// Units are kept for a client, or let go of.
    Tag { process: usize, client: u8, quantity: u32, keep: bool },
    /// A unit is stopped, or goes on.
    Block { process: usize, unit: u64, stop: bool },
    /// A unit's expiry is corrected.
    Expire { process: usize, unit: u64, days: i64 },
    /// The pools are pumped.
    Pump { process: usize },
    /// A process dies where it stands, and another one starts.
    Kill { process: usize },
    /// Requests to Redis meet with this from now on.
    RedisFaults(Rates),
    /// Requests to the database meet with this from now on.
    BooksFaults(Rates),
    /// Redis writes its data set to a file.
    Remember,
    /// Redis comes back with its file, or empty.
    RedisLoses,
}

/// An action, and the time that passes before the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub action: Action,
    pub then_ms: u64,
}

pub fn schedule(random: &mut StdRng) -> Vec<Step> {
    let (stormy, losing) = (random.random_bool(0.6), random.random_bool(0.25));
    let count = random.random_range(10..35);
    let mut steps = vec![Step {
        action: Action::Import { process: 0, count: random.random_range(3..12), first: 1, client: None },
        then_ms: random.random_range(0..60),
    }];
    for _ in 0..count {
        let then_ms = match random.random_range(0..20) {
            0..=9 => random.random_range(0..6),
            10..=17 => random.random_range(5..150),
            18 => random.random_range(500..5_000),
            _ => random.random_range(20_000..40_000),
        };
        steps.push(Step { action: action(random, stormy, losing), then_ms });
    }
    steps
}

fn action(random: &mut StdRng, stormy: bool, losing: bool) -> Action {
    let (process, order) = (random.random_range(0..PROCESSES), random.random_range(0..8));
    let client = u8::try_from(random.random_range(0..CLIENTS)).unwrap();
    let unit = random.random_range(1..20);
    match random.random_range(0..42) {
        0..=11 => {
            Action::Order { process, client, reference: random.random_range(0..4), quantity: random.random_range(1..4) }
        }
        12..=17 => Action::Cancel { process, order },
        18..=19 => Action::Reset { process, order },
        20..=24 => Action::Look { process, order },
        25..=27 => Action::Tag { process, client, quantity: random.random_range(1..4), keep: random.random_bool(0.6) },
        28..=29 => Action::Block { process, unit, stop: random.random_bool(0.5) },
        30 => Action::Expire { process, unit, days: random.random_range(10..90) },
        31..=32 => Action::Import {
            process,
            count: random.random_range(1..5),
            first: random.random_range(1..25),
            client: random.random_bool(0.3).then_some(client),
        },
        33 => Action::Pump { process },
        34..=36 => Action::Kill { process },
        37 if stormy => Action::RedisFaults(rates(random)),
        38..=39 if stormy => Action::BooksFaults(rates(random)),
        40 if losing => Action::Remember,
        41 if losing => Action::RedisLoses,
        _ => Action::Look { process, order },
    }
}

fn rates(random: &mut StdRng) -> Rates {
    let mut rate = |highest: f64| if random.random_bool(0.5) { 0.0 } else { random.random_range(0.0..highest) };
    Rates { request_lost: rate(0.2), reply_lost: rate(0.2), slow: rate(0.2), cut: rate(0.3) }
}
