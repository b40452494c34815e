//! The projector: streams a catalogue from MongoDB into Redis through a pool of workers.
//!
//! Memory is bounded whatever the size of the catalogue: the channel holds `channel_capacity` products and each worker
//! one batch. The first error is kept, stops the reader and the other workers, and fails the opening.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::config;
use crate::domain::ids::EventId;
use crate::domain::product::Product;
use crate::error::{Code, Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{Live, OpeningToken, Projected, Projecting};
use crate::store::mongo::products::ProductStream;
use crate::task::retry::Retry;

/// Writes every product of the stream under the token, and returns how many.
pub(super) async fn project<L: Link>(
    live: &Arc<Live<L>>,
    config: &config::Sale,
    event: EventId,
    with: Projecting,
    token: &OpeningToken,
    products: ProductStream,
) -> Result<u64> {
    let (sender, receiver) = mpsc::channel(config.channel_capacity);
    let worker = Worker {
        live: Arc::clone(live),
        event,
        with: Arc::new(with),
        token: token.clone(),
        products: Arc::new(Mutex::new(receiver)),
        batch_size_max: config.batch_size_max,
        ttl_ms: config.opening_ttl_ms,
        retry: Retry { attempts_max: config.attempts_max, pause: Duration::from_millis(config.retry_pause_ms) },
    };
    // Dropping the set aborts its workers: an opening that is cancelled leaves none behind.
    let mut workers = JoinSet::new();
    for _ in 0..config.workers {
        workers.spawn(worker.clone().run());
    }
    // The workers hold the only receivers: when they are gone, the reader's send fails and it stops.
    drop(worker);
    let reader = read(products, sender);
    let finish = async {
        let mut written = 0;
        while let Some(finished) = workers.join_next().await {
            written += finished.map_err(|panic| Error::internal("projecting", panic))??;
        }
        Ok::<u64, Error>(written)
    };
    let (read, written) = tokio::join!(reader, finish);
    let written = written?;
    read?;
    Ok(written)
}

/// Moves products from the database into the channel, as fast as the workers take them.
async fn read(mut products: ProductStream, sender: mpsc::Sender<Product>) -> Result<()> {
    while let Some(product) = products.next().await {
        if sender.send(product?).await.is_err() {
            // Every worker has stopped; their error says why.
            return Ok(());
        }
    }
    Ok(())
}

struct Worker<L> {
    live: Arc<Live<L>>,
    event: EventId,
    with: Arc<Projecting>,
    token: OpeningToken,
    products: Arc<Mutex<mpsc::Receiver<Product>>>,
    batch_size_max: usize,
    ttl_ms: u64,
    retry: Retry,
}

// Derived, it would ask that a link can be cloned.
impl<L> Clone for Worker<L> {
    fn clone(&self) -> Self {
        Self {
            live: Arc::clone(&self.live),
            event: self.event,
            with: Arc::clone(&self.with),
            token: self.token.clone(),
            products: Arc::clone(&self.products),
            batch_size_max: self.batch_size_max,
            ttl_ms: self.ttl_ms,
            retry: self.retry,
        }
    }
}

impl<L: Link> Worker<L> {
    async fn run(self) -> Result<u64> {
        let mut written = 0;
        loop {
            let batch = self.next_batch().await;
            if batch.is_empty() {
                return Ok(written);
            }
            let outcome =
                self.retry.run(|| self.live.project(self.event, &batch, &self.with, &self.token, self.ttl_ms)).await;
            match outcome {
                Ok(Projected::Written(count)) => {
                    metrics::counter!(crate::telemetry::metrics::PRODUCTS_PROJECTED).increment(count);
                    written += count;
                }
                Ok(Projected::TokenLost) => return Err(self.stop(lost()).await),
                Ok(Projected::Started(current)) => {
                    let attempted = crate::domain::sale::SaleStatus::Live;
                    return Err(self.stop(Error::Transition { current, attempted }).await);
                }
                Err(error) => return Err(self.stop(error).await),
            }
        }
    }

    /// A whole batch, or what is left. One worker fills at a time, so batches are full but for the last.
    async fn next_batch(&self) -> Vec<Product> {
        let mut products = self.products.lock().await;
        let mut batch = Vec::with_capacity(self.batch_size_max);
        while batch.len() < self.batch_size_max {
            let room = self.batch_size_max - batch.len();
            if products.recv_many(&mut batch, room).await == 0 {
                break;
            }
        }
        batch
    }

    /// Closes the channel: the reader stops at its next product, the other workers when they have written theirs.
    async fn stop(&self, error: Error) -> Error {
        let mut products = self.products.lock().await;
        products.close();
        while products.try_recv().is_ok() {}
        error
    }
}

pub(super) fn lost() -> Error {
    Error::refused(Code::OpeningInProgress, "another request took over opening this sale")
}
