//! A closed loop: so many connections, each of which asks as soon as it has been answered. It finds out how much a service can
//! do, and nothing about how long people would wait who come when they please; for that there is [`crate::load::steady`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::super::error::{ApiError, Result};
use super::wire::{Reply, Wire};

/// One request, and what was made of its answer.
#[derive(Debug)]
pub(super) struct Done<T> {
    pub number: usize,
    pub sent: Duration,
    pub answered: Duration,
    pub outcome: T,
}

/// What is asked, and how answers are read.
pub(super) trait Ask: Send + Sync + 'static {
    /// What is made of an answer.
    type Outcome: Send + 'static;

    /// Writes the request of this number.
    fn write(&self, number: usize, request: &mut Vec<u8>);

    /// Reads its answer, or what there was instead of one.
    fn read(&self, reply: std::io::Result<Reply<'_>>) -> Self::Outcome;
}

/// Connections that are open before the clock starts.
pub(super) struct Loop {
    wires: Vec<Wire>,
}

impl Loop {
    /// Opens them.
    ///
    /// # Errors
    /// When the service does not accept one.
    pub(super) async fn open(authority: &str, connections: usize, patience: Duration) -> Result<Self> {
        let mut wires: Vec<Wire> = (0..connections).map(|_| Wire::new(authority, patience)).collect();
        for wire in &mut wires {
            wire.open().await.map_err(|error| ApiError {
                doing: "connecting",
                status: 0,
                code: "connect_failed".to_owned(),
                message: error.to_string(),
                retry_after: None,
            })?;
        }
        Ok(Self { wires })
    }

    /// Asks the numbers of a range, each once, and returns them in their order.
    ///
    /// # Errors
    /// When a task breaks off.
    pub(super) async fn run<A: Ask>(
        &mut self,
        ask: Arc<A>,
        numbers: std::ops::Range<usize>,
    ) -> Result<Vec<Done<A::Outcome>>> {
        let next = Arc::new(AtomicUsize::new(numbers.start));
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for mut wire in self.wires.drain(..) {
            let (ask, next, end) = (Arc::clone(&ask), Arc::clone(&next), numbers.end);
            tasks.spawn(async move {
                let (mut done, mut request) = (Vec::new(), Vec::with_capacity(1024));
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return (wire, done);
                    }
                    request.clear();
                    ask.write(number, &mut request);
                    let sent = start.elapsed();
                    let reply = wire.call(&request).await;
                    let answered = start.elapsed();
                    done.push(Done { number, sent, answered, outcome: ask.read(reply) });
                }
            });
        }
        let mut all = Vec::with_capacity(numbers.len());
        while let Some(ended) = tasks.join_next().await {
            let (wire, done) = ended?;
            self.wires.push(wire);
            all.extend(done);
        }
        all.sort_unstable_by_key(|done| done.number);
        Ok(all)
    }
}
