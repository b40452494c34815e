//! The rest of a reservation's life: it is paid, cancelled, or runs out.
//!
//! While the sale runs, the live store decides. After settlement nothing is on sale any more and the order is all there
//! is: it changes in MongoDB, each change only from the revision before, so that of two at once one is made and the other
//! looks again. In between, while a sale is being settled, nothing changes: the caller is told to come back.

use super::{CancelledBy, Durable, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::reservation::{Confirmed, Release, Released, Reservation};
use crate::error::{Code, Dependency, Error, Result};
use crate::store::live::Releasing;
use crate::store::live::link::Link;
use crate::telemetry::metrics::RELEASES;

/// How often a change of an order is tried again because another one was made meanwhile.
const ATTEMPTS_MAX: u32 = 10;

/// A reservation, by everything that finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRef {
    /// Its id.
    pub id: String,
    /// Whose.
    pub user: UserId,
    /// Of what.
    pub product: ProductId,
    /// Where.
    pub event: EventId,
}

impl From<&Order> for ReservationRef {
    fn from(order: &Order) -> Self {
        Self { id: order.reservation_id.clone(), user: order.user, product: order.product, event: order.event }
    }
}

/// What an order is to become.
enum Change<T> {
    To(Reservation, fn(Reservation) -> T),
    /// If the order is all there is of it.
    Stay(T),
    /// Whatever the live store still has to say of it.
    Final(T),
}

