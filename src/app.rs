//! The application: owned handles to every store and use case, and how it starts.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

use crate::accounts::Accounts;
use crate::auth::limits::AttemptLimits;
use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::domain::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::http::router;
use crate::http::serve::{Limits, Running, serve};
use crate::idempotency::Idempotency;
use crate::payment::{self, Payments};
use crate::reports::Reports;
use crate::sale::Sale;
use crate::store::live::Live;
use crate::store::media::Media;
use crate::store::mongo::Mongo;
use crate::task::Tracker;
use crate::vouchers::Vouchers;
use crate::vouchers::prefetch::{Connections, Prefetch};
use crate::webhooks::Webhooks;

const PING_INTERVAL: Duration = Duration::from_millis(250);
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// One process of the service.
#[derive(Debug)]
pub struct App {
    config: Config,
    live: Arc<Live>,
    mongo: Arc<Mongo>,
    media: Arc<Media>,
    clock: Arc<dyn Clock>,
    accounts: Arc<Accounts>,
    catalogue: Arc<Catalogue>,
    sale: Arc<Sale>,
    payments: Arc<Payments>,
    reports: Reports,
    webhooks: Arc<Webhooks>,
    vouchers: Arc<Vouchers>,
    connections: Arc<Connections>,
    prefetch: Arc<Prefetch>,
    idempotency: Idempotency,
    limits: Arc<AttemptLimits>,
    tasks: Tracker,
}

impl std::fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl App {
    /// Connects to every store.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn connect(config: Config) -> Result<Self> {
        Self::connect_with_clock(config, Arc::new(SystemClock)).await
    }

    /// As [`Self::connect`], with a clock of the caller's.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn connect_with_clock(config: Config, clock: Arc<dyn Clock>) -> Result<Self> {
        let live = Arc::new(Live::connect(&config.live).await?);
        let mongo = Arc::new(Mongo::connect(&config.mongo).await?);
        let media = Arc::new(Media::connect(&config.media).await?);
        let accounts = Arc::new(Accounts::new(Arc::clone(&mongo), Arc::clone(&clock), &config)?);
        let (m, l, d, c) = (Arc::clone(&mongo), Arc::clone(&live), Arc::clone(&media), Arc::clone(&clock));
        let catalogue = Arc::new(Catalogue::new(m, l, d, c, &config.media));
        let process = uuid::Uuid::new_v4().simple().to_string();
        let named = process.clone();
        let stores = (Arc::clone(&mongo), Arc::clone(&live));
        let vouchers = Arc::new(Vouchers::new(stores, Arc::clone(&clock), &config, process.clone())?);
        let sale = Sale::new(Arc::clone(&live), Arc::clone(&mongo), Arc::clone(&clock), &config, named);
        let sale = sale.with_codes(Arc::<Vouchers>::clone(&vouchers));
        let sale = Arc::new(sale.charging(payment::price_rule(config.payment.gateway)));
        let stores = (Arc::clone(&mongo), Arc::clone(&live), Arc::clone(&sale));
        let payments = Arc::new(Payments::new(stores, Arc::clone(&clock), &config, process)?);
        let connections = Arc::new(Connections::new(Arc::clone(&mongo), Arc::clone(&clock), &config)?);
        let (m, v, s, c) = (Arc::clone(&mongo), Arc::clone(&connections), Arc::clone(&vouchers), Arc::clone(&clock));
        let prefetch = Arc::new(Prefetch::new(m, v, s, c, &config));
        let reports = Reports::new(Arc::clone(&mongo));
        let webhooks = Arc::new(Webhooks::new(Arc::clone(&mongo), Arc::clone(&clock), &config)?);
        let idempotency = Idempotency::new(Arc::clone(&mongo), Arc::clone(&clock), &config)?;
        let limits = Arc::new(AttemptLimits::new(&config.auth));
        let tasks = Tracker::new();
        Ok(Self {
            config,
            live,
            mongo,
            media,
            clock,
            accounts,
            catalogue,
            sale,
            payments,
            reports,
            webhooks,
            vouchers,
            connections,
            prefetch,
            idempotency,
            limits,
            tasks,
        })
    }

    /// Connects, migrates, makes the configured administrator, starts the background work, and serves.
    ///
    /// # Errors
    /// When a store does not answer, a migration fails, or a port is taken.
    pub async fn start(config: Config) -> Result<Running> {
        Self::start_with_clock(config, Arc::new(SystemClock)).await
    }

    /// As [`Self::start`], with a clock of the caller's.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with_clock(config: Config, clock: Arc<dyn Clock>) -> Result<Running> {
        let app = Arc::new(Self::connect_with_clock(config, clock).await?);
        app.report_durability().await?;
        app.prepare().await?;
        app.start_background().await?;
        app.listen().await
    }

    /// Everything that must be true of the stores before serving. Idempotent.
    ///
    /// # Errors
    /// When a migration fails or the administrator cannot be made.
    pub async fn prepare(&self) -> Result<()> {
        for id in self.mongo.migrate().await? {
            tracing::info!(migration = %id, "migration applied");
        }
        self.accounts.bootstrap_admin(self.config.auth.password_chars_min).await
    }

    /// What a crash can lose is said at each start, and whether the server is worse than that.
    async fn report_durability(&self) -> Result<()> {
        let level = self.live.promise().level;
        tracing::info!(level = level.as_str(), at_risk = level.at_risk(), "durability");
        if let Some(problem) = self.live.unsafe_for_sales().await? {
            tracing::warn!(level = level.as_str(), %problem, "durability is not kept: no sale opens on this live store");
        }
        Ok(())
    }

    async fn start_background(&self) -> Result<()> {
        let newest_ms = self.accounts.load_revocations().await?;
        let tasks = || self.tasks.clone();
        self.tasks.spawn(Arc::clone(&self.accounts).keep_reading_revocations(tasks(), newest_ms));
        recognise(&self.live, &self.sale).await?;
        self.tasks.spawn(Arc::clone(&self.sale).keep_draining(tasks()));
        self.tasks.spawn(Arc::clone(&self.sale).keep_sweeping(tasks()));
        self.tasks.spawn(Arc::clone(&self.sale).keep_schedule(tasks()));
        self.tasks.spawn(Arc::clone(&self.sale).keep_recovering(tasks()));
        self.tasks.spawn(Arc::clone(&self.payments).keep_reconciling(tasks()));
        self.tasks.spawn(Arc::clone(&self.vouchers).keep_reconciling(tasks()));
        self.tasks.spawn(Arc::clone(&self.prefetch).keep_prefetching(tasks()));
        self.tasks.spawn(Arc::clone(&self.catalogue).keep_sweeping_pictures(tasks()));
        self.tasks.spawn(Arc::clone(&self.webhooks).keep_delivering(tasks()));
        self.tasks.spawn(keep_connected(Arc::clone(&self.live), Arc::clone(&self.sale), tasks()));
        self.tasks.spawn(keep_limits_small(Arc::clone(&self.limits), tasks()));
        Ok(())
    }

    async fn listen(self: Arc<Self>) -> Result<Running> {
        let recorder = crate::telemetry::metrics::recorder();
        let limits = Limits::from(&self.config.server);
        let listener = bind(&self.config.server.host, self.config.server.port).await?;
        let address = local(&listener)?;
        let (api, _) = router::build(AppState(Arc::clone(&self)));
        let mut metrics_address = None;
        if let Some(recorder) = recorder.filter(|_| self.config.metrics.enabled) {
            let listener = bind(&self.config.metrics.host, self.config.metrics.port).await?;
            metrics_address = Some(local(&listener)?);
            self.tasks.spawn(serve(listener, router::metrics(recorder), limits, self.tasks.clone()));
        }
        self.tasks.spawn(serve(listener, api, limits, self.tasks.clone()));
        tracing::info!(%address, metrics = ?metrics_address, "serving");
        Ok(Running { app: self, address, metrics_address })
    }

    /// The configuration that it runs with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The live store.
    #[must_use]
    pub const fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The durable store.
    #[must_use]
    pub const fn mongo(&self) -> &Arc<Mongo> {
        &self.mongo
    }

    /// Images.
    #[must_use]
    pub const fn media(&self) -> &Arc<Media> {
        &self.media
    }

    /// The time.
    #[must_use]
    pub const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// What can be done to accounts.
    #[must_use]
    pub const fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// What can be done to events and products.
    #[must_use]
    pub const fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// What can be done to a sale.
    #[must_use]
    pub const fn sale(&self) -> &Arc<Sale> {
        &self.sale
    }

    /// What can be done about the money for reservations.
    #[must_use]
    pub const fn payments(&self) -> &Arc<Payments> {
        &self.payments
    }

    /// Orders and analytics.
    #[must_use]
    pub const fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Telling sellers.
    #[must_use]
    pub const fn webhooks(&self) -> &Arc<Webhooks> {
        &self.webhooks
    }

    /// Vouchers.
    #[must_use]
    pub const fn vouchers(&self) -> &Arc<Vouchers> {
        &self.vouchers
    }

    /// How vendors of vouchers are reached.
    #[must_use]
    pub const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Buying vouchers ahead of orders.
    #[must_use]
    pub const fn prefetch(&self) -> &Arc<Prefetch> {
        &self.prefetch
    }

    /// Requests that are answered once.
    #[must_use]
    pub const fn idempotency(&self) -> &Idempotency {
        &self.idempotency
    }

    /// How often somebody may try to sign in.
    #[must_use]
    pub const fn limits(&self) -> &Arc<AttemptLimits> {
        &self.limits
    }

    /// Running work.
    #[must_use]
    pub const fn tasks(&self) -> &Tracker {
        &self.tasks
    }
}

