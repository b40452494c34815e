//! Units that come in.

use chrono::{DateTime, Utc};

use super::{Inventory, Vouchers};
use crate::domain::ids::{ClientId, VendorId, VoucherProductId};
use crate::domain::money::Money;
use crate::domain::voucher::{Secrets, Unit, UnitId, UnitStatus};
use crate::error::Result;
use crate::store::live::link::Link;
use crate::store::mongo::vouchers::units::NewUnit;

/// A unit as it comes.
#[derive(Debug, Clone)]
pub struct IncomingUnit {
    /// What it is a voucher of.
    pub product: VoucherProductId,
    /// What it is worth.
    pub denomination: Money,
    /// Who issued it.
    pub vendor: VendorId,
    /// For whom it is kept.
    pub client: Option<ClientId>,
    /// Until when it can be used.
    pub expires_at: DateTime<Utc>,
    /// What it is about.
    pub secrets: Secrets,
    /// What it came with, e.g. `IMP-<uuid>-<row>`.
    pub origin: String,
}

/// What became of units that came in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Units that are new.
    pub added: usize,
    /// Positions of those whose secrets came in before: nothing was changed about them.
    pub duplicates: Vec<usize>,
}

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Seals and writes units, and puts them in their pools. The same units again are duplicates.
    ///
    /// # Errors
    /// When a store does not answer: some may have been added. Adding the same again is safe.
    pub async fn add(&self, incoming: &[IncomingUnit]) -> Result<Added> {
        if incoming.is_empty() {
            return Ok(Added::default());
        }
        let new = self.sealed_units(incoming).await?;
        let duplicates = self.durable.insert_units(&new).await?;
        let is_new = |(index, new): (usize, NewUnit)| (!duplicates.contains(&index)).then_some(new.unit);
        let units: Vec<Unit> = new.into_iter().enumerate().filter_map(is_new).collect();
        self.place(&units).await?;
        Ok(Added { added: units.len(), duplicates })
    }

    /// Numbers and seals units, in this order.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn sealed_units(&self, incoming: &[IncomingUnit]) -> Result<Vec<NewUnit>> {
        if incoming.is_empty() {
            return Ok(Vec::new());
        }
        let first = self.durable.take_numbers(incoming.len()).await?;
        (first..).zip(incoming).map(|(number, unit)| self.sealed(UnitId::new(number), unit)).collect()
    }

    fn sealed(&self, id: UnitId, incoming: &IncomingUnit) -> Result<NewUnit> {
        let IncomingUnit { product, denomination, vendor, client, expires_at, secrets, origin } = incoming;
        let unit = Unit {
            id,
            product: *product,
            denomination: *denomination,
            vendor: *vendor,
            client: *client,
            expires_at: *expires_at,
            status: UnitStatus::Available,
            item: None,
            revision: 1,
        };
        Ok(NewUnit {
            unit,
            secrets: self.keyring.seal(id, secrets)?,
            code_hash: secrets.code.as_ref().map(|code| self.keyring.code_hash(code)),
            checksum: self.keyring.checksum_text(secrets),
            origin: origin.clone(),
        })
    }
}
