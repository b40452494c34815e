//! Vouchers: codes that were bought before they are sold.
//!
//! The database has every unit and decides whose it is. The pools of the live store say, fast, which one is next. A unit is
//! first claimed in its pool, then given to its item in the database, and then the claim is struck; whoever was first in the
//! database has it. Everything else (imports, tags, releases) is written in the database and placed in the pools
//! afterwards, by revision, so that no order of arrival and no crash leaves a unit where it does not belong for longer than a
//! round of the reconciler.

mod allocate;
mod availability;
mod bought;
mod check;
mod check_sales;
mod codes;
pub mod crypto;
pub mod import;
mod imports;
mod inventory;
mod measure;
mod named;
mod offers;
mod orders;
mod place;
pub mod prefetch;
mod pump;
mod reconcile;
mod rekey;
mod sold;
mod stock;
mod tags;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Semaphore;

pub use allocate::{Allocation, ITEMS_MAX};
pub use availability::{Availability, PoolAvailability};
pub use check::VoucherCheck;
pub use imports::{ReportAt, Upload};
pub use inventory::Inventory;
pub use measure::Measured;
pub use orders::{LINES_MAX, ShownCode};
pub use pump::Pumped;
pub use rekey::Rekeyed;
pub use stock::{Added, IncomingUnit};

use crate::config::{self, Config};
use crate::domain::clock::Clock;
use crate::domain::money;
use crate::error::{Error, Result};
use crate::store::live::Live;
use crate::store::live::link::TcpLink;
use crate::store::mongo::Mongo;
use crypto::Keyring;

/// Voucher inventory.
#[derive(Debug)]
pub struct Vouchers<L = TcpLink, D = Mongo> {
    durable: Arc<D>,
    live: Arc<Live<L>>,
    clock: Arc<dyn Clock>,
    keyring: Arc<Keyring>,
    config: config::Vouchers,
    process: String,
    lease_ttl: Duration,
    /// Of products whose spreadsheets name none.
    currency: iso_currency::Currency,
    /// Where a voucher's last day ends.
    zone: chrono_tz::Tz,
    imports: Arc<Semaphore>,
}

impl<L, D> Vouchers<L, D> {
    /// Over these stores.
    ///
    /// # Errors
    /// When a key cannot be used.
    pub fn new(
        stores: (Arc<D>, Arc<Live<L>>),
        clock: Arc<dyn Clock>,
        config: &Config,
        process: String,
    ) -> Result<Self> {
        let unusable =
            |setting: &str| Error::internal("reading the configuration", format!("{setting} cannot be used"));
        let (durable, live) = stores;
        let keyring = Arc::new(Keyring::new(&config.vouchers, &config.accounts.data_key)?);
        let lease_ttl = Duration::from_millis(config.sale.lease_ttl_ms);
        Ok(Self {
            durable,
            live,
            clock,
            keyring,
            config: config.vouchers.clone(),
            process,
            lease_ttl,
            currency: money::currency(&config.catalogue.currency).ok_or_else(|| unusable("catalogue.currency"))?,
            zone: config.vouchers.zone.parse().map_err(|_| unusable("vouchers.zone"))?,
            imports: Arc::new(Semaphore::new(imports::FILES_AT_ONCE)),
        })
    }

    /// The keys that codes are sealed and hashed with.
    #[must_use]
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// What expires before is not sold.
    fn sold_from(&self) -> DateTime<Utc> {
        self.clock.now() + TimeDelta::days(self.config.validity_days_min.into())
    }
}
