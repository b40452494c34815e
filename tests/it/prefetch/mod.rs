//! Prefetch: codes are bought from vendors that misbehave, by processes that die, and nothing is bought twice.

mod buying;
mod connections;
mod crashes;
mod faults;
mod kill;
mod office;
mod resolving;
mod routes;
mod stock;
mod vendor;

use std::collections::HashMap;
use std::sync::Arc;

use iso_currency::Currency;
use orbit::config::Config;
use orbit::domain::clock::SystemClock;
use orbit::domain::ids::{ClientId, PrefetchJobId, UserId, VendorId, VoucherProductId};
use orbit::domain::money::Money;
use orbit::domain::prefetch::{BatchState, PrefetchJob, PrefetchState};
use orbit::store::mongo::Mongo;
use orbit::vouchers::prefetch::{NewCandidate, NewPrefetch, Prefetch, VendorApi};
use tokio_util::sync::CancellationToken;

use crate::harness::{self, eventually};
use stock::MongoStock;
use vendor::Vendor;

const ADMIN: UserId = UserId::from_bytes([9; 12]);
const CLIENT: ClientId = ClientId::from_bytes([8; 12]);

/// Stores of the test's own, and a process that buys.
struct Desk {
    mongo: Arc<Mongo>,
    stock: Arc<MongoStock>,
    prefetch: Arc<Prefetch>,
    vendors: HashMap<VendorId, Arc<dyn VendorApi>>,
    config: Config,
}

impl Desk {
    async fn at(vendors: &[&Vendor]) -> Self {
        Self::with(vendors, |_| {}).await
    }

    async fn with(vendors: &[&Vendor], adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = harness::config().await;
        // A busy machine is slow to answer.
        config.mongo.deadline_ms = 30_000;
        config.vouchers.claim_ttl_ms = 30_000;
        adjust(&mut config);
        config.validate().unwrap();
        orbit::telemetry::logs::start(&config.log);
        let mongo = Arc::new(Mongo::connect(&config.mongo).await.unwrap());
        mongo.migrate().await.unwrap();
        let api = |vendor: &&Vendor| (vendor.id, Arc::new(vendor.api(&config.prefetch)) as Arc<dyn VendorApi>);
        let vendors: HashMap<_, _> = vendors.iter().map(api).collect();
        let stock = Arc::new(MongoStock::new(&config).await);
        let prefetch = process(&mongo, &vendors, &stock, &config);
        Self { mongo, stock, prefetch, vendors, config }
    }

    /// Another process, of the same vendors and stores.
    fn second(&self) -> Arc<Prefetch> {
        process(&self.mongo, &self.vendors, &self.stock, &self.config)
    }

    /// A job for so many units.
    async fn job(&self, units: u32, candidates: Vec<NewCandidate>) -> PrefetchJobId {
        self.prefetch.create(ADMIN, wanted(units, candidates)).await.unwrap().id
    }

    /// Works until a job has ended.
    async fn ended(&self, id: PrefetchJobId) -> PrefetchJob {
        eventually("the job ends", || async {
            self.prefetch.work(&CancellationToken::new()).await.unwrap();
            self.show(id).await.state.ended()
        })
        .await;
        let job = self.show(id).await;
        assert_exact(&job);
        job
    }

    async fn show(&self, id: PrefetchJobId) -> PrefetchJob {
        self.prefetch.job(id).await.unwrap()
    }

    async fn finish(self) {
        self.mongo.drop_database().await.unwrap();
    }
}

fn process(
    mongo: &Arc<Mongo>,
    vendors: &HashMap<VendorId, Arc<dyn VendorApi>>,
    stock: &Arc<MongoStock>,
    config: &Config,
) -> Arc<Prefetch> {
    let vendors = vendors.clone();
    let known = Arc::new(move |vendor: VendorId| vendors.get(&vendor).cloned());
    Arc::new(Prefetch::new(Arc::clone(mongo), known, Arc::clone(stock) as _, Arc::new(SystemClock), config))
}

fn wanted(units: u32, candidates: Vec<NewCandidate>) -> NewPrefetch {
    NewPrefetch {
        reference: uuid::Uuid::new_v4().simple().to_string(),
        product: VoucherProductId::from_bytes([7; 12]),
        denomination: Money { minor: 5_000, currency: Currency::EUR },
        units,
        client: Some(CLIENT),
        candidates,
    }
}

/// The counts are those of the batches, at any moment.
fn assert_exact(job: &PrefetchJob) {
    let units = |state: BatchState| {
        job.batches.iter().filter(|batch| batch.state == state).map(|batch| batch.units).sum::<u32>()
    };
    let bought: u32 = job.batches.iter().map(|batch| batch.bought).sum();
    let ended = units(BatchState::Stocked) + units(BatchState::Refused);
    let progress = job.progress;
    assert_eq!(progress.bought, bought, "{job:?}");
    assert_eq!(progress.failed, ended - bought, "{job:?}");
    assert_eq!(progress.under_way, units(BatchState::Ordered), "{job:?}");
    assert_eq!(progress.unresolved, units(BatchState::Unresolved), "{job:?}");
    assert_eq!(job.batches.len() + 1, job.next_batch as usize);
}

/// Asserts that a job is complete, and that stock and vendors know of exactly that.
async fn assert_complete(desk: &Desk, job: &PrefetchJob, vendors: &[&Vendor]) {
    assert_eq!(job.state, PrefetchState::Completed, "{job:?}");
    assert_eq!((job.progress.bought, job.missing()), (job.units, 0));
    assert_eq!(desk.stock.units().await, u64::from(job.units));
    let mut stocked: Vec<String> =
        desk.stock.all().await.iter().map(|row| row.get_str("_id").unwrap().to_owned()).collect();
    let mut sold: Vec<String> = vendors.iter().flat_map(|vendor| vendor.codes()).collect();
    stocked.sort();
    sold.sort();
    sold.dedup();
    assert!(stocked == sold, "what was paid for is not what is in stock");
}
