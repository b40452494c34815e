//! The network between processes and servers. What was sent travels on, whether or not its sender still lives or waits:
//! a request that its sender has given up is executed all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::faults::{Faults, Loss, Notice};

/// Longer than anybody waits for a reply.
const SILENCE: Duration = Duration::from_secs(60);

type Travelling = BoxFuture<'static, ()>;

/// Where requests are handed in.
#[derive(Debug, Clone)]
pub struct Network {
    departures: mpsc::UnboundedSender<Travelling>,
}

impl Network {
    /// The network, and what moves everything in it.
    pub fn new() -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (departures, requests) = mpsc::unbounded_channel();
        (Self { departures }, carry(requests))
    }

    async fn ask<T: Send + 'static>(&self, faults: &Faults, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let journey = faults.journey();
        let (reply, answer) = oneshot::channel();
        let travelling = async move {
            sleep(journey.there).await;
            let lost = match journey.loss {
                Loss::Request(notice) => notice,
                Loss::Reply(notice) => {
                    work();
                    notice
                }
                Loss::Nothing => {
                    let result = work();
                    if !journey.back.is_zero() {
                        sleep(journey.back).await;
                    }
                    // The sender may have given up.
                    drop(reply.send(result));
                    return;
                }
            };
            if lost == Notice::Silence {
                sleep(SILENCE).await;
            }
        };
        self.departures.send(Box::pin(travelling)).ok()?;
        answer.await.ok()
    }
}

async fn carry(mut requests: mpsc::UnboundedReceiver<Travelling>) {
    let mut travelling = FuturesUnordered::new();
    loop {
        // Biased, so that a seed has one outcome.
        tokio::select! {
            biased;
            request = requests.recv() => match request {
                Some(request) => travelling.push(request),
                None => return,
            },
            Some(()) = travelling.next() => {}
        }
    }
}

/// Whether a process lives. One that was killed sends nothing more and learns nothing more, wherever it was.
#[derive(Debug, Clone)]
pub struct Life(Arc<AtomicBool>);

impl Life {
    pub fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub fn lasts(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One process's way to one server.
#[derive(Debug, Clone)]
pub struct Line {
    network: Network,
    faults: Faults,
    life: Life,
}

impl Line {
    pub const fn new(network: Network, faults: Faults, life: Life) -> Self {
        Self { network, faults, life }
    }

    pub const fn network(&self) -> &Network {
        &self.network
    }

    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Has `work` done at the server's end, and brings its result back. `None` when the connection breaks: then the work
    /// may have been done or not.
    pub async fn ask<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.live().await;
        let answer = self.network.ask(&self.faults, work).await;
        self.live().await;
        answer
    }

    /// Never returns in a dead process.
    async fn live(&self) {
        if !self.life.lasts() {
            std::future::pending::<()>().await;
        }
    }
}
