//! A purchase: one call to the live store, and nothing else.

use super::{Durable, Sale};
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::reservation::{Reservation, ReserveOutcome, ReserveRequest};
use crate::error::{Error, Result};
use crate::store::live::link::Link;
use crate::telemetry::metrics::{PURCHASE_SECONDS, PURCHASES};

impl<L: Link, D: Durable> Sale<L, D> {
    /// Decides one reservation within the purchase deadline.
    ///
    /// # Errors
    /// [`crate::error::Error::Unavailable`] when the outcome is unknown: the same buyer asking again gets the
    /// reservation that was made, never a second one.
    pub async fn reserve(&self, request: &ReserveRequest) -> Result<ReserveOutcome> {
        let started = tokio::time::Instant::now();
        let outcome = self.live.reserve(request).await;
        metrics::histogram!(PURCHASE_SECONDS).record(started.elapsed().as_secs_f64());
        metrics::counter!(PURCHASES, "outcome" => label(&outcome)).increment(1);
        outcome
    }
}

const fn label(outcome: &Result<ReserveOutcome>) -> &'static str {
    match outcome {
        Ok(ReserveOutcome::Reserved(_)) => "reserved",
        Ok(ReserveOutcome::Replayed(_)) => "replayed",
        Ok(ReserveOutcome::AlreadyReserved(_)) => "already_reserved",
        Ok(ReserveOutcome::KeyReused) => "key_reused",
        Ok(ReserveOutcome::SoldOut) => "sold_out",
        Ok(ReserveOutcome::NotLive(_)) => "not_live",
        Ok(ReserveOutcome::UnknownProduct) => "unknown_product",
        Ok(ReserveOutcome::LimitReached { .. }) => "limit_reached",
        Err(_) => "error",
    }
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// A buyer's reservation of a product: from the live store while the sale runs, from its order afterwards.
    ///
    /// # Errors
    /// [`crate::error::Code::NotFound`] if there is none; or when a store does not answer.
    pub async fn reservation_of(&self, user: UserId, product: ProductId, event: EventId) -> Result<Reservation> {
        if let Some(reservation) = self.live.booking(user, product, event).await? {
            return Ok(reservation);
        }
        let order = self.durable.order_of_buyer(event, product, user).await?;
        let order = order.ok_or_else(|| Error::not_found("reservation not found"))?;
        Ok(order.reservation())
    }
}
