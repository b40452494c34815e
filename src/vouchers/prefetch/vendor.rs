//! What a voucher vendor is to us.
//!
//! Every call has a deadline that cancels it. An order without an answer has an unknown outcome: it is asked about, or made
//! again under the same external id. It is never guessed.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::stock::BoughtVoucher;
use crate::domain::ids::VendorId;
use crate::domain::money::Money;
use crate::error::Result;

/// What a vendor could sell at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Availability {
    /// Units.
    pub units: u32,
    /// The discount in basis points, if the vendor names one: else what was agreed on is in force.
    pub discount_bp: Option<u32>,
}

/// What a vendor is to sell.
#[derive(Debug, Clone)]
pub struct VendorOrder<'a> {
    /// Our name for the order. The same name is the same order, however often it is sent.
    pub external_id: &'a str,
    /// The vendor's name for the product.
    pub product_ref: &'a str,
    /// The face value.
    pub denomination: Money,
    /// Units.
    pub count: u32,
}

/// Why a vendor does not sell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whether asking again for the same is pointless.
    pub permanent: bool,
    /// The vendor's word for it, such as `out_of_stock`.
    pub reason: String,
}

/// What became of an order.
#[derive(Debug)]
pub enum OrderOutcome {
    /// It is sold; these are the codes, all of them, and the same whenever it is asked about.
    Fulfilled(Vec<BoughtVoucher>),
    /// The vendor has accepted it and is not ready.
    Pending,
    /// Nothing was sold under this external id, and nothing will be, unless it is ordered again.
    Refused(Refusal),
}

/// Sells voucher codes.
pub trait VendorApi: std::fmt::Debug + Send + Sync {
    /// How much there is of a product.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`] when the vendor does not say.
    fn available<'a>(&'a self, product_ref: &'a str, denomination: Money) -> BoxFuture<'a, Result<Availability>>;

    /// Buys. An external id that the vendor has sold under buys nothing more: the answer is what became of it.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`]: whether it was sold is unknown; [`Self::find_order`] knows.
    fn order<'a>(&'a self, order: &'a VendorOrder<'a>) -> BoxFuture<'a, Result<OrderOutcome>>;

    /// What became of an order; `None` if the vendor says that it has none of this name.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`] when the vendor does not say.
    fn find_order<'a>(&'a self, external_id: &'a str) -> BoxFuture<'a, Result<Option<OrderOutcome>>>;
}

/// The vendors that there are.
pub trait Vendors: Send + Sync {
    /// The way to a vendor; `None` if there is none, or not at present.
    ///
    /// # Errors
    /// When it cannot be found out.
    fn api(&self, vendor: VendorId) -> BoxFuture<'_, Result<Option<Arc<dyn VendorApi>>>>;
}

impl<F: Fn(VendorId) -> Option<Arc<dyn VendorApi>> + Send + Sync> Vendors for F {
    fn api(&self, vendor: VendorId) -> BoxFuture<'_, Result<Option<Arc<dyn VendorApi>>>> {
        let found = self(vendor);
        Box::pin(async move { Ok(found) })
    }
}
