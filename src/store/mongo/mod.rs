//! MongoDB: everything durable. One repository per collection: its document, the conversion both ways, named queries.
//!
//! Every call has a deadline that cancels it. Writes are acknowledged by a majority, journalled.

pub mod accounts;
pub mod audit;
mod bulk;
pub mod dead_letters;
mod error;
pub mod events;
pub mod idempotency;
pub mod indexes;
pub mod leases;
pub mod media_ledger;
pub mod migrate;
pub mod order_sums;
pub mod orders;
pub mod payment_events;
pub mod payments;
mod payments_of_event;
pub mod products;
mod query;
pub mod replica_set;
pub mod restocks;
pub mod returns;
pub mod revocations;
pub mod sandbox_intents;
mod schedule;
pub mod server;
pub mod verifications;
pub mod vouchers;
pub mod webhooks;

use std::time::Duration;

use bson::oid::ObjectId;
use mongodb::options::{Acknowledgment, ClientOptions, WriteConcern};
use mongodb::{Client, Database};
use secrecy::ExposeSecret;

use crate::config;
use crate::domain::voucher::{Client as VoucherClient, Vendor, VoucherProduct};
use crate::error::{Dependency, Error, Result};
use error::within;

/// How long messages to sellers, and what became of them, can be looked at and sent again.
const MESSAGES_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How long the answer to a request with a key is given again.
const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A large test leaves millions of documents.
const DROPPED_WITHIN: Duration = Duration::from_secs(120);

/// The durable store.
#[derive(Debug)]
pub struct Mongo {
    client: Client,
    database: Database,
    deadline: Duration,
    /// Who may sign in.
    pub accounts: accounts::Accounts,
    /// Sellers' requests to be approved.
    pub verifications: verifications::Verifications,
    /// Events.
    pub events: events::Events,
    /// Products.
    pub products: products::Products,
    /// Settled reservations.
    pub orders: orders::Orders,
    /// Units added to running sales, or withdrawn.
    pub restocks: restocks::Restocks,
    /// The money for reservations.
    pub payments: payments::Payments,
    /// Callbacks that were dealt with.
    pub payment_events: payment_events::PaymentEvents,
    /// Orders that gave units back, until their money has been looked at.
    pub returns: returns::Returns,
    /// The payment gateway of trials.
    pub sandbox_intents: sandbox_intents::SandboxIntents,
    /// What has changed since session tokens were made.
    pub revocations: revocations::Revocations,
    /// What settlement could not write.
    pub dead_letters: dead_letters::DeadLetters,
    /// What was repaired.
    pub audit: audit::Audit,
    /// Who does the work that one process at a time should do.
    pub leases: leases::Leases,
    /// Images that are to be deleted.
    pub media_ledger: media_ledger::MediaLedger,
    /// Where sellers are told.
    pub webhook_endpoints: webhooks::Endpoints,
    /// What sellers are told.
    pub webhook_messages: webhooks::Messages,
    /// Messages on their way.
    pub webhook_deliveries: webhooks::Deliveries,
    /// Who issues vouchers.
    pub vendors: vouchers::NamedRecords<Vendor>,
    /// For whom vouchers are kept and ordered.
    pub clients: vouchers::NamedRecords<VoucherClient>,
    /// What vouchers are of.
    pub voucher_products: vouchers::NamedRecords<VoucherProduct>,
    /// Voucher units.
    pub voucher_units: vouchers::Units,
    /// Spreadsheets of vouchers.
    pub voucher_imports: vouchers::VoucherImports,
    /// Orders of vouchers.
    pub voucher_orders: vouchers::VoucherOrders,
    /// Products of sales whose units are vouchers.
    pub voucher_offers: vouchers::VoucherOffers,
    /// Requests that are answered once.
    pub requests: idempotency::Requests,
    /// Changes of settled orders that sellers have not been told of.
    pub untold_orders: webhooks::UntoldOrders,
    /// Jobs that buy voucher codes.
    pub prefetch_jobs: vouchers::PrefetchJobs,
    /// The voucher vendor of trials.
    pub sandbox_vendor_orders: vouchers::SandboxVendorOrders,
    /// How vendors of vouchers are reached.
    pub vendor_connections: vouchers::VendorConnections,
}

