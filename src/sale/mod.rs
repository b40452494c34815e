//! The heart: a sale from opening to its last order.
//!
//! Two stores meet here. MongoDB remembers the phase (`DRAFT`, `OPENING`, `LIVE`, `STOPPED`, `SETTLED`), Redis holds the
//! status that decides (`NOT_STARTED`, `LIVE`, `PAUSED`, `STOPPED`). The order of writes between them, and what a crash
//! in between means, is written down at each step.

mod announce;
pub mod check;
mod cleanup;
mod codes;
mod control;
mod counters;
mod drain;
pub mod durable;
mod end;
mod lease;
mod open;
mod projector;
mod rebuild;
mod recovery;
mod reservation;
mod reserve;
mod restock;
mod schedule;
mod settlement;
mod status;
mod sweep;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub use codes::{CancelledBy, Codes};
pub use counters::{Counters, Totals};
pub use durable::Durable;
pub use end::{Ended, Settling};
pub use open::Opened;
pub use reservation::ReservationRef;
pub use restock::Restocked;
pub use status::{KnownSale, SaleView};
pub use watch::{Listener, State as WatchedState, fingerprint};

use crate::config;
use crate::domain::clock::Clock;
use crate::domain::money::Money;
use crate::store::live::Live;
use crate::store::live::link::TcpLink;
use crate::store::mongo::Mongo;

/// Why buyers could not pay for up to so many units at a price, if they could not.
pub type PriceRule = fn(Money, u32) -> Option<String>;

/// Everything that can be done to a sale.
pub struct Sale<L = TcpLink, D = Mongo> {
    live: Arc<Live<L>>,
    durable: Arc<D>,
    clock: Arc<dyn Clock>,
    config: config::Sale,
    schedule: schedule::Schedule,
    watches: watch::Watches,
    stopped_status_ttl_s: u64,
    /// Whether buyers can pay: an event whose reservations are to be paid opens only then.
    takes_payments: bool,
    /// And the prices that they can be asked for.
    price_rule: PriceRule,
    /// Names this process among the others: to the journal's group, in leases, in the audit.
    process: String,
    listeners: announce::Listeners,
    listeners_known_for: Duration,
    /// Behind units that are vouchers.
    codes: Option<Arc<dyn Codes>>,
}

impl<L, D> std::fmt::Debug for Sale<L, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sale").finish_non_exhaustive()
    }
}

impl<L, D> Sale<L, D> {
    /// Sales over these stores. `process` is a name that no other process has.
    #[must_use]
    pub fn new(
        live: Arc<Live<L>>,
        durable: Arc<D>,
        clock: Arc<dyn Clock>,
        config: &config::Config,
        process: String,
    ) -> Self {
        Self {
            live,
            durable,
            clock,
            config: config.sale.clone(),
            schedule: schedule::Schedule::default(),
            watches: watch::Watches::new(config.server.streams_max),
            stopped_status_ttl_s: config.live.stopped_status_ttl_s,
            takes_payments: config.payment.gateway != config::Gateway::None,
            price_rule: |_, _| None,
            process,
            listeners: announce::Listeners::default(),
            listeners_known_for: Duration::from_millis(config.webhooks.listeners_known_for_ms),
            codes: None,
        }
    }

    /// With codes behind units that are vouchers.
    #[must_use]
    pub fn with_codes(self, codes: Arc<dyn Codes>) -> Self {
        Self { codes: Some(codes), ..self }
    }

    /// With prices that can be charged.
    #[must_use]
    pub fn charging(self, price_rule: PriceRule) -> Self {
        Self { price_rule, ..self }
    }
}
