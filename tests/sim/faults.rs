//! What can happen to a request on its way to a server and back, drawn from a seed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How often requests meet with what.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// The request is lost: it is never executed.
    pub request_lost: f64,
    /// It is executed, and the reply is lost.
    pub reply_lost: f64,
    /// It arrives, or its reply does, after everybody's deadline.
    pub slow: f64,
    /// An operation on several things is done to some of them, and no reply comes.
    pub cut: f64,
}

/// One request's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Journey {
    pub there: Duration,
    pub back: Duration,
    pub loss: Loss,
}

/// What is lost, and how the sender learns of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    Request(Notice),
    Reply(Notice),
}

/// How the sender of something lost is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The connection breaks.
    Broken,
    /// Not at all.
    Silence,
}

/// The faults between processes and one server.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: StdRng,
    rates: Rates,
    down: bool,
}

impl Faults {
    /// None yet; what happens once there are rates depends on the seed.
    pub fn new(seed: u64) -> Self {
        let state = State { random: StdRng::seed_from_u64(seed), rates: Rates::default(), down: false };
        Self(Arc::new(Mutex::new(state)))
    }

    pub fn set_rates(&self, rates: Rates) {
        self.0.lock().unwrap().rates = rates;
    }

    /// A server that is down refuses every connection.
    pub fn set_down(&self, down: bool) {
        self.0.lock().unwrap().down = down;
    }

    /// Where an operation on several things stops in the middle, if it does.
    pub fn cut(&self, things: usize) -> Option<usize> {
        let mut state = self.0.lock().unwrap();
        let State { random, rates, .. } = &mut *state;
        (things > 1 && random.random_bool(rates.cut)).then(|| random.random_range(1..things))
    }

    /// What happens to the next request.
    pub fn journey(&self) -> Journey {
        let mut state = self.0.lock().unwrap();
        let State { random, rates, down } = &mut *state;
        if *down {
            let loss = Loss::Request(Notice::Broken);
            return Journey { there: Duration::from_micros(50), back: Duration::ZERO, loss };
        }
        // Ordinary journeys take their time on the way there: nobody can tell which way took it.
        let (mut there, mut back) = (Duration::from_micros(random.random_range(100..4_000)), Duration::ZERO);
        if random.random_bool(rates.slow) {
            let late = if random.random_bool(0.5) { &mut there } else { &mut back };
            *late += Duration::from_millis(random.random_range(100..4_000));
        }
        let notice = if random.random_bool(0.5) { Notice::Broken } else { Notice::Silence };
        let loss = if random.random_bool(rates.request_lost) {
            Loss::Request(notice)
        } else if random.random_bool(rates.reply_lost) {
            Loss::Reply(notice)
        } else {
            Loss::Nothing
        };
        Journey { there, back, loss }
    }
}
