//! `lua/confirm.lua`: a payment has arrived.

use super::Live;
use super::link::Link;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::reservation::{Confirmed, Reservation};
use crate::error::Result;

impl<L: Link> Live<L> {
    /// Confirms the reservation that `units` were paid for.
    ///
    /// # Errors
    /// When the live store does not answer: confirming again is safe. [`crate::error::Error::Damaged`]: nothing was changed.
    pub async fn confirm(
        &self,
        event: EventId,
        (user, product): (UserId, ProductId),
        reservation: &str,
        units: u32,
    ) -> Result<Confirmed> {
        let mut call = self.scripts.confirm.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.product(product, event))
            .key(self.keys.booking(user, product, event))
            .key(self.keys.winners(event, product))
            .key(self.keys.journal(event))
            .key(self.keys.holds(event))
            .arg(reservation)
            .arg(user.to_string())
            .arg(product.to_string())
            .arg(units);
        let reply = self.invoke("confirm", &call).await?;
        let told = || -> Result<Reservation> { reply.reservation(1, (user, product, event)) };
        match reply.tag() {
            "CONFIRMED" => Ok(Confirmed::OnTime(told()?)),
            "RETAKEN" => Ok(Confirmed::Late(told()?)),
            "BEFORE" => Ok(Confirmed::Before(told()?)),
            "NO_STOCK" => Ok(Confirmed::NoStock(told()?)),
            "CANCELLED" => Ok(Confirmed::Cancelled(told()?)),
            "UNKNOWN" => Ok(Confirmed::Unknown),
            "NOT_RUNNING" => Ok(Confirmed::NotRunning(reply.status(1)?)),
            "DAMAGED" => Err(reply.damaged("the script refused")),
            _ => Err(reply.damaged("unknown tag")),
        }
    }
}
