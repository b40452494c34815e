//! Schedules: what happens, one thing after the other. A step carries everything that it needs, its own randomness
//! included, so that any step can be taken out of a schedule and the others still do the same.

use rand::RngExt;
use rand::rngs::StdRng;

use super::seller::Control;
use crate::faults::Rates;

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The seller does something, at this process.
    Control { process: usize, control: Control },
    /// So many buyers want so many units of one product.
    Buy { buyers: usize, product: usize, quantity: u32, keyed: bool, seed: u64 },
    /// The seller adds units to a product, or withdraws some, at this process. The same operation is the same restocking.
    Restock { process: usize, product: usize, units: i64, operation: u8 },
    /// The seller, or an administrator, cancels one of the reservations that were made, or a unit of it, at this process.
    Cancel { process: usize, which: usize, part: bool, as_administrator: bool },
    /// A process dies where it stands, and is started again after a while.
    Kill { process: usize, for_ms: u64 },
    /// Requests to Redis meet with this from now on.
    RedisFaults(Rates),
    /// Requests to the database meet with this from now on.
    DatabaseFaults(Rates),
    /// Requests to the payment gateway meet with this from now on.
    GatewayFaults(Rates),
    /// Redis refuses connections for a while.
    RedisAway { for_ms: u64 },
    /// The database refuses connections for a while.
    DatabaseAway { for_ms: u64 },
    /// The payment gateway refuses connections for a while.
    GatewayAway { for_ms: u64 },
    /// The payment gateway has no money to give back for a while.
    GatewayEmpty { for_ms: u64 },
    /// Redis is another process from now on: the same after a restart or, when something is lost, one that comes back
    /// without the end of its file, or a replica that lagged.
    RedisRestarts { lost_ms: u64 },
    /// Redis comes back empty.
    RedisWiped,
    /// Redis forgets its scripts.
    ScriptsFlushed,
    /// Redis has no memory left for a while.
    RedisFull { for_ms: u64 },
    /// A clock is set: of Redis, of the database, or of a process.
    ClockSet { machine: Machine, by_ms: i64 },
}

/// Whose clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    Redis,
    Database,
    Process(usize),
}

/// An action, and the time that passes before the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub action: Action,
    pub then_ms: u64,
}

/// How a schedule is made: some are calm but for what they do, in some every request may fail, and in some Redis loses
/// what it had.
struct Mood {
    processes: usize,
    stormy: bool,
    losing: bool,
    /// Buyers pay at the gateway, and more can go wrong.
    pays: bool,
    /// Of a hundred steps, those that are a purchase, or a control of this kind.
    buys: u32,
    controls: &'static [Control],
}

/// A schedule for so many processes: the sale is opened, runs, and is perhaps ended; things go wrong all the time, and also
/// with the money if buyers pay.
pub fn schedule(random: &mut StdRng, processes: usize, pays: bool) -> Vec<Step> {
    use Control::{End, Open, Pause, Resume};
    let (stormy, losing) = (random.random_bool(0.6), random.random_bool(0.4));
    let mood = |buys, controls| Mood { processes, stormy, losing, pays, buys, controls };
    let mut steps = Vec::new();
    let mut act = |random: &mut StdRng, first: Option<Control>, count: usize, mood: Mood| {
        let first = first.map(|control| Action::Control { process: random.random_range(0..processes), control });
        let count = random.random_range(0..=count);
        let more: Vec<Action> = (0..count).map(|_| action(random, &mood)).collect();
        steps.extend(first.into_iter().chain(more).map(|action| Step { action, then_ms: pause(random) }));
    };
    act(random, Some(Open), 4, mood(20, &[Open]));
    act(random, None, 14, mood(50, &[Open, Pause, Resume, Resume, Resume]));
    if random.random_bool(0.6) {
        act(random, Some(End), 6, mood(20, &[End, Resume, Open]));
    }
    steps
}

fn pause(random: &mut StdRng) -> u64 {
    match random.random_range(0..20) {
        0..=6 => random.random_range(0..5),
        7..=15 => random.random_range(1..200),
        16..=18 => random.random_range(200..1_000),
        _ => random.random_range(1_000..4_000),
    }
}

fn action(random: &mut StdRng, mood: &Mood) -> Action {
    let process = random.random_range(0..mood.processes);
    if random.random_range(0..100) < mood.buys {
        return buy(random);
    }
    let for_ms = random.random_range(100..3_000);
    match random.random_range(0..if mood.pays { 61 } else { 53 }) {
        0..=14 => Action::Control { process, control: mood.controls[random.random_range(0..mood.controls.len())] },
        15..=23 => Action::Kill { process, for_ms },
        24..=27 if mood.stormy => Action::RedisFaults(rates(random)),
        28..=31 if mood.stormy => Action::DatabaseFaults(rates(random)),
        32..=33 => Action::RedisAway { for_ms },
        34..=36 => Action::DatabaseAway { for_ms },
        37 => Action::RedisRestarts { lost_ms: 0 },
        38..=41 if mood.losing => Action::RedisRestarts { lost_ms: random.random_range(1..3_000) },
        42 if mood.losing => Action::RedisWiped,
        43..=44 => Action::ScriptsFlushed,
        50..=52 => restock(random, process),
        53..=55 => cancel(random, process),
        56..=57 if mood.stormy => Action::GatewayFaults(rates(random)),
        58 => Action::GatewayAway { for_ms },
        59 => Action::GatewayEmpty { for_ms },
        // Longer than anybody may have a payment in hand.
        60 => Action::ClockSet { machine: Machine::Process(process), by_ms: random.random_range(-40_000..40_000) },
        45..=46 => Action::RedisFull { for_ms },
        _ => Action::ClockSet { machine: machine(random, process), by_ms: random.random_range(-8_000..8_000) },
    }
}

fn buy(random: &mut StdRng) -> Action {
    Action::Buy {
        buyers: random.random_range(1..7),
        product: random.random_range(0..3),
        quantity: random.random_range(1..3),
        keyed: random.random_bool(0.5),
        seed: random.random(),
    }
}

fn restock(random: &mut StdRng, process: usize) -> Action {
    let units = if random.random_bool(0.5) { random.random_range(1..5) } else { random.random_range(-4..0) };
    Action::Restock { process, product: random.random_range(0..3), units, operation: random.random_range(0..4) }
}

fn cancel(random: &mut StdRng, process: usize) -> Action {
    Action::Cancel {
        process,
        which: random.random_range(0..64),
        part: random.random_bool(0.5),
        as_administrator: random.random_bool(0.5),
    }
}

fn machine(random: &mut StdRng, process: usize) -> Machine {
    match random.random_range(0..3) {
        0 => Machine::Redis,
        1 => Machine::Database,
        _ => Machine::Process(process),
    }
}

fn rates(random: &mut StdRng) -> Rates {
    let mut rate = |highest: f64| if random.random_bool(0.5) { 0.0 } else { random.random_range(0.0..highest) };
    Rates { request_lost: rate(0.2), reply_lost: rate(0.2), slow: rate(0.2), cut: rate(0.3) }
}
