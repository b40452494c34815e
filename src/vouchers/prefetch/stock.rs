//! Where bought codes go.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;

use crate::config::SecretString;
use crate::domain::ids::{ClientId, PrefetchJobId, VendorId, VoucherProductId};
use crate::domain::money::Money;
use crate::error::Result;

/// A voucher as its vendor delivers it. It has a code or a link, perhaps both.
#[derive(Debug, Clone)]
pub struct BoughtVoucher {
    /// What is typed in to redeem it.
    pub code: Option<SecretString>,
    /// What is asked for beside the code.
    pub pin: Option<SecretString>,
    /// Where it is redeemed.
    pub claim_url: Option<SecretString>,
    /// The vendor's name for it.
    pub reference: Option<SecretString>,
    /// When it can no longer be redeemed, if the vendor says.
    pub expires_at: Option<DateTime<Utc>>,
}

/// What a vendor has delivered of one order.
#[derive(Debug)]
pub struct BoughtBatch {
    /// Which product.
    pub product: VoucherProductId,
    /// Of which face value.
    pub denomination: Money,
    /// By whom.
    pub vendor: VendorId,
    /// For whom it is reserved, if for somebody.
    pub client: Option<ClientId>,
    /// By which job.
    pub job: PrefetchJobId,
    /// The order's name. It is how a batch is recognised that is added again.
    pub external_id: String,
    /// The codes.
    pub vouchers: Vec<BoughtVoucher>,
}

/// What of an order is in stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// Units of this order that are in stock: the same number however often the order is added.
    pub units: u32,
}

/// Takes bought codes in.
pub trait Stock: Send + Sync {
    /// Adds what a vendor has delivered. A code that is in stock already, by this order or by another one, is not added
    /// again; it counts for the order that brought it.
    ///
    /// # Errors
    /// When it is unknown whether everything was added: adding it again is safe.
    fn add(&self, batch: BoughtBatch) -> BoxFuture<'_, Result<Added>>;
}
