//! Payment: a buyer is asked to pay, the gateway tells when the money is there, the reservation is confirmed, and what is
//! kept of the money is the price of the units that the buyer has.
//!
//! A purchase never calls a gateway: it has half a second, and makes a hold that waits for its payment. What is here comes
//! afterwards, and none of it is taken on trust: a callback is signed, and may come never, twice, late, and in any order.
//!
//! The order of writes when money has arrived, and what a crash after each means:
//!
//! 1. `payments`: SUCCEEDED. From now on the money is known; whoever reconciles goes on from here.
//! 2. the live store, or the order of a settled sale, confirms. Confirming again is told `Before`.
//! 3. `payments`: what the money did. Decided once; refunds follow from it.
//! 4. `paymentEvents`: the callback is dealt with. Without it the callback comes again, and finds everything done.

mod apply;
mod callback;
mod check;
pub mod gateway;
mod pay;
mod reconcile;
mod records;
mod refund;
mod sandbox;
mod signature;
mod stripe;
mod units;

use std::sync::Arc;
use std::time::Duration;

pub use callback::Received;
pub use pay::Asked;
pub use records::PaymentRecords;
pub use sandbox::{Callback, Sandbox};

use crate::config::{self, Config, Gateway};
use crate::domain::clock::Clock;
use crate::error::{Code, Error, Result};
use crate::sale::{PriceRule, Sale};
use crate::store::live::Live;
use crate::store::live::link::TcpLink;
use crate::store::mongo::Mongo;
use gateway::PaymentGateway;
use stripe::Stripe;

/// The longest pause before something that failed is tried again.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// What the configured gateway cannot charge.
#[must_use]
pub fn price_rule(gateway: Gateway) -> PriceRule {
    match gateway {
        Gateway::Stripe => units::unchargeable,
        Gateway::None | Gateway::Sandbox => |_, _| None,
    }
}

/// Everything that can be done about the money for reservations.
pub struct Payments<L = TcpLink, D = Mongo> {
    gateway: Option<Arc<dyn PaymentGateway>>,
    sandbox: Option<Arc<Sandbox>>,
    durable: Arc<D>,
    live: Arc<Live<L>>,
    sale: Arc<Sale<L, D>>,
    clock: Arc<dyn Clock>,
    config: config::Payment,
    lease_ttl: Duration,
    /// Names this process among the others, in leases.
    process: String,
}

impl<L, D> std::fmt::Debug for Payments<L, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payments").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}

impl Payments {
    /// Payments by the configured gateway. `process` is a name that no other process has.
    ///
    /// # Errors
    /// When the gateway's client cannot be made.
    pub fn new(
        (mongo, live, sale): (Arc<Mongo>, Arc<Live>, Arc<Sale>),
        clock: Arc<dyn Clock>,
        config: &Config,
        process: String,
    ) -> Result<Self> {
        let payment = &config.payment;
        let mut sandbox = None;
        let gateway: Option<Arc<dyn PaymentGateway>> = match payment.gateway {
            Gateway::None => None,
            Gateway::Sandbox => {
                let made = Arc::new(Sandbox::new(Arc::clone(&mongo), payment));
                sandbox = Some(Arc::clone(&made));
                Some(made)
            }
            Gateway::Stripe => Some(Arc::new(Stripe::new(payment)?)),
        };
        Ok(Self { sandbox, ..Self::over((mongo, live), sale, gateway, clock, config, process) })
    }

    /// The sandbox, if it is what takes the money.
    #[must_use]
    pub const fn sandbox(&self) -> Option<&Arc<Sandbox>> {
        self.sandbox.as_ref()
    }
}

impl<L, D> Payments<L, D> {
    /// Payments over these stores, by this gateway.
    #[must_use]
    pub fn over(
        (durable, live): (Arc<D>, Arc<Live<L>>),
        sale: Arc<Sale<L, D>>,
        gateway: Option<Arc<dyn PaymentGateway>>,
        clock: Arc<dyn Clock>,
        config: &Config,
        process: String,
    ) -> Self {
        let lease_ttl = Duration::from_millis(config.sale.lease_ttl_ms);
        Self { gateway, sandbox: None, durable, live, sale, clock, config: config.payment.clone(), lease_ttl, process }
    }

    fn gateway(&self) -> Result<&dyn PaymentGateway> {
        let off = || Error::refused(Code::PaymentsOff, "this service takes no payments");
        self.gateway.as_deref().ok_or_else(off)
    }

    /// The pause after so many failures.
    fn pause(&self, failures: u32) -> Duration {
        let doubled = 2_u64.saturating_pow(failures.saturating_sub(1));
        Duration::from_millis(self.config.retry_pause_ms.saturating_mul(doubled)).min(PAUSE_MAX)
    }
}
