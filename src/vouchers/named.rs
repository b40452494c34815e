//! What vouchers are of, who issues them, and for whom.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use super::{Inventory, Vouchers};
use crate::domain::ids::{ClientId, UserId, VendorId, VoucherProductId};
use crate::domain::page::{Listed, Page};
use crate::domain::voucher::{Client, Vendor, VoucherProduct};
use crate::error::{Code, Error, FieldError, Result};
use crate::store::live::link::Link;
use crate::store::mongo::new_id;
use crate::store::mongo::vouchers::NamedRecords;
use crate::store::mongo::vouchers::named::Named;

const ALL: u32 = 500;

pub(super) fn unknown(what: &str) -> Error {
    Error::refused(Code::NotFound, format!("{what} not found"))
}

async fn enter<T: Named>(records: &NamedRecords<T>, record: T) -> Result<T> {
    if records.enter(&record).await? {
        return Ok(record);
    }
    Err(Error::refused(Code::NameTaken, "this name is taken, whatever its case"))
}

async fn known<T: Named>(records: &NamedRecords<T>, id: [u8; 12], what: &str) -> Result<T> {
    records.by_id(id).await?.ok_or_else(|| unknown(what))
}

impl Vouchers {
    /// An id that no other record has, and the moment at which it is entered.
    #[must_use]
    pub fn stamp(&self) -> ([u8; 12], DateTime<Utc>) {
        (new_id(), self.clock.now())
    }

    /// Enters a vendor.
    ///
    /// # Errors
    /// [`Code::NameTaken`]; when the database does not answer.
    pub async fn enter_vendor(&self, vendor: Vendor) -> Result<Vendor> {
        enter(&self.durable.vendors, vendor).await
    }

    /// Enters a client.
    ///
    /// # Errors
    /// [`Code::NameTaken`]; vendors that are not there; when the database does not answer.
    pub async fn enter_client(&self, client: Client) -> Result<Client> {
        self.check_vendors("refuses", &client.refuses).await?;
        enter(&self.durable.clients, client).await
    }

    /// Changes a client's members, refusals and validity.
    ///
    /// # Errors
    /// [`Code::NotFound`]; vendors that are not there; when the database does not answer.
    pub async fn change_client(&self, client: Client) -> Result<Client> {
        self.check_vendors("refuses", &client.refuses).await?;
        self.durable.clients.change(&client).await?.ok_or_else(|| unknown("client"))
    }

    /// Enters a product.
    ///
    /// # Errors
    /// [`Code::NameTaken`]; vendors that are not there; when the database does not answer.
    pub async fn enter_product(&self, product: VoucherProduct) -> Result<VoucherProduct> {
        self.check_vendors("vendors", &product.vendors).await?;
        enter(&self.durable.voucher_products, product).await
    }

    async fn check_vendors(&self, field: &str, ids: &[VendorId]) -> Result<()> {
        for (index, id) in ids.iter().enumerate() {
            if self.durable.vendors.by_id(id.bytes()).await?.is_none() {
                let (field, message) = (format!("{field}[{index}]"), "there is no such vendor".to_owned());
                return Err(Error::Invalid { fields: vec![FieldError { field, message }] });
            }
        }
        Ok(())
    }

    /// A vendor.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn vendor(&self, id: VendorId) -> Result<Vendor> {
        known(&self.durable.vendors, id.bytes(), "vendor").await
    }

    /// The client for which an account may order.
    ///
    /// # Errors
    /// [`Code::RoleRequired`] if there is none; when the database does not answer.
    pub async fn client_of(&self, member: UserId) -> Result<Client> {
        let found = self.durable.clients.of_member(member).await?;
        found.ok_or_else(|| Error::refused(Code::RoleRequired, "this account orders for no client"))
    }

    /// Vendors, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn vendors(&self, page: Page) -> Result<Listed<Vendor>> {
        self.durable.vendors.list(page).await
    }

    /// Clients, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn clients(&self, page: Page) -> Result<Listed<Client>> {
        self.durable.clients.list(page).await
    }

    /// Products, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn products(&self, page: Page) -> Result<Listed<VoucherProduct>> {
        self.durable.voucher_products.list(page).await
    }
}

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// A product.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn product(&self, id: VoucherProductId) -> Result<VoucherProduct> {
        let found = self.durable.voucher_product(id.bytes()).await?;
        found.ok_or_else(|| unknown("voucher product"))
    }

    /// A client.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn client(&self, id: ClientId) -> Result<Client> {
        let found = self.durable.voucher_client(id.bytes()).await?;
        found.ok_or_else(|| unknown("client"))
    }

    /// The ids of all products.
    pub(super) async fn product_ids(&self) -> Result<Vec<VoucherProductId>> {
        let (mut ids, mut after) = (HashSet::new(), None);
        loop {
            let page = self.durable.voucher_products(Page { limit: ALL, after }).await?;
            ids.extend(page.items.iter().map(|product| product.id));
            after = page.next;
            if after.is_none() {
                return Ok(ids.into_iter().collect());
            }
        }
    }
}
