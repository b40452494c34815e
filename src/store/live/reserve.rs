//! `lua/reserve.lua`: the decision that Orbit exists for. One round trip.

use super::link::{Link, Wire};
use super::scripts::{self, Reply};
use super::{Live, replicas, within};
use crate::config::Durability;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::order::OrderStatus;
use crate::domain::reservation::{FIRST_REVISION, Reservation, ReserveOutcome, ReserveRequest};
use crate::error::{Dependency, Error, Result};

impl<L: Link> Live<L> {
    /// Decides one reservation.
    ///
    /// # Errors
    /// [`Error::Unavailable`] of the live store: the outcome is unknown, or too few replicas have it; the same buyer asking
    /// again learns it. Of our capacity: it was not tried.
    /// [`Error::Damaged`]: the live record is wrong; nothing was changed.
    pub async fn reserve(&self, request: &ReserveRequest) -> Result<ReserveOutcome> {
        let (user, product, event) = (request.user, request.product, request.event);
        let mut call = self.scripts.reserve.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.product(product, event))
            .key(self.keys.booking(user, product, event))
            .key(self.keys.winners(event, product))
            .key(self.keys.bookings(event))
            .key(self.keys.product_keys(event))
            .key(self.keys.journal(event))
            .arg(user.to_string())
            .arg(product.to_string())
            .arg(event.to_string())
            .arg(&request.reservation_id)
            .arg(request.quantity)
            .arg(&request.idempotency_key)
            .arg(if self.promise.level == Durability::Replicas { "1" } else { "" });
        let _turn = tokio::time::timeout(self.purchase_wait, self.purchase_turns.acquire())
            .await
            .map_err(|_| Error::timed_out(Dependency::Capacity, "waiting for a turn to reserve"))?;
        if self.promise.level == Durability::Replicas {
            let (parts, acknowledged) = within(self.purchase_deadline, "reserve", async {
                replicas::run_and_wait(&call, self.promise, self.recognised(self.waiting_wire().await?)?).await
            })
            .await?;
            let outcome = decode(&Reply::new("reserve", parts), user, product, event)?;
            return replicas::require_acknowledged(outcome, acknowledged, self.promise);
        }
        let parts = within(self.purchase_deadline, "reserve", async {
            scripts::run(&call, self.recognised(self.wire().await?)?).await
        })
        .await?;
        decode(&Reply::new("reserve", parts), user, product, event)
    }

    /// Only a server that knows every durable order decides purchases.
    fn recognised(&self, wire: L::Wire) -> redis::RedisResult<L::Wire> {
        if self.trusts(wire.run()) {
            return Ok(wire);
        }
        Err((redis::ErrorKind::Io, "the server behind the address changed; it is not recognised yet").into())
    }
}

fn decode(reply: &Reply, user: UserId, product: ProductId, event: EventId) -> Result<ReserveOutcome> {
    let reservation = || -> Result<Reservation> {
        let currency = money::currency(reply.field(4)?).ok_or_else(|| reply.damaged("unknown currency"))?;
        Ok(Reservation {
            id: reply.field(1)?.to_owned(),
            user,
            product,
            event,
            quantity: reply.parse(2)?,
            price: Money { minor: reply.parse(3)?, currency },
            status: OrderStatus::parse(reply.field(5)?).ok_or_else(|| reply.damaged("unknown order status"))?,
            booked_at_ms: reply.parse(6)?,
            revision: FIRST_REVISION,
            idempotency_key: String::new(),
        })
    };
    match reply.tag() {
        "RESERVED" => Ok(ReserveOutcome::Reserved(reservation()?)),
        "REPLAYED" => Ok(ReserveOutcome::Replayed(reservation()?)),
        "ALREADY_RESERVED" => Ok(ReserveOutcome::AlreadyReserved(reservation()?)),
        "SOLD_OUT" => Ok(ReserveOutcome::SoldOut),
        "NOT_LIVE" => Ok(ReserveOutcome::NotLive(reply.status(1)?)),
        "UNKNOWN_PRODUCT" => Ok(ReserveOutcome::UnknownProduct),
        "LIMIT_REACHED" => Ok(ReserveOutcome::LimitReached { limit: reply.parse(1)? }),
        "DAMAGED" => Err(reply.damaged("the script refused")),
        _ => Err(reply.damaged("unknown tag")),
    }
}
