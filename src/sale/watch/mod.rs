//! Watching a sale: its stock and its status, for any number of listeners, at the cost of one look per tick.
//!
//! A process has one watcher for each event that somebody listens to. It looks four times a second at most and publishes
//! the newest [`State`] in a channel that holds one: who is slow finds the newest, and what came in between is gone. So
//! nothing is ever queued for a listener. The watcher ends when the sale has stopped, when nobody listens any more, or
//! with the application; a listener learns the end from its channel.

mod asked;
mod state;
mod watcher;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use state::{State, fingerprint};

use super::{Durable, Sale};
use crate::domain::event::Event;
use crate::domain::ids::{EventId, ProductId};
use crate::error::{Dependency, Error, Result};
use crate::store::live::link::Link;
use crate::task::Tracker;
use crate::telemetry::metrics::STREAMS;
use asked::Asked;
use watcher::Watcher;

/// A listener is told within this time what the sale looks like, or that the live store does not answer.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// What is published.
#[derive(Debug, Clone, Default)]
pub(super) struct Published {
    state: Option<Arc<State>>,
    /// Counts the times at which listeners who have nothing new are told that they are still listened to.
    beat: u64,
}

type Channel = Arc<watch::Sender<Published>>;

/// The watchers of this process.
pub(super) struct Watches {
    places: Arc<Semaphore>,
    running: Mutex<HashMap<EventId, Watch>>,
}

/// A running watcher.
#[derive(Clone)]
struct Watch {
    channel: Channel,
    asked: Arc<Asked>,
}

impl Watches {
    /// Watches for at most this many listeners.
    pub(super) fn new(listeners_max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(listeners_max)), running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<EventId, Watch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who listens to a sale. What it holds is given back when it is dropped.
pub struct Listener {
    channel: watch::Receiver<Published>,
    asked: Arc<Asked>,
    /// The products that it asks for; `None` is the whole sale.
    pub selection: Option<Vec<ProductId>>,
    _place: OwnedSemaphorePermit,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    /// The newest state.
    #[must_use]
    pub fn newest(&mut self) -> Option<Arc<State>> {
        self.channel.borrow_and_update().state.clone()
    }

    /// Waits until there is something to say: a newer state, or the same one as a sign of life. False when it is over.
    pub async fn wait(&mut self) -> bool {
        self.channel.changed().await.is_ok()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.asked.take_back(self.selection.as_deref().unwrap_or_default());
        metrics::gauge!(STREAMS).decrement(1.0);
    }
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Listens to a sale: to all of it, or to some of its products. Of a sale with very many products only those that
    /// somebody asks for are watched.
    ///
    /// # Errors
    /// [`crate::error::Code::Overloaded`] beyond the most listeners, or products asked for, that a process takes; when the
    /// live store does not answer.
    pub async fn listen(
        self: &Arc<Self>,
        event: Event,
        selection: Option<Vec<ProductId>>,
        tasks: &Tracker,
    ) -> Result<Listener> {
        let full = |_| Error::timed_out(Dependency::Capacity, "listening to a sale");
        let place = Arc::clone(&self.watches.places).try_acquire_owned().map_err(full)?;
        let mut listener = self.join(event, selection, place, tasks)?;
        let first = listener.channel.wait_for(|published| published.state.is_some());
        let looked = tokio::time::timeout(FIRST_LOOK, first).await.is_ok_and(|first| first.is_ok());
        if looked { Ok(listener) } else { Err(Error::timed_out(Dependency::LiveStore, "watching a sale")) }
    }

    /// Joins the event's watcher, or starts it.
    fn join(
        self: &Arc<Self>,
        event: Event,
        selection: Option<Vec<ProductId>>,
        place: OwnedSemaphorePermit,
        tasks: &Tracker,
    ) -> Result<Listener> {
        let mut running = self.watches.running();
        let watch = running.get(&event.id).cloned();
        let found = watch.is_some();
        let watch = watch.unwrap_or_else(|| Watch { channel: Arc::default(), asked: Arc::default() });
        if !watch.asked.ask(selection.as_deref().unwrap_or_default()) {
            return Err(Error::timed_out(Dependency::Capacity, "listening to more products"));
        }
        metrics::gauge!(STREAMS).increment(1.0);
        let channel = watch.channel.subscribe();
        let listener = Listener { channel, asked: Arc::clone(&watch.asked), selection, _place: place };
        if !found {
            running.insert(event.id, watch.clone());
            let watcher = Watcher::new(Arc::clone(self), event, watch.channel, watch.asked);
            tasks.spawn(watcher.run(tasks.clone()));
        }
        Ok(listener)
    }

    /// Ends a watcher that nobody listens to; false if somebody does.
    fn leave_if_alone(&self, event: EventId, channel: &Channel) -> bool {
        let mut running = self.watches.running();
        let alone = channel.receiver_count() == 0;
        if alone {
            running.remove(&event);
        }
        alone
    }

    /// Ends a watcher, whoever listens: its channel closes, and the next listener starts another.
    fn leave(&self, event: EventId, channel: &Channel) {
        let mut running = self.watches.running();
        if running.get(&event).is_some_and(|watch| Arc::ptr_eq(&watch.channel, channel)) {
            running.remove(&event);
        }
    }
}
