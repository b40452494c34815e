//! Buyers who pay at the gateway: in time, late, in vain, another amount, or never; and the callbacks that tell of it, which
//! come late, twice, in any order, or not at all.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use orbit::sale::ReservationRef;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{sleep, timeout};

use super::buyer::{ATTEMPTS_MAX, Buyer};
use super::process::{Directory, listening};
use crate::ledger::SharedLedger;

/// Nobody waits longer for a process: it may be dead.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the gateway repeats a callback that nobody has acknowledged.
const REPEATS_MAX: u32 = 20;

impl Buyer {
    /// Some get what they pay with at once, and pay with it when the hold has long run out.
    pub(super) async fn pay_at_the_gateway(&mut self, of: &ReservationRef, wait: Duration) {
        let mut intent = None;
        if self.random.random_bool(0.7) {
            intent = self.ask_to_pay(of).await;
        }
        sleep(wait).await;
        if intent.is_none() {
            intent = self.ask_to_pay(of).await;
        }
        let Some(intent) = intent else { return };
        let callbacks = self.at_the_gateway(&intent);
        join_all(callbacks.into_iter().map(Callback::deliver)).await;
    }

    /// The name of the intent, if there is something to pay.
    async fn ask_to_pay(&mut self, of: &ReservationRef) -> Option<String> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(process) = self.find() {
                match timeout(PATIENCE, process.pay(of)).await {
                    Ok(Ok(asked)) => return Some(asked.intent),
                    Ok(Err(error)) if !error.retryable() => return None,
                    _ => {}
                }
            }
            sleep(Duration::from_millis(self.random.random_range(50..800))).await;
        }
        None
    }

    /// What the buyer does there, and the callbacks that follow from it.
    fn at_the_gateway(&mut self, intent: &str) -> Vec<Callback> {
        let mut till = self.till.lock().unwrap();
        let mut told = Vec::new();
        if self.random.random_bool(0.02) {
            till.cancel(intent);
        }
        if self.random.random_bool(0.3) {
            told.push(till.decline(intent));
        }
        let off = if self.random.random_bool(0.04) { [-1, 1][self.random.random_range(0..2)] } else { 0 };
        if let Some(number) = till.pay(intent, off) {
            self.ledger.lock().unwrap().note(format!("{intent} is paid"));
            let times = [0, 1, 1, 1, 1, 1, 2, 2][self.random.random_range(0..8)];
            told.extend(std::iter::repeat_n(number, times));
        }
        drop(till);
        told.into_iter().map(|number| self.callback(number)).collect()
    }

    fn callback(&mut self, number: usize) -> Callback {
        let delay_ms = if self.random.random_bool(0.6) { 20 } else { 3_000 };
        Callback {
            directory: Arc::clone(&self.directory),
            ledger: Arc::clone(&self.ledger),
            number,
            delay: Duration::from_millis(self.random.random_range(0..delay_ms)),
            random: StdRng::seed_from_u64(self.random.random()),
        }
    }
}

/// A callback on its way.
struct Callback {
    directory: Directory,
    ledger: SharedLedger,
    number: usize,
    delay: Duration,
    random: StdRng,
}

impl Callback {
    /// It is repeated until a process has dealt with it, at whichever listens.
    async fn deliver(mut self) {
        sleep(self.delay).await;
        for _ in 0..REPEATS_MAX {
            if let Some(process) = listening(&self.directory, &mut self.random)
                && let Ok(Ok(received)) = timeout(PATIENCE, process.receive(self.number)).await
            {
                let number = self.number;
                return self.ledger.lock().unwrap().note(format!("callback {number}: {received:?}"));
            }
            sleep(Duration::from_millis(self.random.random_range(200..2_000))).await;
        }
    }
}
