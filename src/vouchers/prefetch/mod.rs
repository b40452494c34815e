//! Prefetch: voucher codes are bought from a vendor's API ahead of orders, so that orders are served from stock.
//!
//! An administrator makes a job (`jobs.rs`). One process at a time has it in hand (`worker.rs`), asks the vendors what they
//! have (`choose.rs`), and buys from the best of them, batch by batch (`round.rs`). Each batch is one order with a name of
//! its own, the external id, which follows from job and number (`batch.rs`).
//!
//! The order of writes for one batch, and what a crash after each means:
//!
//! 1. `prefetchJobs`: the batch, its vendor and how many units. From now on the vendor may have been asked; whoever goes on
//!    asks the vendor about the external id.
//! 2. the vendor sells. It is asked for again under the same external id only, and answers the same codes.
//! 3. [`Stock`]: the codes. Adding them again adds nothing and says as much.
//! 4. `prefetchJobs`: what became of the batch, and the counts, in one update. Units that the vendor is known not to have
//!    sold are free to be ordered elsewhere, in a batch with another number.
//!
//! What a vendor did is never guessed. A batch without an answer stays open, and is asked about in ever longer intervals,
//! until the vendor says what it was or a person has to (`resolve.rs`). Vendors are reached as administrators have said
//! (`connections.rs`). The codes themselves are in no record of this module, in no log and
//! in no error.

mod batch;
mod choose;
mod connections;
mod http;
mod jobs;
mod resolve;
mod round;
mod sandbox;
mod stock;
mod vendor;
mod wire;
mod worker;

use std::sync::Arc;
use std::time::Duration;

pub use connections::{Connections, NewWay};
pub use http::{HttpVendor, VendorConnection};
pub use jobs::{NewCandidate, NewPrefetch};
pub use resolve::Told;
pub use sandbox::SandboxVendor;
pub use stock::{Added, BoughtBatch, BoughtVoucher, Stock};
pub use vendor::{Availability, OrderOutcome, Refusal, VendorApi, VendorOrder, Vendors};

use crate::config::{self, Config};
use crate::domain::clock::Clock;
use crate::store::mongo::Mongo;

/// The longest pause before a job is looked at again.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// Buying voucher codes ahead of orders.
pub struct Prefetch {
    mongo: Arc<Mongo>,
    vendors: Arc<dyn Vendors>,
    stock: Arc<dyn Stock>,
    clock: Arc<dyn Clock>,
    config: config::Prefetch,
}

impl std::fmt::Debug for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prefetch").finish_non_exhaustive()
    }
}

impl Prefetch {
    /// Buys from `vendors` into `stock`.
    #[must_use]
    pub fn new(
        mongo: Arc<Mongo>,
        vendors: Arc<dyn Vendors>,
        stock: Arc<dyn Stock>,
        clock: Arc<dyn Clock>,
        config: &Config,
    ) -> Self {
        Self { mongo, vendors, stock, clock, config: config.prefetch.clone() }
    }

    /// The pause before the job is looked at again, after so many rounds in which nothing was achieved.
    fn pause_after(&self, idle_rounds: u32) -> Duration {
        let doubled = 2_u64.saturating_pow(idle_rounds.saturating_sub(1));
        Duration::from_millis(self.config.retry_pause_ms.saturating_mul(doubled)).min(PAUSE_MAX)
    }
}
