//! Webhooks: sellers register endpoints and are told there what happens in their sales, as Standard Webhooks says.
//!
//! 1. what happens becomes a message, written with what it tells ([`crate::sale`], and `told.rs` for settled orders)
//! 2. a message becomes a delivery for each endpoint that wants it (`dispatch.rs`)
//! 3. a delivery is claimed by one process and tried until it arrives or the schedule ends (`attempt.rs`)
//!
//! A crash after any step leaves the next one to be done, by whichever process comes first. An endpoint may hear a message
//! twice: it knows it by its id.

mod attempt;
mod dispatch;
mod endpoints;
mod signature;
mod told;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use endpoints::NewWebhook;

use crate::auth::seal::Sealer;
use crate::config::{self, Config};
use crate::domain::clock::Clock;
use crate::domain::ids::WebhookId;
use crate::error::{Error, Result};
use crate::outbound;
use crate::store::mongo::Mongo;

/// Everything that is done for sellers' endpoints.
pub struct Webhooks {
    mongo: Arc<Mongo>,
    clock: Arc<dyn Clock>,
    sealer: Sealer,
    http: reqwest::Client,
    config: config::Webhooks,
    /// Attempts that this process is making, by endpoint.
    in_flight: Mutex<HashMap<WebhookId, usize>>,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

impl Webhooks {
    /// Webhooks over this store.
    ///
    /// # Errors
    /// When the configuration was not validated, or the HTTP client cannot be made.
    pub fn new(mongo: Arc<Mongo>, clock: Arc<dyn Clock>, config: &Config) -> Result<Self> {
        let sealer = Sealer::new(&config.accounts.data_key)
            .ok_or_else(|| Error::internal("reading accounts.data_key", "it is not 32 bytes of base64"))?;
        let deadline = Duration::from_millis(config.webhooks.attempt_deadline_ms);
        let http = outbound::client((&config.webhooks).into(), deadline)
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| Error::internal("making the client for webhooks", error))?;
        Ok(Self { mongo, clock, sealer, http, config: config.webhooks.clone(), in_flight: Mutex::default() })
    }
}
