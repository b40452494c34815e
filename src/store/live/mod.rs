//! Redis, spoken of as the live sale.
//!
//! While a sale is live this is not a cache: it is the store that decides. Every decision is one Lua script, every call
//! has a deadline, and a call that ran out of time has an unknown outcome that the caller must be told of.

mod bookings;
mod catalogue;
mod durability;
pub mod keys;
mod opening;
mod project;
mod remove;
mod replicas;
mod reserve;
pub mod scripts;
mod server;
mod transition;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use secrecy::ExposeSecret;
use tokio::sync::Semaphore;

pub use bookings::{BookingRead, StoredBooking};
pub use durability::{Promise, Shortfall};
pub use opening::OpeningToken;
pub use project::Projected;
pub use remove::Removed;
pub use server::{AppendFsync, ServerFacts};
pub use transition::Transitioned;

use crate::config::{self, Durability};
use crate::error::{Dependency, Error, Result};
use keys::Keys;
use scripts::{Reply, Scripts};

/// The live store.
pub struct Live {
    keys: Keys,
    scripts: Scripts,
    connections: Vec<ConnectionManager>,
    next: AtomicUsize,
    deadline: Duration,
    purchase_deadline: Duration,
    purchase_wait: Duration,
    /// Purchases at Redis at once. Fair: whoever came first goes first.
    purchase_turns: Semaphore,
    /// One for each turn if purchases wait for replicas; otherwise none, and purchases share the others.
    waiting_connections: Vec<ConnectionManager>,
    next_waiting: AtomicUsize,
    promise: Promise,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Live {
    /// Connects and loads every script.
    ///
    /// # Errors
    /// When the server does not answer within the deadline.
    pub async fn connect(config: &config::Live) -> Result<Self> {
        let client = redis::Client::open(config.url.expose_secret())
            .map_err(|error| Error::unavailable(Dependency::LiveStore, "reading live.url", error))?;
        let deadline = Duration::from_millis(config.deadline_ms);
        // The driver's own timeout is only a backstop; each call below brings its own deadline.
        let settings = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(deadline))
            .set_response_timeout(Some(deadline))
            .set_max_delay(Duration::from_secs(1))
            .set_number_of_retries(usize::MAX);
        let connect = |_| {
            client
                .get_connection_manager_lazy(settings.clone())
                .map_err(|error| Error::unavailable(Dependency::LiveStore, "connecting", error))
        };
        let connections = (0..config.connections).map(connect).collect::<Result<_>>()?;
        let waiting = if config.durability == Durability::Replicas { config.purchases_in_flight_max } else { 0 };
        let waiting_connections = (0..waiting).map(connect).collect::<Result<_>>()?;
        let live = Self {
            keys: Keys::new(&config.key_prefix),
            scripts: Scripts::new(),
            connections,
            next: AtomicUsize::new(0),
            deadline,
            purchase_deadline: Duration::from_millis(config.purchase_deadline_ms),
            purchase_wait: Duration::from_millis(config.purchase_wait_ms),
            purchase_turns: Semaphore::new(config.purchases_in_flight_max),
            waiting_connections,
            next_waiting: AtomicUsize::new(0),
            promise: Promise::from(config),
        };
        live.load_scripts().await?;
        Ok(live)
    }

    /// The keys of this installation.
    #[must_use]
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Loads every script, so that the first buyer does not wait for it.
    ///
    /// # Errors
    /// When the server does not answer within the deadline.
    pub async fn load_scripts(&self) -> Result<()> {
        for script in self.scripts.all() {
            let mut connection = self.connection();
            self.within("loading scripts", script.load_async(&mut connection)).await?;
        }
        Ok(())
    }

    /// Asks for an answer on every connection. A connection that broke while nobody used it is made anew here, so that no
    /// buyer has to find out.
    ///
    /// # Errors
    /// When one of them does not answer within the deadline.
    pub async fn ping(&self) -> Result<()> {
        let ping = |connection: &ConnectionManager| {
            let mut connection = connection.clone();
            let call = async move { redis::cmd("PING").query_async::<String>(&mut connection).await };
            self.within("pinging the live store", call)
        };
        let all = self.connections.iter().chain(&self.waiting_connections);
        futures::future::try_join_all(all.map(ping)).await.map(drop)
    }

    /// Connections are multiplexed; spreading calls over a few of them uses more than one core on the way.
    fn connection(&self) -> ConnectionManager {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        self.connections[index].clone()
    }

    /// `WAIT` holds up what comes behind it on its connection, so a purchase that waits for replicas has one that is free:
    /// there are as many as there are turns, and they take turns as well. A replica that stalls costs each buyer one wait,
    /// and nobody else anything.
    fn waiting_connection(&self) -> ConnectionManager {
        let index = self.next_waiting.fetch_add(1, Ordering::Relaxed) % self.waiting_connections.len();
        self.waiting_connections[index].clone()
    }

    async fn within<T>(&self, doing: &'static str, call: impl Future<Output = redis::RedisResult<T>>) -> Result<T> {
        within(self.deadline, doing, call).await
    }

    async fn invoke(&self, doing: &'static str, call: &redis::ScriptInvocation<'_>) -> Result<Reply> {
        let parts = self.within(doing, scripts::run(call, self.connection())).await?;
        Ok(Reply::new(doing, parts))
    }
}

async fn within<T>(
    deadline: Duration,
    doing: &'static str,
    call: impl Future<Output = redis::RedisResult<T>>,
) -> Result<T> {
    match tokio::time::timeout(deadline, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(fault(doing, error)),
        Err(_) => Err(Error::timed_out(Dependency::LiveStore, doing)),
    }
}

/// A value of the wrong type can only be damage; everything else is the server being away, busy, full or read-only.
fn fault(doing: &'static str, error: redis::RedisError) -> Error {
    let damaged = matches!(error.kind(), redis::ErrorKind::UnexpectedReturnType | redis::ErrorKind::Parse)
        || error.to_string().contains("WRONGTYPE");
    if damaged {
        return Error::Damaged { doing, detail: error.to_string() };
    }
    Error::unavailable(Dependency::LiveStore, doing, error)
}
