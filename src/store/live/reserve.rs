//! `lua/reserve.lua`: the decision that Orbit exists for. One round trip.

use super::link::{Link, Wire};
use super::scripts::{self, Reply};
use super::{HoldMember, Live, replicas, within};
use crate::config::Durability;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::reservation::{Release, ReserveOutcome, ReserveRequest};
use crate::error::{Dependency, Error, Result};

/// How often a purchase that finds no stock looks for holds whose time has passed, before it is sold out.
const RECLAIMS_MAX: u32 = 4;

/// What the script decided.
enum Decision {
    Final(ReserveOutcome),
    /// These holds have run out: they are to be released first.
    Reclaim(Vec<HoldMember>),
}

impl<L: Link> Live<L> {
    /// Decides one reservation.
    ///
    /// # Errors
    /// [`Error::Unavailable`] of the live store: the outcome is unknown, or too few replicas have it; the same buyer asking
    /// again learns it. Of our capacity: it was not tried.
    /// [`Error::Damaged`]: the live record is wrong; nothing was changed.
    pub async fn reserve(&self, request: &ReserveRequest) -> Result<ReserveOutcome> {
        let _turn = tokio::time::timeout(self.purchase_wait, self.purchase_turns.acquire())
            .await
            .map_err(|_| Error::timed_out(Dependency::Capacity, "waiting for a turn to reserve"))?;
        // All of it, the holds that it releases on the way included, has one deadline.
        match tokio::time::timeout(self.purchase_deadline, self.reserve_or_reclaim(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::timed_out(Dependency::LiveStore, "reserve")),
        }
    }

    async fn reserve_or_reclaim(&self, request: &ReserveRequest) -> Result<ReserveOutcome> {
        for _ in 0..RECLAIMS_MAX {
            match self.decide(request).await? {
                Decision::Final(outcome) => return Ok(outcome),
                Decision::Reclaim(holds) => self.reclaim(request.event, &holds).await?,
            }
        }
        match self.decide(request).await? {
            Decision::Final(outcome) => Ok(outcome),
            // Others take what we release before we do.
            Decision::Reclaim(_) => Ok(ReserveOutcome::SoldOut),
        }
    }

    async fn reclaim(&self, event: EventId, holds: &[HoldMember]) -> Result<()> {
        let releases: Vec<Release> = holds.iter().map(|hold| Release::of_due(hold.user, hold.product)).collect();
        self.release(event, &releases).await.map(|_| ())
    }

    async fn decide(&self, request: &ReserveRequest) -> Result<Decision> {
        let (user, product, event) = (request.user, request.product, request.event);
        let mut call = self.scripts.reserve.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.product(product, event))
            .key(self.keys.booking(user, product, event))
            .key(self.keys.winners(event, product))
            .key(self.keys.bookings(event))
            .key(self.keys.product_keys(event))
            .key(self.keys.journal(event))
            .key(self.keys.holds(event))
            .arg(user.to_string())
            .arg(product.to_string())
            .arg(event.to_string())
            .arg(&request.reservation_id)
            .arg(request.quantity)
            .arg(&request.idempotency_key)
            .arg(if self.promise.level == Durability::Replicas { "1" } else { "" });
        if self.promise.level == Durability::Replicas {
            let (parts, acknowledged) = within(self.purchase_deadline, "reserve", async {
                replicas::run_and_wait(&call, self.promise, self.recognised(self.waiting_wire().await?)?).await
            })
            .await?;
            return match decode(&Reply::new("reserve", parts), user, product, event)? {
                Decision::Final(outcome) => {
                    replicas::require_acknowledged(outcome, acknowledged, self.promise).map(Decision::Final)
                }
                reclaim @ Decision::Reclaim(_) => Ok(reclaim),
            };
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

fn decode(reply: &Reply, user: UserId, product: ProductId, event: EventId) -> Result<Decision> {
    let reservation = || reply.reservation(1, (user, product, event));
    let outcome = match reply.tag() {
        "RESERVED" => ReserveOutcome::Reserved(reservation()?),
        "REPLAYED" => ReserveOutcome::Replayed(reservation()?),
        "ALREADY_RESERVED" => ReserveOutcome::AlreadyReserved(reservation()?),
        "KEY_REUSED" => ReserveOutcome::KeyReused,
        "SOLD_OUT" => ReserveOutcome::SoldOut,
        "NOT_LIVE" => ReserveOutcome::NotLive(reply.status(1)?),
        "UNKNOWN_PRODUCT" => ReserveOutcome::UnknownProduct,
        "LIMIT_REACHED" => ReserveOutcome::LimitReached { limit: reply.parse(1)? },
        "RECLAIM" => {
            let member = |text: &String| HoldMember::parse(text).ok_or_else(|| reply.damaged("a hold cannot be read"));
            return reply.rest().iter().map(member).collect::<Result<_>>().map(Decision::Reclaim);
        }
        "DAMAGED" => return Err(reply.damaged("the script refused")),
        _ => return Err(reply.damaged("unknown tag")),
    };
    Ok(Decision::Final(outcome))
}
