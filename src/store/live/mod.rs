//! Redis, spoken of as the live sale.
//!
//! While a sale is live this is not a cache: it is the store that decides. Every decision is one Lua script, every call
//! has a deadline, and a call that ran out of time has an unknown outcome that the caller must be told of.

mod acknowledge;
mod allocate;
mod bookings;
mod catalogue;
mod confirm;
mod counts;
mod durability;
mod hold;
mod journal;
pub mod keys;
mod levels;
pub mod link;
mod opening;
mod place;
mod pools;
mod project;
mod release;
mod remove;
mod replicas;
mod reserve;
mod restock;
mod restore;
pub mod scripts;
mod server;
mod transition;
mod yardstick;

use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::FromRedisValue;
use secrecy::ExposeSecret;
use tokio::sync::Semaphore;

pub use allocate::{Claimed, Claiming, OpenClaim};
pub use bookings::{BookingRead, StoredBooking};
pub use durability::{Promise, Shortfall};
pub use hold::Held;
pub use journal::{EntryRead, JournalBatch, JournalEntry};
pub use levels::Levels;
pub use opening::OpeningToken;
pub use place::{Placed, Placement};
pub use project::{Projected, Projecting};
pub use release::{HoldMember, Releasing};
pub use remove::Removed;
pub use restore::{Restored, Restoring};
pub use server::{AppendFsync, ServerFacts};
pub use transition::Transitioned;
pub use yardstick::Yardstick;

use crate::config::{self, Durability};
use crate::error::{Dependency, Error, Result};
use keys::Keys;
use link::{Link, ServerRun, TcpLink, Wire};
use scripts::{Reply, Scripts};

/// The live store.
pub struct Live<L = TcpLink> {
    keys: Keys,
    scripts: Scripts,
    links: Vec<L>,
    next: AtomicUsize,
    /// The run of the server that may decide purchases; zero is none.
    trusted: AtomicU64,
    deadline: Duration,
    purchase_deadline: Duration,
    purchase_wait: Duration,
    /// Purchases at Redis at once. Fair: whoever came first goes first.
    purchase_turns: Semaphore,
    /// One for each turn if purchases wait for replicas; otherwise none, and purchases share the others.
    waiting_links: Vec<L>,
    next_waiting: AtomicUsize,
    promise: Promise,
}

impl<L> std::fmt::Debug for Live<L> {
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
        crate::tls::install();
        let client = redis::Client::open(config.url.expose_secret())
            .map_err(|error| Error::unavailable(Dependency::LiveStore, "reading live.url", error))?;
        let deadline = Duration::from_millis(config.deadline_ms);
        let link = |_| TcpLink::new(client.clone(), deadline);
        let mut live = Self::over((0..config.connections).map(link).collect(), config);
        if config.durability == Durability::Replicas {
            live.waiting_links = (0..config.purchases_in_flight_max).map(link).collect();
        }
        live.load_scripts().await?;
        Ok(live)
    }
}

impl<L: Link> Live<L> {
    /// A live store over these links, of which there is at least one.
    #[must_use]
    pub fn over(links: Vec<L>, config: &config::Live) -> Self {
        Self {
            keys: Keys::new(&config.key_prefix),
            scripts: Scripts::new(),
            links,
            next: AtomicUsize::new(0),
            trusted: AtomicU64::new(0),
            deadline: Duration::from_millis(config.deadline_ms),
            purchase_deadline: Duration::from_millis(config.purchase_deadline_ms),
            purchase_wait: Duration::from_millis(config.purchase_wait_ms),
            purchase_turns: Semaphore::new(config.purchases_in_flight_max),
            waiting_links: Vec::new(),
            next_waiting: AtomicUsize::new(0),
            promise: Promise::from(config),
        }
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
            let load = async { script.load_async(&mut self.wire().await?).await };
            self.within("loading scripts", load).await?;
        }
        Ok(())
    }

    /// Asks for an answer over every link, and returns the run of the server if all of them reach the same. A connection
    /// that broke while nobody used it is made anew here, and one that does not answer is given up, so that no buyer has
    /// to find out.
    ///
    /// # Errors
    /// When one of them does not answer within the deadline.
    pub async fn ping(&self) -> Result<Option<ServerRun>> {
        let ping = async |link: &L| {
            let call = async {
                let mut wire = link.wire().await?;
                redis::cmd("PING").query_async::<String>(&mut wire).await?;
                Ok(wire.run())
            };
            self.within("pinging the live store", call).await.inspect_err(|_| link.give_up())
        };
        let all = self.links.iter().chain(&self.waiting_links);
        let runs = futures::future::try_join_all(all.map(ping)).await?;
        let first = runs.first().copied();
        Ok(first.filter(|first| runs.iter().all(|run| run == first)))
    }

    /// Lets this run of the server decide purchases. The caller has seen that it knows every durable order.
    pub fn trust(&self, run: ServerRun) {
        self.trusted.store(run.number(), Ordering::Release);
    }

    /// Whether this run of the server may decide purchases.
    #[must_use]
    pub fn trusts(&self, run: ServerRun) -> bool {
        self.trusted.load(Ordering::Acquire) == run.number()
    }

    /// Connections are multiplexed; spreading calls over a few of them uses more than one core on the way.
    async fn wire(&self) -> redis::RedisResult<L::Wire> {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.links.len();
        self.links[index].wire().await
    }

    /// `WAIT` holds up what comes behind it on its connection, so a purchase that waits for replicas has one that is free:
    /// there are as many as there are turns, and they take turns as well. A replica that stalls costs each buyer one wait,
    /// and nobody else anything.
    async fn waiting_wire(&self) -> redis::RedisResult<L::Wire> {
        let links = if self.waiting_links.is_empty() { &self.links } else { &self.waiting_links };
        links[self.next_waiting.fetch_add(1, Ordering::Relaxed) % links.len()].wire().await
    }

    async fn within<T>(&self, doing: &'static str, call: impl Future<Output = redis::RedisResult<T>>) -> Result<T> {
        within(self.deadline, doing, call).await
    }

    async fn query<T: FromRedisValue>(&self, doing: &'static str, call: &redis::Cmd) -> Result<T> {
        self.within(doing, async { call.query_async(&mut self.wire().await?).await }).await
    }

    async fn query_all<T: FromRedisValue>(&self, doing: &'static str, pipeline: &redis::Pipeline) -> Result<T> {
        self.within(doing, async { pipeline.query_async(&mut self.wire().await?).await }).await
    }

    async fn invoke(&self, doing: &'static str, call: &redis::ScriptInvocation<'_>) -> Result<Reply> {
        let parts = self.within(doing, async { scripts::run(call, self.wire().await?).await }).await?;
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