impl Mongo {
    /// Connects and asks the server for an answer.
    ///
    /// # Errors
    /// When the server does not answer within the deadline.
    pub async fn connect(config: &config::Mongo) -> Result<Self> {
        let deadline = Duration::from_millis(config.deadline_ms);
        let mut options = ClientOptions::parse(config.uri.expose_secret()).await.map_err(unreadable_uri)?;
        options.app_name = Some("orbit".to_owned());
        options.connect_timeout = Some(deadline);
        options.server_selection_timeout = Some(deadline);
        options.max_pool_size = Some(config.pool_max);
        options.retry_writes = options.retry_writes.or(Some(true));
        let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        // Not for the URI to weaken: what we acknowledge survives a fail-over.
        options.write_concern = Some(majority);
        let client = Client::with_options(options)
            .map_err(|error| Error::unavailable(Dependency::Database, "connecting", error))?;
        let database = client.database(&config.database);
        let store = Self::over(client, &database, deadline, Duration::from_millis(config.cursor_deadline_ms));
        store.ping().await?;
        Ok(store)
    }

    fn over(client: Client, database: &Database, deadline: Duration, long: Duration) -> Self {
        Self {
            accounts: accounts::Accounts::new(database, deadline),
            verifications: verifications::Verifications::new(database, deadline),
            events: events::Events::new(database, deadline),
            products: products::Products::new(database, deadline, long),
            orders: orders::Orders::new(database, deadline, long),
            restocks: restocks::Restocks::new(database, deadline),
            payments: payments::Payments::new(database, deadline),
            payment_events: payment_events::PaymentEvents::new(database, deadline),
            returns: returns::Returns::new(database, deadline),
            sandbox_intents: sandbox_intents::SandboxIntents::new(database, deadline),
            revocations: revocations::Revocations::new(database, deadline),
            dead_letters: dead_letters::DeadLetters::new(database, deadline),
            audit: audit::Audit::new(database, deadline),
            leases: leases::Leases::new(database, deadline),
            media_ledger: media_ledger::MediaLedger::new(database, deadline),
            webhook_endpoints: webhooks::Endpoints::new(database, deadline),
            webhook_messages: webhooks::Messages::new(database, deadline, MESSAGES_KEPT),
            webhook_deliveries: webhooks::Deliveries::new(database, deadline, MESSAGES_KEPT),
            vendors: vouchers::NamedRecords::new(database, deadline),
            clients: vouchers::NamedRecords::new(database, deadline),
            voucher_products: vouchers::NamedRecords::new(database, deadline),
            voucher_units: vouchers::Units::new(database, deadline, long),
            voucher_imports: vouchers::VoucherImports::new(database, deadline, long),
            voucher_orders: vouchers::VoucherOrders::new(database, deadline),
            voucher_offers: vouchers::VoucherOffers::new(database, deadline, long),
            requests: idempotency::Requests::new(database, deadline, ANSWERS_KEPT),
            untold_orders: webhooks::UntoldOrders::new(database, deadline),
            prefetch_jobs: vouchers::PrefetchJobs::new(database, deadline),
            sandbox_vendor_orders: vouchers::SandboxVendorOrders::new(database, deadline),
            vendor_connections: vouchers::VendorConnections::new(database, deadline),
            client,
            database: database.clone(),
            deadline,
        }
    }

    /// Asks the server for an answer.
    ///
    /// # Errors
    /// When there is none within the deadline.
    pub async fn ping(&self) -> Result<()> {
        within(self.deadline, "pinging the database", self.database.run_command(bson::doc! { "ping": 1 })).await?;
        Ok(())
    }

    /// Removes the whole database: for tests that made it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn drop_database(&self) -> Result<()> {
        within(DROPPED_WITHIN, "dropping a test's database", self.database.drop()).await
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.client.clone().shutdown().await;
    }
}

/// The driver quotes what it cannot read, which may be a part of the password.
fn unreadable_uri(error: mongodb::error::Error) -> Error {
    const DOING: &str = "reading mongo.uri";
    match error.kind.as_ref() {
        mongodb::error::ErrorKind::InvalidArgument { .. } => {
            let what = "it must look like mongodb://[user:password@]host:port/?options, percent-encoded";
            Error::unavailable(Dependency::Database, DOING, what)
        }
        _ => Error::unavailable(Dependency::Database, DOING, error),
    }
}

/// Twelve bytes that no other record has.
#[must_use]
pub fn new_id() -> [u8; 12] {
    ObjectId::new().bytes()
}