/// What stays as it is although its hold had run out. A late payment may have confirmed it in the live store, and its order
/// does not say so until the journal is drained; but not if the live store has `forgotten` it, for another reservation of its
/// buyer.
fn ran_out<T>(told: T, forgotten: bool) -> Change<T> {
    if forgotten { Change::Final(told) } else { Change::Stay(told) }
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// A payment for `units` of a reservation has arrived.
    ///
    /// # Errors
    /// When a store does not answer, or while the sale is being settled: confirming again is safe.
    pub async fn confirm(&self, of: &ReservationRef, units: u32) -> Result<Confirmed> {
        let forgotten = match self.live.confirm(of.event, (of.user, of.product), &of.id, units).await? {
            Confirmed::Unknown => true,
            Confirmed::NotRunning(_) => false,
            decided => return Ok(decided),
        };
        let confirmed = self.confirm_order(of, forgotten).await?;
        if let Confirmed::OnTime(order) | Confirmed::Before(order) = &confirmed {
            // There is no journal any more from which its codes would follow.
            self.codes_follow(of.event, std::slice::from_ref(order)).await?;
        }
        Ok(confirmed)
    }

    async fn confirm_order(&self, of: &ReservationRef, forgotten: bool) -> Result<Confirmed> {
        self.change_order(of, |order| match order.status {
            OrderStatus::PendingPayment => {
                let mut after = order.reservation();
                after.status = OrderStatus::Confirmed;
                after.expires_at_ms = None;
                after.operation.clear();
                Change::To(after, Confirmed::OnTime)
            }
            OrderStatus::Confirmed => Change::Stay(Confirmed::Before(order.reservation())),
            OrderStatus::Cancelled => Change::Final(Confirmed::Cancelled(order.reservation())),
            // Nothing is on sale any more that could be taken again.
            OrderStatus::Expired => ran_out(Confirmed::NoStock(order.reservation()), forgotten),
        })
        .await
        .map(|changed| changed.unwrap_or(Confirmed::Unknown))
    }

    /// Cancels a reservation or a part of it: for its seller, for an administrator, and for what follows from a refund.
    ///
    /// # Errors
    /// [`Code::NothingToReturn`] if it has fewer units than are to be returned; [`Code::NotFound`]; when a store does not
    /// answer, or while the sale is being settled: then cancelling again is safe, a part only with the same operation.
    pub async fn cancel(
        &self,
        of: &ReservationRef,
        units: Option<u32>,
        operation: Option<String>,
    ) -> Result<Reservation> {
        let event = self.durable.event(of.event).await?;
        let shown = self.take_codes_back(of, units, CancelledBy::Others).await?;
        let reservation = self.release_reservation(event.as_ref(), of, units, operation).await?;
        if let Some(event) = event.filter(|event| shown > 0 && event.phase == SalePhase::Live) {
            self.replace_codes(&event, of).await;
        }
        Ok(reservation)
    }

    async fn release_reservation(
        &self,
        event: Option<&Event>,
        of: &ReservationRef,
        units: Option<u32>,
        operation: Option<String>,
    ) -> Result<Reservation> {
        let release = Release {
            reservation: Some(of.id.clone()),
            user: of.user,
            product: of.product,
            units,
            only_due: false,
            keep_slot: event.is_some_and(|event| event.terms.refund_keeps_slot),
            operation,
        };
        let released = match self.live.release(of.event, std::slice::from_ref(&release)).await? {
            Releasing::Done(outcomes) => match outcomes.into_iter().next().unwrap_or(Released::Unknown) {
                Released::Unknown => self.release_order(of, &release, true).await?,
                decided => decided,
            },
            Releasing::NotRunning(_) => self.release_order(of, &release, false).await?,
        };
        match released {
            Released::Now(reservation) => {
                metrics::counter!(RELEASES, "how" => "cancelled").increment(1);
                Ok(reservation)
            }
            Released::Before(reservation) => Ok(reservation),
            Released::TooMany(reservation) => Err(Error::refused(
                Code::NothingToReturn,
                format!("the reservation has {} units left", reservation.units_held()),
            )),
            Released::Unknown => Err(Error::not_found("reservation not found")),
            Released::NotDue | Released::Damaged => {
                Err(Error::Damaged { doing: "cancelling", detail: format!("reservation {}", of.id) })
            }
        }
    }

    /// Cancels the buyer's own reservation, unless the moment until which buyers may cancel has passed.
    ///
    /// # Errors
    /// [`Code::CancellationClosed`]; [`Code::CodeShown`]; and as [`Self::cancel`].
    pub async fn cancel_own(
        &self,
        of: &ReservationRef,
        units: Option<u32>,
        operation: Option<String>,
    ) -> Result<Reservation> {
        let event = self.durable.event(of.event).await?;
        let until = event.as_ref().and_then(|event| event.terms.cancel_until);
        if until.is_some_and(|until| self.clock.now() >= until) {
            return Err(Error::refused(
                Code::CancellationClosed,
                "reservations of this event cannot be cancelled any more; ask its seller",
            ));
        }
        self.take_codes_back(of, units, CancelledBy::Buyer).await?;
        self.release_reservation(event.as_ref(), of, units, operation).await
    }

    /// As [`Self::cancel`], and it is recorded who did.
    ///
    /// # Errors
    /// As [`Self::cancel`].
    pub async fn cancel_as_administrator(
        &self,
        by: UserId,
        of: &ReservationRef,
        units: Option<u32>,
        operation: Option<String>,
    ) -> Result<Reservation> {
        let reservation = self.cancel(of, units, operation).await?;
        let detail = format!("{by} cancelled {}: {} units are left of it", of.id, reservation.units_held());
        self.audit(of.event, "cancelled_by_administrator", &detail).await;
        Ok(reservation)
    }

    pub(super) async fn release_order(
        &self,
        of: &ReservationRef,
        release: &Release,
        forgotten: bool,
    ) -> Result<Released> {
        let (wanted, slot) = (release.units, release.keep_slot);
        let operation = release.operation.as_deref().unwrap_or_default();
        self.change_order(of, |order| {
            let units = wanted.unwrap_or_else(|| order.units_held());
            let mut after = order.reservation();
            let repeated = !operation.is_empty() && order.operation == operation;
            match order.status {
                OrderStatus::Cancelled => return Change::Final(Released::Before(after)),
                OrderStatus::Expired => return ran_out(Released::Before(after), forgotten),
                _ if repeated => return Change::Stay(Released::Before(after)),
                _ => {}
            }
            // Listed as unpaid, and paid since.
            if release.only_due && order.status != OrderStatus::PendingPayment {
                return Change::Stay(Released::NotDue);
            }
            if units == 0 || units > order.units_held() {
                return Change::Stay(Released::TooMany(after));
            }
            after.returned += units;
            after.operation = operation.to_owned();
            if after.units_held() == 0 {
                after.slot_kept = slot && order.status == OrderStatus::Confirmed;
                after.status = if release.only_due { OrderStatus::Expired } else { OrderStatus::Cancelled };
            }
            Change::To(after, Released::Now)
        })
        .await
        .map(|changed| changed.unwrap_or(Released::Unknown))
    }

    /// Changes an order whose sale is settled. `None` if there is no such order.
    async fn change_order<T>(&self, of: &ReservationRef, change: impl Fn(&Order) -> Change<T>) -> Result<Option<T>> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(order) = self.durable.order(&of.id).await? else {
                return if self.is_settled(of.event).await? { Ok(None) } else { Err(not_now()) };
            };
            let (mut after, told) = match change(&order) {
                Change::Final(told) => return Ok(Some(told)),
                Change::Stay(told) => {
                    return if self.is_settled(of.event).await? { Ok(Some(told)) } else { Err(not_now()) };
                }
                Change::To(after, told) => (after, told),
            };
            if !self.is_settled(of.event).await? {
                return Err(not_now());
            }
            after.revision = order.revision + 1;
            if self.durable.change_order(&after).await? {
                return Ok(Some(told(after)));
            }
        }
        Err(not_now())
    }

    /// Whether the event's orders are all that is left of its sale.
    async fn is_settled(&self, event: EventId) -> Result<bool> {
        // A deleted event was settled before.
        Ok(self.durable.event(event).await?.is_none_or(|event| event.phase == SalePhase::Settled))
    }
}

/// While a sale is being settled or repaired, nothing about its reservations changes.
const fn not_now() -> Error {
    Error::timed_out(Dependency::LiveStore, "changing a reservation of a sale that is being settled")
}
