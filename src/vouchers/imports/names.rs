//! What rows name, looked up once for each name.

use std::collections::HashMap;

use super::super::import::{ImportRow, Reason, RowError};
use super::super::{IncomingUnit, Vouchers};
use crate::domain::ids::{ClientId, ImportId, VendorId};
use crate::domain::money::Money;
use crate::domain::voucher::VoucherProduct;
use crate::error::Result;
use crate::store::mongo::Mongo;
use crate::store::mongo::vouchers::NamedRecords;
use crate::store::mongo::vouchers::named::{Named, name_key};

/// Names of an import that are known by now. A file has few, so all are kept; one without a record is looked up again.
#[derive(Debug, Default)]
pub(super) struct Names {
    products: HashMap<String, VoucherProduct>,
    vendors: HashMap<String, VendorId>,
    clients: HashMap<String, ClientId>,
}

async fn learn<'a, T: Named, V>(
    records: &NamedRecords<T>,
    known: &mut HashMap<String, V>,
    names: impl Iterator<Item = &'a str>,
    value: impl Fn(T) -> V,
) -> Result<()> {
    let mut missing: Vec<&str> = names.filter(|name| !known.contains_key(&name_key(name))).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    for record in records.by_names(&missing).await? {
        known.insert(name_key(record.name()), value(record));
    }
    Ok(())
}

impl Names {
    /// Looks up what these rows name and is not known yet.
    pub(super) async fn learn(&mut self, mongo: &Mongo, rows: &[ImportRow]) -> Result<()> {
        let products = rows.iter().map(|row| row.product.as_str());
        learn(&mongo.voucher_products, &mut self.products, products, |product| product).await?;
        let vendors = rows.iter().map(|row| row.vendor.as_str());
        learn(&mongo.vendors, &mut self.vendors, vendors, |vendor| vendor.id).await?;
        let clients = rows.iter().filter_map(|row| row.client.as_deref());
        learn(&mongo.clients, &mut self.clients, clients, |client| client.id).await
    }
}

impl Vouchers {
    /// The unit that a row is, or everything that its names are not.
    pub(super) fn named(&self, names: &Names, row: ImportRow, import: ImportId) -> Result<IncomingUnit, Vec<RowError>> {
        let mut errors = Vec::new();
        let mut wrong =
            |column: &'static str, reason| errors.push(RowError { row: row.row, column: column.into(), reason });
        let product = names.products.get(&name_key(&row.product));
        if product.is_none() {
            wrong("Product", Reason::Unknown("product"));
        }
        let vendor = names.vendors.get(&name_key(&row.vendor)).copied();
        match (vendor, product) {
            (None, _) => wrong("Vendor", Reason::Unknown("vendor")),
            (Some(vendor), Some(product)) if !product.vendors.contains(&vendor) => {
                wrong("Vendor", Reason::NotOfProduct("vendor"));
            }
            _ => {}
        }
        let client = row.client.as_deref().map(|name| names.clients.get(&name_key(name)).copied());
        if client == Some(None) {
            wrong("Tagged Client Name", Reason::Unknown("client"));
        }
        let worth = product.and_then(|product| match self.worth(&row, product) {
            Ok(worth) => Some(worth),
            Err((column, reason)) => {
                wrong(column, reason);
                None
            }
        });
        match (product, vendor, worth) {
            (Some(product), Some(vendor), Some(denomination)) if errors.is_empty() => Ok(IncomingUnit {
                product: product.id,
                denomination,
                vendor,
                client: client.flatten(),
                expires_at: row.expires_at,
                secrets: row.secrets,
                origin: format!("IMP-{import}-{}", row.row),
            }),
            _ => Err(errors),
        }
    }

    fn worth(&self, row: &ImportRow, product: &VoucherProduct) -> Result<Money, (&'static str, Reason)> {
        if row.currency.is_some_and(|currency| currency != product.currency) {
            return Err(("Currency", Reason::OtherCurrency));
        }
        let minor = row
            .denomination_in(self.currency, product.currency)
            .map_err(|error| ("Denomination", Reason::Amount(error)))?;
        if !product.denominations.contains(&minor) {
            return Err(("Denomination", Reason::NotOfProduct("denomination")));
        }
        Ok(Money { minor, currency: product.currency })
    }
}
