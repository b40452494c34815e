//! A process of the service: the real use cases and background loops, over lines that break.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orbit::config::Config;
use orbit::domain::clock::Clock;
use orbit::error::Result;
use orbit::payment::{Asked, Payments, Received};
use orbit::sale::{Durable, KnownSale, ReservationRef, Sale};
use orbit::store::live::Live;
use orbit::task::Tracker;
use rand::RngExt;
use rand::rngs::StdRng;
use reqwest::header::HeaderMap;
use tokio::time::sleep;

use super::catalogue::Catalogue;
use crate::clock::WallClock;
use crate::durable::{SharedDatabase, SimDurable};
use crate::faults::Faults;
use crate::gateway::{SharedTill, SimGateway};
use crate::link::{SharedRedis, SimLink};
use crate::network::{Life, Line, Network};

const PING_INTERVAL: Duration = Duration::from_millis(600);
const PAUSE_BEFORE_RESTART: Duration = Duration::from_millis(300);

/// What there is outside of a process.
#[derive(Clone)]
pub struct Surroundings {
    pub config: Arc<Config>,
    pub network: Network,
    pub redis: SharedRedis,
    pub redis_faults: Faults,
    pub database: SharedDatabase,
    pub database_faults: Faults,
    pub till: SharedTill,
    pub gateway_faults: Faults,
    /// Whether the sale is paid for at the gateway.
    pub pays: bool,
}

/// A running process.
pub struct Process {
    pub sale: Arc<Sale<SimLink, SimDurable>>,
    pub payments: Arc<Payments<SimLink, SimDurable>>,
    pays: bool,
    live: Arc<Live<SimLink>>,
    durable: Arc<SimDurable>,
    life: Life,
    /// It has recognised the live store's server, and listens.
    ready: AtomicBool,
    tasks: Tracker,
}

impl Process {
    /// Starts one. It is ready when both stores have answered.
    pub fn start(around: &Surroundings, clock: WallClock, name: String) -> Arc<Self> {
        let life = Life::new();
        let line = |faults: &Faults| Line::new(around.network.clone(), faults.clone(), life.clone());
        let link = |_| SimLink::new(Arc::clone(&around.redis), line(&around.redis_faults));
        let links = (0..around.config.live.connections).map(link).collect();
        let live = Arc::new(Live::over(links, &around.config.live));
        let deadline = Duration::from_millis(around.config.mongo.deadline_ms);
        let database = Arc::clone(&around.database);
        let durable = Arc::new(SimDurable::new(database, line(&around.database_faults), deadline));
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let (at, named, config) = (Arc::clone(&clock), name.clone(), &around.config);
        let sale = Arc::new(Sale::new(Arc::clone(&live), Arc::clone(&durable), at, config, named));
        let deadline = Duration::from_millis(config.payment.deadline_ms);
        let gateway = SimGateway::new(Arc::clone(&around.till), line(&around.gateway_faults), deadline);
        let (stores, sold) = ((Arc::clone(&durable), Arc::clone(&live)), Arc::clone(&sale));
        let payments = Arc::new(Payments::over(stores, sold, Some(Arc::new(gateway)), clock, config, name));
        let (ready, tasks) = (AtomicBool::new(false), Tracker::new());
        let process = Arc::new(Self { sale, payments, pays: around.pays, live, durable, life, ready, tasks });
        process.tasks.spawn(Arc::clone(&process).run());
        process
    }

    async fn run(self: Arc<Self>) {
        // One that cannot start ends, and is started again.
        while self.prepare().await.is_err() {
            sleep(PAUSE_BEFORE_RESTART).await;
        }
        self.ready.store(true, Ordering::Relaxed);
        self.tasks.spawn(Arc::clone(&self.sale).keep_draining(self.tasks.clone()));
        self.tasks.spawn(Arc::clone(&self.sale).keep_sweeping(self.tasks.clone()));
        self.tasks.spawn(Arc::clone(&self.sale).keep_schedule(self.tasks.clone()));
        self.tasks.spawn(Arc::clone(&self.sale).keep_recovering(self.tasks.clone()));
        if self.pays {
            self.tasks.spawn(Arc::clone(&self.payments).keep_reconciling(self.tasks.clone()));
        }
        while self.tasks.pause(PING_INTERVAL).await {
            // Failures are seen where the answer is missed.
            drop(self.recognise().await);
        }
    }

    async fn prepare(&self) -> Result<()> {
        self.live.load_scripts().await?;
        self.recognise().await
    }

    async fn recognise(&self) -> Result<()> {
        match self.live.ping().await? {
            Some(run) => self.sale.recognise(run).await,
            None => Ok(()),
        }
    }

    /// A buyer asks to pay. It is done to its end even if the buyer does not wait.
    pub async fn pay(&self, of: &ReservationRef) -> Result<Asked> {
        let (payments, user, product, event) = (Arc::clone(&self.payments), of.user, of.product, of.event);
        self.tasks.complete("asking to pay", async move { payments.pay(user, product, event).await }).await
    }

    /// The gateway tells what it has under this number. It is dealt with to the end even if the gateway does not wait.
    pub async fn receive(&self, number: usize) -> Result<Received> {
        let payments = Arc::clone(&self.payments);
        let work = async move { payments.receive(&HeaderMap::new(), number.to_string().as_bytes()).await };
        self.tasks.complete("receiving a callback", work).await
    }

    /// Kills it where it stands.
    pub fn kill(&self) {
        self.life.end();
        self.tasks.shutdown().cancel();
    }

    /// Whether it lives and listens.
    pub fn listens(&self) -> bool {
        self.life.lasts() && self.ready.load(Ordering::Relaxed)
    }

    pub fn lives(&self) -> bool {
        self.life.lasts()
    }

    /// The sale, as a request to control it finds it.
    pub async fn known(&self, catalogue: &Catalogue) -> KnownSale {
        let event = self.durable.event(catalogue.id()).await;
        event.ok().flatten().map_or(KnownSale { id: catalogue.id(), phase: None }, |event| KnownSale::from(&event))
    }

    pub const fn durable(&self) -> &Arc<SimDurable> {
        &self.durable
    }
}

/// Where callers find the processes.
pub type Directory = Arc<Mutex<Vec<Arc<Process>>>>;

/// One of those that listen.
pub fn listening(directory: &Directory, random: &mut StdRng) -> Option<Arc<Process>> {
    let processes = directory.lock().unwrap();
    let listening: Vec<&Arc<Process>> = processes.iter().filter(|process| process.listens()).collect();
    let chosen = random.random_range(0..listening.len().max(1));
    listening.get(chosen).map(|process| Arc::clone(process))
}
