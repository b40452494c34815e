//! Units that are codes: what a sale needs of the voucher inventory.
//!
//! A sale opens with as many codes as it has units, so each confirmed reservation finds one. The codes are told of
//! reservations when those are durable, before the journal forgets them, and are taken back before a reservation is cancelled.

use futures::future::BoxFuture;

use super::{Durable, ReservationRef, Sale};
use crate::domain::event::Event;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};
use crate::store::live::link::Link;

/// Who cancels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledBy {
    /// The buyer, who may keep nothing of it.
    Buyer,
    /// The seller, an administrator, or a refund.
    Others,
}

/// The codes behind units. Every call can be repeated, and fails when a store does not answer.
pub trait Codes: Send + Sync {
    /// Keeps a code for each unit of the event's products whose units are codes, before the sale opens.
    fn keep<'a>(&'a self, event: &'a Event, run: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Keeps as many codes as a product has units now, and returns how many are missing.
    fn keep_more(&self, product: ProductId) -> BoxFuture<'_, Result<u64>>;

    /// These reservations are durable.
    fn follow<'a>(&'a self, event: EventId, reservations: &'a [Reservation]) -> BoxFuture<'a, Result<()>>;

    /// Every reservation of the event is durable.
    fn follow_all(&self, event: EventId) -> BoxFuture<'_, Result<()>>;

    /// A reservation is about to be cancelled: all of it, or some `units`. Returns how many of its codes were shown: they are
    /// of no use to another buyer.
    fn take_back<'a>(
        &'a self,
        of: &'a ReservationRef,
        units: Option<u32>,
        by: CancelledBy,
    ) -> BoxFuture<'a, Result<u64>>;
}

impl<L: Link, D: Durable> Sale<L, D> {
    pub(super) async fn keep_codes(&self, event: &Event, run: &str) -> Result<()> {
        match &self.codes {
            Some(codes) => codes.keep(event, run).await,
            None => Ok(()),
        }
    }

    pub(super) async fn keep_more_codes(&self, product: ProductId) -> Result<u64> {
        match &self.codes {
            Some(codes) => codes.keep_more(product).await,
            None => Ok(0),
        }
    }

    pub(super) async fn codes_follow(&self, event: EventId, reservations: &[Reservation]) -> Result<()> {
        match &self.codes {
            Some(codes) if !reservations.is_empty() => codes.follow(event, reservations).await,
            _ => Ok(()),
        }
    }

    pub(super) async fn codes_follow_all(&self, event: EventId) -> Result<()> {
        match &self.codes {
            Some(codes) => codes.follow_all(event).await,
            None => Ok(()),
        }
    }

    pub(super) async fn take_codes_back(
        &self,
        of: &ReservationRef,
        units: Option<u32>,
        by: CancelledBy,
    ) -> Result<u64> {
        match &self.codes {
            Some(codes) => codes.take_back(of, units, by).await,
            None => Ok(0),
        }
    }

    /// Codes that were shown are lost to a running sale: others take their place, or its units are withdrawn.
    pub(super) async fn replace_codes(&self, event: &Event, of: &ReservationRef) {
        let replaced = async {
            let missing = self.keep_more_codes(of.product).await?;
            if missing > 0 {
                let units = i64::try_from(missing).unwrap_or(i64::MAX);
                self.restock(event, of.product, format!("codes shown {}", of.id), -units).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = replaced.await {
            tracing::error!(product = %of.product, error = %error, "a product has fewer codes than units: import more");
        }
    }
}
