//! `lua/release.lua`: units go back to stock, each exactly once.

use super::Live;
use super::bookings::SLOT_KEPT;
use super::link::Link;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::order::OrderStatus;
use crate::domain::reservation::{Release, Released};
use crate::domain::sale::SaleStatus;
use crate::error::Result;

/// Fields of each reservation in the answer: an outcome, and the reservation.
const FIELDS_EACH: usize = 10;

/// An unpaid reservation in the list of holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldMember {
    /// Whose.
    pub user: UserId,
    /// Of what.
    pub product: ProductId,
}

impl HoldMember {
    /// Reads `product:user`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (product, user) = text.split_once(':')?;
        Some(Self { user: user.parse().ok()?, product: product.parse().ok()? })
    }
}

/// What came of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Releasing {
    /// What became of each reservation, in the order in which they were given.
    Done(Vec<Released>),
    /// The sale does not run; nothing was changed.
    NotRunning(SaleStatus),
}

impl<L: Link> Live<L> {
    /// Releases reservations, each on its own.
    ///
    /// # Errors
    /// When the live store does not answer: some may be released; releasing again is safe.
    pub async fn release(&self, event: EventId, releases: &[Release]) -> Result<Releasing> {
        if releases.is_empty() {
            return Ok(Releasing::Done(Vec::new()));
        }
        let mut call = self.scripts.release.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.holds(event))
            .key(self.keys.journal(event))
            .key(self.keys.operations(event));
        for release in releases {
            call.key(self.keys.product(release.product, event))
                .key(self.keys.booking(release.user, release.product, event))
                .key(self.keys.winners(event, release.product))
                .arg(release.reservation.as_deref().unwrap_or_default())
                .arg(release.user.to_string())
                .arg(release.product.to_string())
                .arg(if release.only_due { OrderStatus::Expired } else { OrderStatus::Cancelled }.as_str())
                .arg(release.units.map(|units| units.to_string()).unwrap_or_default())
                .arg(if release.only_due { "1" } else { "" })
                .arg(if release.keep_slot { SLOT_KEPT } else { "" })
                .arg(release.operation.as_deref().unwrap_or_default());
        }
        let reply = self.invoke("release", &call).await?;
        match reply.tag() {
            "DONE" => {}
            "NOT_RUNNING" => return Ok(Releasing::NotRunning(reply.status(1)?)),
            _ => return Err(reply.damaged("unknown tag")),
        }
        let outcome = |(number, release): (usize, &Release)| {
            let at = 1 + number * FIELDS_EACH;
            let told = || reply.reservation(at + 1, (release.user, release.product, event));
            match reply.field(at)? {
                "RELEASED" => Ok(Released::Now(told()?)),
                "BEFORE" => Ok(Released::Before(told()?)),
                "NOT_DUE" => Ok(Released::NotDue),
                "TOO_MANY" => Ok(Released::TooMany(told()?)),
                "UNKNOWN" => Ok(Released::Unknown),
                "DAMAGED" => Ok(Released::Damaged),
                _ => Err(reply.damaged("unknown outcome")),
            }
        };
        releases.iter().enumerate().map(outcome).collect::<Result<Vec<_>>>().map(Releasing::Done)
    }

    /// The holds whose time has passed by the live store's clock, the oldest first.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn due_holds(&self, event: EventId, count: usize) -> Result<Vec<HoldMember>> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("TIME");
        pipeline.cmd("ZRANGE").arg(self.keys.holds(event)).arg(0).arg(count.saturating_sub(1)).arg("WITHSCORES");
        let ((seconds, micros), oldest): ((i64, i64), Vec<(String, i64)>) =
            self.query_all("listing holds", &pipeline).await?;
        let now = seconds * 1_000 + micros / 1_000;
        let due = oldest.iter().take_while(|(_, expires)| *expires <= now);
        Ok(due.filter_map(|(member, _)| HoldMember::parse(member)).collect())
    }

    /// How many reservations wait for payment.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn hold_count(&self, event: EventId) -> Result<u64> {
        let mut call = redis::cmd("ZCARD");
        call.arg(self.keys.holds(event));
        self.query("counting holds", &call).await
    }
}
