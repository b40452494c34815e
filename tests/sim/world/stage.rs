//! Playing a schedule.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use orbit::config::Config;
use orbit::sale::ReservationRef;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::buyer::Buyer;
use super::catalogue::Catalogue;
use super::process::{Directory, Process, Surroundings};
use super::seller::{Control, Seller};
use super::step::{Action, Machine, Step};
use crate::clock::WallClock;
use crate::durable::Database;
use crate::faults::Faults;
use crate::gateway::Till;
use crate::invariants::{self, Verdict, View};
use crate::ledger::{Ledger, SharedLedger};
use crate::network::Network;
use crate::redis::{Redis, Snapshot};

/// How often the invariants are looked at, and the data set is remembered.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Data sets that are remembered.
const SNAPSHOTS_MAX: usize = 40;

/// Small and quick, so that little happens in a batch and much between two.
const SETTINGS: &str = r#"
[payment]
gateway = "sandbox"
deadline_ms = 1500
reconcile_interval_ms = 700
retry_pause_ms = 100
refund_attempts_max = 1000
[mongo]
deadline_ms = 2000
[live]
connections = 2
deadline_ms = 1000
[sale]
workers = 2
channel_capacity = 2
batch_size_max = 1
opening_ttl_ms = 3000
settle_page_size_max = 3
sweep_interval_ms = 400
schedule_interval_ms = 300
drain_interval_ms = 500
drain_takeover_ms = 1500
recovery_interval_ms = 1000
lease_ttl_ms = 2500
[auth]
jwt_secret = "nobody signs in here, and it is long enough"
[accounts]
data_key = "dGVzdHMgb25seTogMzIgYnl0ZXMgb2YgYSBrZXkhISE="
"#;

/// Something that is wrong on purpose, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Some texts of the scripts are others.
    Script(&'static [(&'static str, &'static str)]),
    /// `reservationId` is not unique.
    NoUniqueIndex,
    /// A refund that was cut short is made again, under another key and without asking what went back.
    RefundsRepeated,
    /// A payment that has succeeded can fail after that.
    FailureAfterSuccess,
    /// Nobody asks the gateway about a payment of which nothing was heard.
    NeverAsked,
}

/// What came of a schedule that failed nowhere.
#[derive(Debug, Default)]
pub struct Story {
    pub reservations: usize,
    /// Of them, those that the schedule took away.
    pub lost_on_purpose: usize,
    /// What was repaired, by kind.
    pub repairs: BTreeMap<String, usize>,
    /// What became of payments: their outcomes, and those of which money went back.
    pub payments: BTreeMap<&'static str, usize>,
    pub history: Vec<String>,
}

impl Story {
    /// Adds another one's numbers, and its history if that is wanted.
    pub fn add(&mut self, other: Self, with_history: bool) {
        self.reservations += other.reservations;
        self.lost_on_purpose += other.lost_on_purpose;
        for (kind, count) in other.repairs {
            *self.repairs.entry(kind).or_default() += count;
        }
        for (what, count) in other.payments {
            *self.payments.entry(what).or_default() += count;
        }
        if with_history {
            self.history.extend(other.history);
        }
    }
}

/// Why a schedule failed, and what had happened.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub history: Vec<String>,
}

/// Plays a schedule from its beginning to the end of its sale.
///
/// # Errors
/// The first invariant that did not hold.
pub fn play(seed: u64, processes: usize, steps: &[Step], bug: Option<Bug>) -> Result<Story, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed, processes, bug);
        let verdict = world.play(steps).await;
        let story = world.story();
        verdict.map_err(|what| Failure { what, history: story.history.clone() }).map(|()| story)
    })
}

/// A trouble that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    Dead(usize),
    RedisAway,
    DatabaseAway,
    RedisFull,
    GatewayAway,
    GatewayEmpty,
}

/// Everything that there is.
pub struct World {
    pub(super) around: Surroundings,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) ledger: SharedLedger,
    pub(super) directory: Directory,
    redis_clock: WallClock,
    database_clock: WallClock,
    pub(super) process_clocks: Vec<WallClock>,
    snapshots: VecDeque<(Instant, Snapshot)>,
    /// What is over at some time.
    passing: Vec<(Instant, Passing)>,
    /// The changes of both stores that were looked at.
    looked_at: (u64, u64),
    /// Processes that were started, for their names.
    started: u64,
    /// Buyers and sellers at work.
    pub(super) people: JoinSet<()>,
    _network: JoinSet<()>,
}

