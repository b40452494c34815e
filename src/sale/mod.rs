//! The heart: a sale from opening to its last order.
//!
//! Two stores meet here. MongoDB remembers the phase (`DRAFT`, `OPENING`, `LIVE`, `STOPPED`, `SETTLED`), Redis holds the
//! status that decides (`NOT_STARTED`, `LIVE`, `PAUSED`, `STOPPED`). The order of writes between them, and what a crash
//! in between means, is written down at each step.

pub mod audit;
mod cleanup;
mod control;
mod end;
mod open;
mod projector;
mod recovery;
mod reserve;
mod settlement;
mod status;

use std::sync::Arc;

pub use end::Ended;
pub use open::Opened;
pub use status::{KnownSale, SaleView};

use crate::config;
use crate::domain::clock::Clock;
use crate::store::live::Live;
use crate::store::mongo::Mongo;

/// Everything that can be done to a sale.
pub struct Sale {
    live: Arc<Live>,
    mongo: Arc<Mongo>,
    clock: Arc<dyn Clock>,
    config: config::Sale,
    stopped_status_ttl_s: u64,
}

impl std::fmt::Debug for Sale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sale").finish_non_exhaustive()
    }
}

impl Sale {
    /// Sales over these stores.
    #[must_use]
    pub fn new(live: Arc<Live>, mongo: Arc<Mongo>, clock: Arc<dyn Clock>, config: &config::Config) -> Self {
        Self { live, mongo, clock, config: config.sale.clone(), stopped_status_ttl_s: config.live.stopped_status_ttl_s }
    }
}
