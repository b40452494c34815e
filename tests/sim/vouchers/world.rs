//! A world of vouchers: both stores, a few processes, clients and an administrator, on one thread whose time is paused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use chrono::TimeDelta;
use orbit::config::Config;
use orbit::domain::clock::Clock;
use orbit::domain::ids::{ClientId, UserId, VendorId, VoucherOrderId, VoucherProductId};
use orbit::domain::money::{Money, currency};
use orbit::domain::voucher::{Client, Secrets, UnitId, VoucherLine, VoucherProduct};
use orbit::store::live::Live;
use orbit::vouchers::{IncomingUnit, Vouchers};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::inventory::{Books, SimInventory};
use super::step::{Action, Step};
use super::{Bug, check};
use crate::clock::WallClock;
use crate::faults::{Faults, Rates};
use crate::link::{SharedRedis, SimLink};
use crate::network::{Life, Line, Network};
use crate::redis::{Redis, Snapshot};

/// Small and quick.
const SETTINGS: &str = r#"
[mongo]
deadline_ms = 2000
[live]
connections = 2
deadline_ms = 1000
[vouchers]
claim_ttl_ms = 4000
[auth]
jwt_secret = "nobody signs in here, and it is long enough"
[accounts]
data_key = "dGVzdHMgb25seTogMzIgYnl0ZXMgb2YgYSBrZXkhISE="
"#;

const RECONCILE_INTERVAL: Duration = Duration::from_millis(1_500);
/// Longer than anything that was under way: cancelled orders are looked at once more after half a minute.
const QUIET: Duration = Duration::from_secs(80);
pub const PROCESSES: usize = 2;
pub const CLIENTS: usize = 2;

type Service = Vouchers<SimLink, SimInventory>;

struct Process {
    vouchers: Arc<Service>,
    life: Life,
}

/// Everything that there is.
pub struct World {
    pub redis: SharedRedis,
    pub books: Arc<Mutex<Books>>,
    pub live: Arc<Live<SimLink>>,
    redis_faults: Faults,
    books_faults: Faults,
    network: Network,
    clock: WallClock,
    processes: Vec<Process>,
    people: JoinSet<()>,
    loops: JoinSet<()>,
    snapshot: Option<Snapshot>,
    /// The pools have lost units that only the pump brings back.
    lost: bool,
    pub history: Vec<String>,
    _moving: JoinSet<()>,
}

fn config() -> Arc<Config> {
    static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| Arc::new(Config::with_layer(SETTINGS).unwrap())))
}

pub fn id(number: u8) -> [u8; 12] {
    [number; 12]
}

/// What every voucher here is worth.
pub fn worth() -> Money {
    Money { minor: 2_500, currency: currency("USD").unwrap() }
}

fn books(clock: &WallClock, bug: Option<Bug>) -> Books {
    let created_at = clock.now();
    let product = VoucherProduct {
        id: VoucherProductId::from_bytes(id(1)),
        name: "Coffee".to_owned(),
        currency: worth().currency,
        denominations: vec![worth().minor],
        vendors: vec![VendorId::from_bytes(id(2)), VendorId::from_bytes(id(3))],
        created_at,
    };
    let client = |number: u8| Client {
        id: ClientId::from_bytes(id(10 + number)),
        name: format!("Client {number}"),
        members: Vec::new(),
        refuses: if number == 1 { vec![VendorId::from_bytes(id(3))] } else { Vec::new() },
        validity_days_min: None,
        created_at,
    };
    Books::new(product, vec![client(0), client(1)], bug)
}

