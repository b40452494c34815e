//! How vendors are reached: entered by administrators, kept in the database with the key sealed, and turned into a
//! [`VendorApi`] when a job asks for it.
//!
//! A key is sealed for its vendor and its address. Somebody who can write into the database and nothing else can have it
//! sent nowhere else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::SubsecRound;
use futures::future::BoxFuture;

use super::http::{HttpVendor, VendorConnection, base_url};
use super::sandbox::SandboxVendor;
use super::vendor::{VendorApi, Vendors};
use crate::auth::seal::Sealer;
use crate::config::{self, Config, ExposeSecret, SecretString};
use crate::domain::clock::Clock;
use crate::domain::ids::{UserId, VendorId};
use crate::domain::vendor::{Connection, Way};
use crate::error::{Error, Result};
use crate::store::mongo::Mongo;

/// How a vendor is to be reached.
#[derive(Debug)]
pub enum NewWay {
    /// Its API over HTTP.
    Http {
        /// Where the API begins.
        base_url: String,
        /// The key to it; without one, that which is kept for this address stays.
        api_key: Option<SecretString>,
    },
    /// The vendor of trials.
    Sandbox,
}

/// An adapter that is kept for its connections, and what it was made from.
struct Made {
    base_url: String,
    sealed_key: String,
    api: Arc<HttpVendor>,
}

/// Ways to vendors.
pub struct Connections {
    mongo: Arc<Mongo>,
    clock: Arc<dyn Clock>,
    sealer: Sealer,
    sandbox_key: SecretString,
    config: config::Prefetch,
    /// One for each vendor that has a connection, at most.
    made: Mutex<HashMap<VendorId, Made>>,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

fn context(vendor: VendorId, base_url: &str) -> String {
    format!("vendor {vendor} {base_url}")
}

impl Connections {
    /// Over this store.
    ///
    /// # Errors
    /// When the configuration was not validated.
    pub fn new(mongo: Arc<Mongo>, clock: Arc<dyn Clock>, config: &Config) -> Result<Self> {
        let sandbox_key = config.accounts.data_key.clone();
        let sealer = Sealer::new(&sandbox_key)
            .ok_or_else(|| Error::internal("reading accounts.data_key", "it is not 32 bytes of base64"))?;
        Ok(Self { mongo, clock, sealer, sandbox_key, config: config.prefetch.clone(), made: Mutex::default() })
    }

    /// Says how a vendor is reached, in place of what was said before.
    ///
    /// # Errors
    /// [`Error::Invalid`]: an address that requests are not sent to, no key for it, or the vendor of trials where there is
    /// none; when the database does not answer.
    pub async fn set(&self, admin: UserId, vendor: VendorId, way: NewWay, enabled: bool) -> Result<Connection> {
        // As the database keeps it.
        let set_at = self.clock.now().trunc_subsecs(3);
        let way = match way {
            NewWay::Sandbox if self.config.sandbox => Way::Sandbox,
            NewWay::Sandbox => return Err(Error::invalid("kind", "must be HTTP: prefetch.sandbox is off")),
            NewWay::Http { base_url: text, api_key } => {
                let base_url = base_url(&text, (&self.config).into())?.to_string();
                let Some(key) = api_key else {
                    let connections = &self.mongo.vendor_connections;
                    let kept = connections.keep_key(vendor, &base_url, enabled, (admin, set_at)).await?;
                    let missing = || Error::invalid("apiKey", "is required: no key is kept for this address");
                    return kept.inspect(said).ok_or_else(missing);
                };
                let sealed_key = self.sealer.seal(&context(vendor, &base_url), key.expose_secret())?;
                Way::Http { base_url, sealed_key }
            }
        };
        let connection = Connection { vendor, way, enabled, set_by: admin, set_at };
        self.mongo.vendor_connections.set(&connection).await?;
        said(&connection);
        Ok(connection)
    }

    /// A vendor's connection.
    ///
    /// # Errors
    /// [`crate::error::Code::NotFound`] if it has none; when the database does not answer.
    pub async fn of_vendor(&self, vendor: VendorId) -> Result<Connection> {
        let found = self.mongo.vendor_connections.of_vendor(vendor).await?;
        found.ok_or_else(|| Error::not_found("connection not found"))
    }

    /// Whether a vendor has a connection that is enabled.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn is_enabled(&self, vendor: VendorId) -> Result<bool> {
        Ok(self.mongo.vendor_connections.of_vendor(vendor).await?.is_some_and(|connection| connection.enabled))
    }

    /// Forgets a vendor's connection and its key. Orders that are under way stay open, and are left to a person in the end.
    ///
    /// # Errors
    /// [`crate::error::Code::NotFound`] if it has none; when the database does not answer.
    pub async fn remove(&self, admin: UserId, vendor: VendorId) -> Result<()> {
        if !self.mongo.vendor_connections.remove(vendor).await? {
            return Err(Error::not_found("connection not found"));
        }
        tracing::info!(%vendor, %admin, "a vendor's connection was removed");
        Ok(())
    }

    async fn way(&self, vendor: VendorId) -> Result<Option<Arc<dyn VendorApi>>> {
        let found = self.mongo.vendor_connections.of_vendor(vendor).await?;
        match found.filter(|connection| connection.enabled).map(|connection| connection.way) {
            Some(Way::Http { base_url, sealed_key }) => Ok(Some(self.http(vendor, base_url, sealed_key)?)),
            // It was set where the configuration had it.
            Some(Way::Sandbox) if self.config.sandbox => {
                let (mongo, clock) = (Arc::clone(&self.mongo), Arc::clone(&self.clock));
                Ok(Some(Arc::new(SandboxVendor::new(mongo, clock, self.sandbox_key.clone()))))
            }
            Some(Way::Sandbox) | None => {
                self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(&vendor);
                Ok(None)
            }
        }
    }

    /// The adapter that was made of the same, or a new one.
    fn http(&self, vendor: VendorId, base_url: String, sealed_key: String) -> Result<Arc<dyn VendorApi>> {
        let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = all.get(&vendor).filter(|made| made.base_url == base_url && made.sealed_key == sealed_key) {
            return Ok(Arc::clone(&made.api) as _);
        }
        let api_key = self.sealer.open(&context(vendor, &base_url), &sealed_key)?.into();
        // The rules for addresses are looked at once more: they may have become stricter since.
        let api = Arc::new(HttpVendor::new(&VendorConnection { base_url: base_url.clone(), api_key }, &self.config)?);
        all.insert(vendor, Made { base_url, sealed_key, api: Arc::clone(&api) });
        Ok(api)
    }
}

fn said(connection: &Connection) {
    let Connection { vendor, way, enabled, set_by, .. } = connection;
    tracing::info!(%vendor, kind = way.kind(), enabled, admin = %set_by, "a vendor's connection was set");
}

impl Vendors for Connections {
    fn api(&self, vendor: VendorId) -> BoxFuture<'_, Result<Option<Arc<dyn VendorApi>>>> {
        Box::pin(self.way(vendor))
    }
}
