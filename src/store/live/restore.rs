//! `lua/restore.lua`: durable orders are brought back into a live store that has lost them.

use super::bookings::SLOT_KEPT;
use super::link::Link;
use super::{Live, OpeningToken};
use crate::domain::ids::EventId;
use crate::domain::order::Order;
use crate::domain::sale::SaleStatus;
use crate::error::Result;

/// What came of a batch of orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Written.
    pub written: u64,
    /// Known already.
    pub known: u64,
    /// Without a unit: more units are ordered than the product has.
    pub short: u64,
    /// Of a product that the sale does not have.
    pub strange: u64,
}

/// What came of restoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restoring {
    /// A batch was dealt with.
    Done(Restored),
    /// The sale has another status; nothing was changed.
    Refused(SaleStatus),
    /// The opening token is not good any more; nothing was changed.
    TokenLost,
}

impl<L: Link> Live<L> {
    /// Writes a batch of durable orders into a sale that nobody can buy in: one that is being rebuilt under `token`, or
    /// without one a paused sale.
    ///
    /// # Errors
    /// When the live store does not answer; restoring again is safe.
    pub async fn restore(
        &self,
        event: EventId,
        orders: &[Order],
        token: Option<&OpeningToken>,
        ttl_ms: u64,
    ) -> Result<Restoring> {
        let status = if token.is_some() { SaleStatus::NotStarted } else { SaleStatus::Paused };
        let mut call = self.scripts.restore.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.opening(event))
            .key(self.keys.bookings(event))
            .key(self.keys.holds(event))
            .arg(status.as_str())
            .arg(token.map_or("", OpeningToken::as_str))
            .arg(ttl_ms);
        for order in orders {
            call.key(self.keys.product(order.product, event))
                .key(self.keys.booking(order.user, order.product, event))
                .key(self.keys.winners(event, order.product))
                .arg(&order.reservation_id)
                .arg(order.user.to_string())
                .arg(order.product.to_string())
                .arg(event.to_string())
                .arg(order.quantity)
                .arg(order.price.minor)
                .arg(order.price.currency.code())
                .arg(order.status.as_str())
                .arg(order.created_at.timestamp_millis())
                .arg(order.revision)
                .arg(&order.idempotency_key)
                .arg(order.expires_at.map(|at| at.timestamp_millis().to_string()).unwrap_or_default())
                .arg(order.returned)
                .arg(if order.slot_kept { SLOT_KEPT } else { "" });
        }
        let reply = self.invoke("restore", &call).await?;
        match reply.tag() {
            "RESTORED" => Ok(Restoring::Done(Restored {
                written: reply.parse(1)?,
                known: reply.parse(2)?,
                short: reply.parse(3)?,
                strange: reply.parse(4)?,
            })),
            "REFUSED" => Ok(Restoring::Refused(reply.status(1)?)),
            "TOKEN_LOST" => Ok(Restoring::TokenLost),
            _ => Err(reply.damaged("unknown tag")),
        }
    }
}