impl World {
    pub fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let clock = WallClock::new();
        let now = clock.clone();
        let mut redis = Redis::new(Box::new(move || now.now_us() as u64));
        if let Some(Bug::Script(changes)) = bug {
            redis.patch_scripts(changes);
        }
        let (network, carrying) = Network::new();
        let mut moving = JoinSet::new();
        moving.spawn(carrying);
        let (redis, books) = (Arc::new(Mutex::new(redis)), Arc::new(Mutex::new(books(&clock, bug))));
        let calm = Line::new(network.clone(), Faults::new(seed), Life::new());
        let live = Arc::new(Live::over(vec![SimLink::new(Arc::clone(&redis), calm)], &config().live));
        let mut world = Self {
            redis,
            books,
            live,
            redis_faults: Faults::new(random.random()),
            books_faults: Faults::new(random.random()),
            network,
            clock,
            processes: Vec::new(),
            people: JoinSet::new(),
            loops: JoinSet::new(),
            snapshot: None,
            lost: false,
            history: Vec::new(),
            _moving: moving,
        };
        for number in 0..PROCESSES {
            let process = world.start(number);
            world.processes.push(process);
        }
        world
    }

    fn start(&mut self, number: usize) -> Process {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let (life, config) = (Life::new(), config());
        let line = |faults: &Faults| Line::new(self.network.clone(), faults.clone(), life.clone());
        let link = |_| SimLink::new(Arc::clone(&self.redis), line(&self.redis_faults));
        let live = Arc::new(Live::over((0..config.live.connections).map(link).collect(), &config.live));
        let deadline = Duration::from_millis(config.mongo.deadline_ms);
        let durable = Arc::new(SimInventory::new(Arc::clone(&self.books), line(&self.books_faults), deadline));
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let name = format!("process {number} {}", STARTED.fetch_add(1, Ordering::Relaxed));
        let vouchers = Arc::new(Vouchers::new((durable, live), clock, &config, name).unwrap());
        let (service, lives, books, clock) =
            (Arc::clone(&vouchers), life.clone(), Arc::clone(&self.books), self.clock.clone());
        self.loops.spawn(async move {
            while lives.lasts() {
                sleep(RECONCILE_INTERVAL).await;
                drop(service.reconcile_units().await);
                let due = books.lock().unwrap().due(clock.now());
                for order in due {
                    drop(service.finish_order(order).await);
                }
            }
        });
        Process { vouchers, life }
    }

    pub async fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            self.history.push(format!("{:?}", step.action));
            self.act(&step.action);
            sleep(Duration::from_millis(step.then_ms)).await;
            self.look()?;
        }
        self.settle().await
    }

    fn look(&self) -> Result<(), String> {
        if let Some(wrong) = &self.books.lock().unwrap().wrong {
            return Err(wrong.clone());
        }
        check::always(self)
    }

    fn service(&self, process: usize) -> Arc<Service> {
        Arc::clone(&self.processes[process].vouchers)
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Import { process, count, first, client } => self.import(process, count, first, client),
            Action::Order { process, client, reference, quantity } => self.order(process, client, reference, quantity),
            Action::Cancel { process, order } => self.with_order(process, order, |service, order, _| {
                Box::pin(async move { drop(service.cancel(&order, "played").await) })
            }),
            Action::Reset { process, order } => self.with_order(process, order, |service, order, _| {
                Box::pin(async move { drop(service.reset(order.id).await) })
            }),
            Action::Look { process, order } => self.with_order(process, order, |service, order, books| {
                Box::pin(async move {
                    if let Ok(shown) = service.show_codes(&order, UserId::from_bytes(id(99))).await {
                        books.lock().unwrap().shown.extend(shown.iter().map(|shown| shown.unit.id));
                    }
                })
            }),
            Action::Tag { process, client, quantity, keep } => {
                let (service, client) = (self.service(process), ClientId::from_bytes(id(10 + client)));
                let product = VoucherProductId::from_bytes(id(1));
                self.people.spawn(async move {
                    let done = if keep {
                        service.tag(product, worth(), client, quantity).await
                    } else {
                        service.untag(product, worth(), client, quantity).await
                    };
                    drop(done);
                });
            }
            Action::Block { process, unit, stop } => {
                let (service, unit) = (self.service(process), UnitId::new(unit));
                self.people.spawn(async move {
                    drop(if stop { service.block(unit).await } else { service.unblock(unit).await });
                });
            }
            Action::Expire { process, unit, days } => {
                let (service, at) = (self.service(process), self.clock.now() + TimeDelta::days(days));
                self.people.spawn(async move { drop(service.expire_at(UnitId::new(unit), at).await) });
            }
            Action::Pump { process } => {
                let service = self.service(process);
                self.people.spawn(async move { drop(service.pump_all().await) });
            }
            Action::Kill { process } => {
                self.processes[process].life.end();
                self.processes[process] = self.start(process);
            }
            Action::RedisFaults(rates) => self.redis_faults.set_rates(rates),
            Action::BooksFaults(rates) => self.books_faults.set_rates(rates),
            Action::Remember => self.snapshot = Some(self.redis.lock().unwrap().snapshot()),
            Action::RedisLoses => self.lose(),
        }
    }

    /// Redis comes back with what it remembered, or empty.
    fn lose(&mut self) {
        let snapshot = self.snapshot.take().unwrap_or_default();
        self.redis.lock().unwrap().restart_with(snapshot);
        self.lost = true;
    }

    fn import(&mut self, process: usize, count: usize, first: u64, client: Option<u8>) {
        let (service, now) = (self.service(process), self.clock.now());
        let unit = |number: u64| IncomingUnit {
            product: VoucherProductId::from_bytes(id(1)),
            denomination: worth(),
            vendor: VendorId::from_bytes(id(2 + u8::try_from(number % 2).unwrap())),
            client: client.map(|client| ClientId::from_bytes(id(10 + client))),
            // Some expire too soon to be sold, and some together.
            expires_at: now + TimeDelta::days(20 + i64::try_from(number * 7 % 60).unwrap()),
            secrets: Secrets { code: Some(format!("CODE-{number}").into()), ..Secrets::default() },
            origin: "played".to_owned(),
        };
        let units: Vec<IncomingUnit> = (first..first + count as u64).map(unit).collect();
        self.people.spawn(async move { drop(service.add(&units).await) });
    }

    fn order(&mut self, process: usize, client: u8, reference: u8, quantity: u32) {
        let (service, books) = (self.service(process), Arc::clone(&self.books));
        self.people.spawn(async move {
            let client = books.lock().unwrap().clients[usize::from(client)].clone();
            let line = VoucherLine { product: VoucherProductId::from_bytes(id(1)), denomination: worth(), quantity };
            drop(service.order(&client, &format!("PO-{reference}"), vec![line]).await);
        });
    }

    #[expect(clippy::type_complexity, reason = "what is done with an order")]
    fn with_order(
        &mut self,
        process: usize,
        order: usize,
        work: fn(
            Arc<Service>,
            orbit::domain::voucher::VoucherOrder,
            Arc<Mutex<Books>>,
        ) -> futures::future::BoxFuture<'static, ()>,
    ) {
        let (service, books) = (self.service(process), Arc::clone(&self.books));
        self.people.spawn(async move {
            let ids: Vec<VoucherOrderId> = books.lock().unwrap().orders.iter().map(|kept| kept.order.id).collect();
            let Some(id) = ids.get(order % ids.len().max(1)) else { return };
            if let Ok(order) = service.voucher_order(*id).await {
                work(service, order, books).await;
            }
        });
    }

    /// Everything works again, and what was under way comes to its end.
    async fn settle(&mut self) -> Result<(), String> {
        self.redis_faults.set_rates(Rates::default());
        self.books_faults.set_rates(Rates::default());
        for number in 0..PROCESSES {
            if !self.processes[number].life.lasts() {
                self.processes[number] = self.start(number);
            }
        }
        sleep(QUIET).await;
        self.look()?;
        if self.lost {
            self.service(0).pump_all().await.map_err(|error| format!("the pump failed: {error}"))?;
        }
        check::in_the_end(self, self.clock.now()).await
    }
}
