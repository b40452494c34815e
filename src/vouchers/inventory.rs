//! What vouchers need of the durable store.
//!
//! Allocation, placing, orders and what repairs them are written against this and not against MongoDB's driver, so that the
//! simulator can run the same code over a store in memory that fails when it is told to. In the service it is always [`Mongo`].

use std::future::Future;

use chrono::{DateTime, Utc};

use crate::domain::ids::{ClientId, UserId, VoucherOrderId, VoucherProductId};
use crate::domain::page::{Listed, Page};
use crate::domain::voucher::{Client, Unit, UnitId, UnitStatus, VoucherOrder, VoucherOrderStatus, VoucherProduct};
use crate::error::Result;
use crate::store::mongo::Mongo;
use crate::store::mongo::vouchers::units::{Assignment, NewUnit, SealedSecrets, Which};

macro_rules! inventory {
    ($($(#[doc = $doc:literal])+ fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $answer:ty = $repository:ident.$method:ident;)+) => {
        /// The durable side of vouchers. What each call does is said at the repository behind it. Every call fails when the
        /// store does not answer in time.
        pub trait Inventory: Send + Sync + 'static {
            $($(#[doc = $doc])+ fn $name(&self $(, $arg: $type)*) -> impl Future<Output = Result<$answer>> + Send;)+
        }

        impl Inventory for Mongo {
            $(async fn $name(&self $(, $arg: $type)*) -> Result<$answer> {
                self.$repository.$method($($arg),*).await
            })+
        }
    };
}

inventory! {
    /// Gives out numbers that follow each other, and returns the first.
    fn take_numbers(&self, count: usize) -> u64 = voucher_units.take_numbers;
    /// Writes units, each on its own. Returns the positions of those that are there already.
    fn insert_units(&self, units: &[NewUnit]) -> Vec<usize> = voucher_units.insert;
    /// Gives units to items: each only if it is as it was when it was claimed, and if the item has none.
    fn assign(&self, assignments: &[Assignment]) -> () = voucher_units.assign;
    /// The units of these items, in no order.
    fn units_of_items(&self, items: &[String]) -> Vec<Unit> = voucher_units.of_items;
    /// These units, in no order.
    fn units(&self, ids: &[UnitId]) -> Vec<Unit> = voucher_units.by_ids;
    /// Takes the units of these items back. Returns those that it has changed.
    fn release(&self, items: &[String]) -> Vec<Unit> = voucher_units.release;
    /// Keeps units for a client, or lets go of a client's. Returns those that it has changed.
    fn retag(&self, which: &Which, to: Option<ClientId>, quantity: u32) -> Vec<Unit> = voucher_units.retag;
    /// Moves a unit to another status, from one that may become it.
    fn advance_unit(&self, id: UnitId, item: Option<&str>, to: UnitStatus) -> Option<Unit> = voucher_units.advance;
    /// Changes until when a unit can be used, if it has not been shown.
    fn expire_at(&self, id: UnitId, at: DateTime<Utc>) -> Option<Unit> = voucher_units.expire_at;
    /// Units of which the live store is to be told.
    fn unplaced(&self, limit: u32) -> Vec<Unit> = voucher_units.unplaced;
    /// The live store knows these units in these revisions.
    fn placed(&self, units: &[Unit]) -> () = voucher_units.placed;
    /// Units that can be had, soonest expiry first.
    fn soonest(&self, which: &Which, limit: u32) -> Vec<Unit> = voucher_units.soonest;
    /// Available units of a product, page by page.
    fn units_page(&self, product: VoucherProductId, after: Option<UnitId>, limit: u32) -> Vec<Unit> = voucher_units.page;
    /// What units are about, sealed.
    fn secrets(&self, ids: &[UnitId]) -> Vec<(UnitId, SealedSecrets)> = voucher_units.secrets;
    /// Writes a new order, to be looked at again; false if the client has one of this reference.
    fn create_order(&self, order: &VoucherOrder, due_at: DateTime<Utc>) -> bool = voucher_orders.create;
    /// The order with this id.
    fn order(&self, id: VoucherOrderId) -> Option<VoucherOrder> = voucher_orders.by_id;
    /// The client's order of this reference.
    fn order_of_reference(&self, client: ClientId, reference: &str) -> Option<VoucherOrder> = voucher_orders.by_reference;
    /// Moves an order to another status, if it is in one of these and in this round.
    fn advance_order(&self, order: &VoucherOrder, from: &[VoucherOrderStatus], to: VoucherOrderStatus, reason: Option<&str>, due_at: Option<DateTime<Utc>>) -> bool = voucher_orders.advance;
    /// Orders that are to be looked at again.
    fn due_orders(&self, now: DateTime<Utc>, limit: u32) -> Vec<VoucherOrder> = voucher_orders.due;
    /// An order that is as it was seen is not looked at any more.
    fn rest_order(&self, order: &VoucherOrder) -> () = voucher_orders.rest;
    /// Records which units filled an order.
    fn log_inward(&self, order: VoucherOrderId, units: &[Unit]) -> () = voucher_orders.log_inward;
    /// Records that somebody has seen the codes of an order.
    fn log_view(&self, order: VoucherOrderId, by: UserId, at: DateTime<Utc>) -> () = voucher_orders.log_view;
    /// What vouchers are of.
    fn voucher_product(&self, id: [u8; 12]) -> Option<VoucherProduct> = voucher_products.by_id;
    /// All that vouchers are of, page by page.
    fn voucher_products(&self, page: Page) -> Listed<VoucherProduct> = voucher_products.list;
    /// For whom vouchers are kept.
    fn voucher_client(&self, id: [u8; 12]) -> Option<Client> = clients.by_id;
}