fn config() -> Arc<Config> {
    static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| Arc::new(Config::with_layer(SETTINGS).unwrap())))
}

impl World {
    fn new(seed: u64, processes: usize, bug: Option<Bug>) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let catalogue = Arc::new(Catalogue::random(&mut random));
        let (redis_clock, database_clock) = (WallClock::new(), WallClock::new());
        let ledger = Arc::new(Mutex::new(Ledger::new()));
        let now = redis_clock.clone();
        let mut redis = Redis::new(Box::new(move || now.now_us() as u64));
        let observer = Arc::clone(&ledger);
        redis.observe(Box::new(move |data, words, reply| observer.lock().unwrap().observe(data, words, reply)));
        let (event, products) = (catalogue.event.clone(), catalogue.products.clone());
        let mut database = Database::new(database_clock.clone(), event, products);
        let mut till = Till::default();
        match bug {
            None => {}
            Some(Bug::Script(changes)) => redis.patch_scripts(changes),
            Some(Bug::NoUniqueIndex) => database.drop_unique_index(),
            Some(Bug::RefundsRepeated) => till.forget_refunds(),
            Some(Bug::FailureAfterSuccess) => database.honour_failures(),
            Some(Bug::NeverAsked) => database.forget_questions(),
        }
        let (network, carrying) = Network::new();
        let mut moving = JoinSet::new();
        moving.spawn(carrying);
        let around = Surroundings {
            config: config(),
            network,
            redis: Arc::new(Mutex::new(redis)),
            redis_faults: Faults::new(random.random()),
            database: Arc::new(Mutex::new(database)),
            database_faults: Faults::new(random.random()),
            till: Arc::new(Mutex::new(till)),
            gateway_faults: Faults::new(random.random()),
            pays: catalogue.pays,
        };
        let mut world = Self {
            around,
            catalogue,
            ledger,
            directory: Directory::default(),
            redis_clock,
            database_clock,
            process_clocks: (0..processes).map(|_| WallClock::new()).collect(),
            snapshots: VecDeque::new(),
            passing: Vec::new(),
            looked_at: (0, 0),
            started: 0,
            people: JoinSet::new(),
            _network: moving,
        };
        for process in 0..processes {
            let fresh = world.fresh_process(process);
            world.directory.lock().unwrap().push(fresh);
        }
        world
    }

    fn fresh_process(&mut self, place: usize) -> Arc<Process> {
        self.started += 1;
        Process::start(&self.around, self.process_clocks[place].clone(), format!("process {place}, {}", self.started))
    }

    async fn play(&mut self, steps: &[Step]) -> Verdict {
        // Everybody is up when the schedule begins.
        self.pass(Duration::from_millis(200)).await?;
        for step in steps {
            self.note(format!("{:?}", step.action));
            self.act(&step.action);
            self.pass(Duration::from_millis(step.then_ms)).await?;
        }
        self.come_to_rest().await
    }

    fn story(&self) -> Story {
        let (database, ledger) = (self.around.database.lock().unwrap(), self.ledger.lock().unwrap());
        let mut repairs = BTreeMap::new();
        for repair in database.repairs() {
            *repairs.entry(repair.kind.clone()).or_default() += 1;
        }
        Story {
            reservations: ledger.made().len(),
            lost_on_purpose: ledger.made().keys().filter(|id| ledger.is_excused(id)).count(),
            repairs,
            payments: self.payments(&database),
            history: ledger.history().to_vec(),
        }
    }

    fn payments(&self, database: &Database) -> BTreeMap<&'static str, usize> {
        let mut payments = BTreeMap::new();
        for payment in database.payments() {
            let outcome = payment.applied.map(|applied| applied.outcome.as_str());
            let refunded = match payment.refunded_minor {
                0 => None,
                minor if minor < payment.amount_minor - 1 => Some("REFUNDED_IN_PART"),
                _ => Some("REFUNDED"),
            };
            for what in outcome.into_iter().chain(refunded) {
                *payments.entry(what).or_default() += 1;
            }
        }
        payments
    }

    pub(super) fn note(&self, what: String) {
        self.ledger.lock().unwrap().note(what);
    }

    /// Lets time pass, and looks at everything whenever something has changed.
    pub(super) async fn pass(&mut self, time: Duration) -> Verdict {
        let end = Instant::now() + time;
        loop {
            sleep(LOOK_INTERVAL.min(end - Instant::now())).await;
            self.end_troubles(Instant::now());
            let changes = self.changes();
            if changes != self.looked_at {
                self.looked_at = changes;
                self.look(invariants::hold)?;
                self.remember();
            }
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    fn changes(&self) -> (u64, u64) {
        (self.around.redis.lock().unwrap().changes(), self.around.database.lock().unwrap().changes())
    }

    pub(super) fn look(&self, check: impl FnOnce(&View<'_>) -> Verdict) -> Verdict {
        let mut redis = self.around.redis.lock().unwrap();
        let (database, till) = (self.around.database.lock().unwrap(), self.around.till.lock().unwrap());
        let (ledger, catalogue) = (self.ledger.lock().unwrap(), &self.catalogue);
        check(&View { data: redis.data(), database: &database, till: &till, ledger: &ledger, catalogue })
    }

    fn remember(&mut self) {
        let snapshot = self.around.redis.lock().unwrap().snapshot();
        self.snapshots.push_back((Instant::now(), snapshot));
        if self.snapshots.len() > SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Control { process, control } => self.control(*process, *control),
            Action::Buy { buyers, product, quantity, keyed, seed } => {
                self.buy(*buyers, *product, *quantity, *keyed, *seed);
            }
            Action::Restock { process, product, units, operation } => {
                self.restock(*process, *product, *units, *operation);
            }
            Action::Cancel { process, which, part, as_administrator } => {
                self.cancel(*process, *which, *part, *as_administrator);
            }
            Action::Kill { process, for_ms } => self.trouble(Passing::Dead(*process), *for_ms),
            Action::RedisFaults(rates) => self.around.redis_faults.set_rates(*rates),
            Action::DatabaseFaults(rates) => self.around.database_faults.set_rates(*rates),
            Action::GatewayFaults(rates) => self.around.gateway_faults.set_rates(*rates),
            Action::RedisAway { for_ms } => self.trouble(Passing::RedisAway, *for_ms),
            Action::DatabaseAway { for_ms } => self.trouble(Passing::DatabaseAway, *for_ms),
            Action::RedisFull { for_ms } => self.trouble(Passing::RedisFull, *for_ms),
            Action::GatewayAway { for_ms } => self.trouble(Passing::GatewayAway, *for_ms),
            Action::GatewayEmpty { for_ms } => self.trouble(Passing::GatewayEmpty, *for_ms),
            Action::RedisRestarts { lost_ms } => self.restart_redis(Duration::from_millis(*lost_ms)),
            Action::RedisWiped => self.replace_data(Snapshot::default()),
            Action::ScriptsFlushed => {
                self.around.redis.lock().unwrap().execute(&[b"SCRIPT".to_vec(), b"FLUSH".to_vec()]);
            }
            Action::ClockSet { machine, by_ms } => match machine {
                Machine::Redis => self.redis_clock.jump(*by_ms),
                Machine::Database => self.database_clock.jump(*by_ms),
                Machine::Process(process) => self.process_clocks[*process].jump(*by_ms),
            },
        }
    }

    fn trouble(&mut self, passing: Passing, for_ms: u64) {
        self.set(passing, true);
        self.passing.push((Instant::now() + Duration::from_millis(for_ms), passing));
    }

    /// Ends what is over by this time.
    pub(super) fn end_troubles(&mut self, time: Instant) {
        let (over, lasting) = self.passing.drain(..).partition(|(end, _)| *end <= time);
        self.passing = lasting;
        for (_, passing) in over {
            self.set(passing, false);
        }
    }

    fn set(&mut self, passing: Passing, begins: bool) {
        match passing {
            Passing::Dead(place) if begins => self.directory.lock().unwrap()[place].kill(),
            Passing::Dead(place) => self.start(place),
            Passing::RedisAway => self.around.redis_faults.set_down(begins),
            Passing::DatabaseAway => self.around.database_faults.set_down(begins),
            Passing::GatewayAway => self.around.gateway_faults.set_down(begins),
            Passing::GatewayEmpty => self.around.till.lock().unwrap().set_empty(begins),
            Passing::RedisFull => self.around.redis.lock().unwrap().set_full(begins),
        }
    }

    /// At this process, or the next one that listens.
    pub(super) fn control(&mut self, process: usize, control: Control) {
        let Some(seller) = self.seller(process) else { return };
        self.people.spawn(async move {
            seller.control(control).await;
        });
    }

    fn restock(&mut self, process: usize, product: usize, units: i64, operation: u8) {
        let product = self.catalogue.products[product % self.catalogue.products.len()].id;
        let Some(seller) = self.seller(process) else { return };
        self.people.spawn(seller.restock(product, units, format!("operation-{operation}")));
    }

    /// Not where somebody has said of a reservation that it is paid, and believes that it stays confirmed.
    fn cancel(&mut self, process: usize, which: usize, part: bool, as_administrator: bool) {
        if self.catalogue.event.terms.payment_window_s > 0 && !self.catalogue.pays {
            return;
        }
        let ledger = self.ledger.lock().unwrap();
        let Some((id, made)) = ledger.made().iter().nth(which % ledger.made().len().max(1)) else { return };
        let event = self.catalogue.id();
        let of = ReservationRef { id: id.clone(), user: made.user, product: made.product, event };
        drop(ledger);
        let Some(seller) = self.seller(process) else { return };
        self.people.spawn(seller.cancel(of, part, as_administrator));
    }

    fn seller(&self, process: usize) -> Option<Seller> {
        let processes = self.directory.lock().unwrap().clone();
        let mut from_here = processes.iter().cycle().skip(process).take(processes.len());
        let process = from_here.find(|process| process.listens()).map(Arc::clone)?;
        Some(Seller { process, ledger: Arc::clone(&self.ledger), catalogue: Arc::clone(&self.catalogue) })
    }

    pub(super) fn buy(&mut self, buyers: usize, product: usize, quantity: u32, keyed: bool, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let product = self.catalogue.products[product % self.catalogue.products.len()].id;
        for _ in 0..buyers {
            let number = random.random_range(0..self.catalogue.buyers.len());
            let buyer = Buyer {
                directory: Arc::clone(&self.directory),
                ledger: Arc::clone(&self.ledger),
                till: Arc::clone(&self.around.till),
                catalogue: Arc::clone(&self.catalogue),
                random: StdRng::seed_from_u64(random.random()),
                user: self.catalogue.buyers[number],
                product,
                quantity,
                idempotency_key: if keyed { format!("key-{}", random.random_range(0..3)) } else { String::new() },
            };
            self.people.spawn(buyer.buy());
        }
    }

    fn start(&mut self, place: usize) {
        if !self.directory.lock().unwrap()[place].lives() {
            let fresh = self.fresh_process(place);
            self.directory.lock().unwrap()[place] = fresh;
        }
    }

    fn restart_redis(&mut self, lost: Duration) {
        let now = Instant::now();
        let old = self.snapshots.iter().rev().find(|(at, _)| *at + lost <= now);
        match old.filter(|_| !lost.is_zero()).map(|(_, snapshot)| snapshot.clone()) {
            Some(snapshot) => self.replace_data(snapshot),
            None => {
                let snapshot = self.around.redis.lock().unwrap().snapshot();
                self.around.redis.lock().unwrap().restart_with(snapshot);
            }
        }
    }

    /// Redis comes back with an older data set. Reservations that were nowhere else are lost, and nobody is to blame.
    fn replace_data(&mut self, snapshot: Snapshot) {
        self.around.redis.lock().unwrap().restart_with(snapshot);
        // A replica of the new line is no older than this.
        self.snapshots.clear();
        self.snapshots.push_back((Instant::now(), self.around.redis.lock().unwrap().snapshot()));
        let mut lost = Vec::new();
        let found = self.look(|view| {
            lost = view.made_and_gone()?;
            Ok(())
        });
        let mut ledger = self.ledger.lock().unwrap();
        if let Err(what) = found {
            ledger.blame(what);
        }
        ledger.forget_changes();
        for id in lost {
            ledger.excuse(&id);
        }
    }
}
