//! Tags: units kept for a client.

use chrono::{DateTime, Timelike, Utc};

use super::{Inventory, Vouchers};
use crate::domain::ids::{ClientId, VoucherProductId};
use crate::domain::money::Money;
use crate::domain::voucher::{Unit, UnitId, UnitStatus};
use crate::error::{Code, Error, Result};
use crate::store::live::link::Link;
use crate::store::mongo::vouchers::units::Which;

/// Units in one write.
const TAGGED_AT_ONCE: u32 = 1_000;

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Keeps untagged units for a client, those that expire first. Returns how many: fewer than asked for if there are not
    /// as many.
    ///
    /// # Errors
    /// When a store does not answer: some may be tagged.
    pub async fn tag(
        &self,
        product: VoucherProductId,
        denomination: Money,
        client: ClientId,
        quantity: u32,
    ) -> Result<u32> {
        let which = Which { product, denomination, client: None, vendors: None, expires_from: self.sold_from() };
        self.retag(&which, Some(client), quantity).await
    }

    /// Lets go of units that were kept for a client, those that expire last. Returns how many.
    ///
    /// # Errors
    /// When a store does not answer: some may be untagged.
    pub async fn untag(
        &self,
        product: VoucherProductId,
        denomination: Money,
        client: ClientId,
        quantity: u32,
    ) -> Result<u32> {
        // Whenever they expire: what cannot be sold any more is not kept for anybody either.
        let expires_from = chrono::DateTime::UNIX_EPOCH;
        let which = Which { product, denomination, client: Some(client), vendors: None, expires_from };
        self.retag(&which, None, quantity).await
    }

    pub(super) async fn retag(&self, which: &Which, to: Option<ClientId>, quantity: u32) -> Result<u32> {
        let mut done = 0;
        while done < quantity {
            let wanted = (quantity - done).min(TAGGED_AT_ONCE);
            let units = self.durable.retag(which, to, wanted).await?;
            self.place(&units).await?;
            if units.is_empty() {
                break;
            }
            done += u32::try_from(units.len()).unwrap_or(u32::MAX);
        }
        Ok(done)
    }

    /// Stops a unit that nobody has seen from being sold, or shown.
    ///
    /// # Errors
    /// [`Code::VoucherState`] if it was shown already, or is blocked; when a store does not answer.
    pub async fn block(&self, id: UnitId) -> Result<Unit> {
        let unit = self.unit(id).await?;
        self.advance(&unit, UnitStatus::Blocked).await
    }

    /// Lets a blocked unit go on.
    ///
    /// # Errors
    /// [`Code::VoucherState`] if it is not blocked; when a store does not answer.
    pub async fn unblock(&self, id: UnitId) -> Result<Unit> {
        let unit = self.unit(id).await?;
        if unit.status != UnitStatus::Blocked {
            return Err(refused(&unit));
        }
        // As it was: an item that had it has it still.
        let to = if unit.item.is_some() { UnitStatus::Allocated } else { UnitStatus::Available };
        self.advance(&unit, to).await
    }

    /// Changes until when a unit can be used. From then on it has another place in its pool, or none.
    ///
    /// # Errors
    /// [`Code::VoucherState`] if it was shown already; when a store does not answer.
    pub async fn expire_at(&self, id: UnitId, at: DateTime<Utc>) -> Result<Unit> {
        let unit = self.unit(id).await?;
        // Scores are whole seconds.
        let at = at.with_nanosecond(0).unwrap_or(at);
        let changed = self.durable.expire_at(id, at).await?.ok_or_else(|| refused(&unit))?;
        self.place(std::slice::from_ref(&changed)).await?;
        Ok(changed)
    }

    async fn advance(&self, unit: &Unit, to: UnitStatus) -> Result<Unit> {
        let advanced = self.durable.advance_unit(unit.id, unit.item.as_deref(), to).await?;
        let advanced = advanced.ok_or_else(|| refused(unit))?;
        self.place(std::slice::from_ref(&advanced)).await?;
        Ok(advanced)
    }

    /// A unit.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn unit(&self, id: UnitId) -> Result<Unit> {
        let found = self.durable.units(&[id]).await?;
        found.into_iter().next().ok_or_else(|| Error::refused(Code::NotFound, "voucher unit not found"))
    }
}

fn refused(unit: &Unit) -> Error {
    Error::refused(Code::VoucherState, format!("the voucher unit is {}", unit.status.as_str()))
}