/// A broken connection to the live store is noticed before a buyer needs it, and so is a server that was restarted or
/// replaced: nobody can buy from it until it is recognised.
async fn keep_connected(live: Arc<Live>, sale: Arc<Sale>, tasks: Tracker) {
    while tasks.pause(PING_INTERVAL).await {
        if let Err(error) = recognise(&live, &sale).await {
            tracing::warn!(error = %error, "the live store cannot be used");
        }
    }
}

async fn recognise(live: &Live, sale: &Sale) -> Result<()> {
    match live.ping().await? {
        Some(run) => sale.recognise(run).await,
        // Some links reach another run than others: it is being replaced this moment.
        None => Ok(()),
    }
}

async fn keep_limits_small(limits: Arc<AttemptLimits>, tasks: Tracker) {
    while tasks.pause(FORGET_INTERVAL).await {
        limits.forget_quiet();
    }
}

/// Connections that the kernel keeps while we accept others: a rush comes all at once.
const BACKLOG_CONNECTIONS_MAX: u32 = 4096;

async fn bind(host: &str, port: u16) -> Result<TcpListener> {
    let listener = async {
        let address = tokio::net::lookup_host((host, port)).await?.next();
        let address = address.ok_or_else(|| std::io::Error::other("the host has no address"))?;
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG_CONNECTIONS_MAX)
    };
    listener.await.map_err(|error| {
        Error::internal(
            "binding a port",
            format!("{host}:{port}: {error}; choose another with server.port or metrics.port"),
        )
    })
}

fn local(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|error| Error::internal("binding a port", error))
}

/// What handlers get.
#[derive(Debug, Clone)]
pub struct AppState(pub Arc<App>);

impl Deref for AppState {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}
