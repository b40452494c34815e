//! Vouchers of reservations: a confirmed one has an order of vouchers, whose reference is the reservation's id.
//!
//! The reservation decides. Its order is made when the reservation becomes durable, and is looked at until it is what the
//! reservation says: filled if that is confirmed, and cancelled if that is over. A cancellation takes the order back first
//! and the reservation afterwards, so that nobody has both a code that they have seen and their money; if the second step
//! does not follow, the order is filled again.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use super::Vouchers;
use super::orders::{LATE, ShownCode};
use crate::domain::ids::{EventId, ProductId, VoucherOrderId};
use crate::domain::order::OrderStatus;
use crate::domain::page::Page;
use crate::domain::reservation::Reservation;
use crate::domain::voucher::{Sold, UnitStatus, VoucherLine, VoucherOrder, VoucherOrderStatus, kept_for};
use crate::error::{Code, Dependency, Error, Result};
use crate::store::mongo::new_id;
use crate::store::mongo::vouchers::offers::Offered;

use VoucherOrderStatus::{Allocated, Cancelled, Delivered, Pending};

const ORDERS_PER_PAGE: u32 = 500;
/// Orders that one round looks at.
const PER_ROUND: u32 = 50;
/// When a reservation whose vouchers are missing is looked at again.
const AGAIN: TimeDelta = TimeDelta::seconds(30);
/// A reservation that is unknown for so long was lost with the live store.
const FORGOTTEN: TimeDelta = TimeDelta::hours(1);
/// How long a buyer waits for their reservation to be written; it usually takes half a second.
const DURABLE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What an order of vouchers follows from its reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Confirmed,
    Over,
    /// It is to be paid still, or is not known yet.
    Open,
}

const fn standing_of(status: OrderStatus) -> Standing {
    match status {
        OrderStatus::Confirmed => Standing::Confirmed,
        OrderStatus::PendingPayment => Standing::Open,
        OrderStatus::Cancelled | OrderStatus::Expired => Standing::Over,
    }
}

impl Vouchers {
    /// Makes orders of vouchers for what is confirmed, and has those of what is over looked at.
    pub(super) async fn follow(&self, event: EventId, reservations: &[Reservation]) -> Result<()> {
        let offered = self.durable.voucher_offers.of_event(event).await?;
        let offered: HashMap<ProductId, &Offered> = offered.iter().map(|offered| (offered.product, offered)).collect();
        let mut by_product: HashMap<ProductId, Vec<&Reservation>> = HashMap::new();
        for reservation in reservations.iter().filter(|one| offered.contains_key(&one.product)) {
            by_product.entry(reservation.product).or_default().push(reservation);
        }
        for (product, reservations) in by_product {
            let Some(offered) = offered.get(&product) else { continue };
            let references: Vec<&str> = reservations.iter().map(|one| one.id.as_str()).collect();
            let known = self.durable.voucher_orders.known(kept_for(product), &references).await?;
            let mut over = Vec::new();
            for reservation in reservations {
                match (standing_of(reservation.status), known.contains(&reservation.id)) {
                    (Standing::Confirmed, false) => self.order_for(reservation, offered).await?,
                    (Standing::Over, true) => over.push(reservation.id.as_str()),
                    // One that is being cancelled is left alone until that is decided.
                    _ => {}
                }
            }
            if !over.is_empty() {
                // What is cancelled already is looked at when late writes have come.
                let standing = [Pending, Allocated, Delivered];
                self.durable.voucher_orders.look_again(kept_for(product), &over, &standing, self.clock.now()).await?;
            }
        }
        Ok(())
    }

    async fn order_for(&self, reservation: &Reservation, offered: &Offered) -> Result<()> {
        let now = self.clock.now();
        let order = VoucherOrder {
            id: VoucherOrderId::from_bytes(new_id()),
            client: kept_for(reservation.product),
            reference: reservation.id.clone(),
            sold: Some(Sold { event: reservation.event, product: reservation.product, buyer: reservation.user }),
            lines: vec![VoucherLine {
                product: offered.offer.product,
                denomination: offered.offer.denomination,
                quantity: reservation.units_held(),
            }],
            status: Pending,
            reason: None,
            round: 1,
            created_at: now,
        };
        self.durable.voucher_orders.create(&order, now).await.map(|_| ())
    }

    /// Brings orders that were interrupted to their end.
    pub(super) async fn finish_orders(&self) -> Result<bool> {
        let due = self.durable.voucher_orders.due(self.clock.now(), PER_ROUND).await?;
        let full = due.len() >= PER_ROUND as usize;
        for order in due {
            let finished = match order.sold {
                Some(sold) => self.tend(order, sold).await,
                None => self.finish_order(order).await,
            };
            if let Err(error) = finished {
                tracing::warn!(code = error.code().as_str(), error = %error, "a voucher order could not be finished yet");
            }
        }
        Ok(full)
    }

    /// Makes an order what its reservation says.
    pub(super) async fn tend(&self, order: VoucherOrder, sold: Sold) -> Result<()> {
        match (self.standing(&order, sold).await?, order.status) {
            (Standing::Open, Cancelled) if order.created_at + FORGOTTEN < self.clock.now() => {
                self.release_late(&order).await
            }
            (Standing::Open, _) => self.look_later(&order).await,
            (Standing::Confirmed, Allocated | Delivered) => self.finish_order(order).await,
            (Standing::Confirmed, Pending) => self.fill(order, sold).await.map(|_| ()),
            (Standing::Confirmed, Cancelled) => {
                let due_at = Some(self.clock.now() + LATE);
                if self.durable.voucher_orders.advance(&order, &[Cancelled], Pending, None, due_at).await? {
                    let order = self.voucher_order(order.id).await?;
                    tracing::warn!(reservation = %order.reference, "a cancellation was not finished; its vouchers are given again");
                    self.fill(order, sold).await?;
                }
                Ok(())
            }
            (Standing::Over, Cancelled) => self.release_late(&order).await,
            (Standing::Over, _) => self.cancel(&order, "the reservation is over").await.map(|_| ()),
        }
    }

    async fn look_later(&self, order: &VoucherOrder) -> Result<()> {
        let at = self.clock.now() + AGAIN;
        self.durable.voucher_orders.look_again(order.client, &[&order.reference], &[order.status], at).await
    }

    async fn standing(&self, order: &VoucherOrder, sold: Sold) -> Result<Standing> {
        let reservation = self.reservation(sold, &order.reference).await?;
        Ok(reservation.map_or(Standing::Open, |reservation| standing_of(reservation.status)))
    }

    /// The live store has the newest state of a sale that runs; the database has it afterwards.
    async fn reservation(&self, sold: Sold, id: &str) -> Result<Option<Reservation>> {
        let live = self.live.booking(sold.buyer, sold.product, sold.event).await?;
        if let Some(reservation) = live.filter(|reservation| reservation.id == id) {
            return Ok(Some(reservation));
        }
        let durable = self.durable.orders.by_reservation(id).await?;
        Ok(durable.map(|order| order.reservation()))
    }

    /// Gives a confirmed reservation its vouchers. If there are too few, the seller's client may have more by now.
    async fn fill(&self, order: VoucherOrder, sold: Sold) -> Result<VoucherOrder> {
        let client = self.orderer(&order).await?;
        match self.fulfil(order.clone(), &client).await {
            Err(error) if error.code() == Code::VouchersShort => {}
            done => return done,
        }
        self.look_later(&order).await?;
        if let Some(offered) = self.durable.voucher_offers.of_product(sold.product).await? {
            self.keep(&offered, None).await?;
        }
        let filled = self.fulfil(order, &client).await;
        if let Err(error) = &filled {
            tracing::error!(product = %sold.product, error = %error, "a confirmed reservation waits for its vouchers");
        }
        filled
    }

    /// The codes of a buyer's reservation.
    ///
    /// # Errors
    /// [`Code::NotFound`] if its product's units are no vouchers; [`Code::VoucherState`] unless it is confirmed;
    /// [`Code::VouchersShort`] if there is none to be had; when a store does not answer.
    pub async fn codes_of(&self, reservation: &Reservation) -> Result<Vec<ShownCode>> {
        let offered = self.durable.voucher_offers.of_product(reservation.product).await?;
        let offered = offered.ok_or_else(|| Error::not_found("codes not found"))?;
        if reservation.status != OrderStatus::Confirmed {
            let what =
                format!("the reservation is {}; its codes are shown once it is confirmed", reservation.status.as_str());
            return Err(Error::refused(Code::VoucherState, what));
        }
        self.wait_until_durable(&reservation.id).await?;
        let client = kept_for(reservation.product);
        if self.durable.voucher_orders.by_reference(client, &reservation.id).await?.is_none() {
            self.order_for(reservation, &offered).await?;
        }
        let order = self.durable.voucher_orders.by_reference(client, &reservation.id).await?;
        let order = order.ok_or_else(|| Error::internal("showing vouchers", "an order was made and is not there"))?;
        let order = match order.sold.filter(|_| order.status == Pending) {
            Some(sold) => self.fill(order, sold).await?,
            None => order,
        };
        self.show_codes(&order, reservation.user).await
    }

    /// A code that was shown cannot be taken back, so what it was shown for must not be lost with the live store.
    async fn wait_until_durable(&self, reservation: &str) -> Result<()> {
        let deadline = Instant::now() + DURABLE_WITHIN;
        loop {
            let order = self.durable.orders.by_reservation(reservation).await?;
            if order.is_some_and(|order| order.status == OrderStatus::Confirmed) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::timed_out(Dependency::Database, "waiting for a reservation to be durable"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Takes a reservation's vouchers back before it is cancelled, and returns how many of them were shown. Those are never
    /// sold again.
    ///
    /// # Errors
    /// [`Code::CodeShown`] if they were shown, and `unseen_only`; when a store does not answer.
    pub(super) async fn take_back(&self, sold: Sold, reservation: &str, unseen_only: bool) -> Result<u64> {
        loop {
            let order = self.durable.voucher_orders.by_reference(kept_for(sold.product), reservation).await?;
            let Some(order) = order else {
                // It may be paid and its codes asked for before the cancellation is done: an order that is cancelled stands
                // in the way of that.
                let offered = self.durable.voucher_offers.of_product(sold.product).await?;
                match (self.reservation(sold, reservation).await?, offered) {
                    (Some(reservation), Some(offered)) => self.order_for(&reservation, &offered).await?,
                    _ => return Ok(0),
                }
                continue;
            };
            let from: &[VoucherOrderStatus] = match order.status {
                Delivered if unseen_only => return Err(shown()),
                Cancelled => &[],
                _ if unseen_only => &[Pending, Allocated],
                _ => &[Pending, Allocated, Delivered],
            };
            let due_at = Some(self.clock.now() + LATE);
            let reason = Some("the reservation was cancelled");
            let orders = &self.durable.voucher_orders;
            if order.status == Cancelled || orders.advance(&order, from, Cancelled, reason, due_at).await? {
                let released = self.release(&order.items_ever()).await?;
                let revoked = |status: UnitStatus| status == UnitStatus::Revoked;
                return Ok(released.iter().filter(|unit| revoked(unit.status)).count() as u64);
            }
        }
    }

    /// The sale is over: no confirmed reservation is without its order.
    pub(super) async fn follow_all(&self, event: EventId) -> Result<()> {
        if self.durable.voucher_offers.of_event(event).await?.is_empty() {
            return Ok(());
        }
        let mut page = Page { limit: ORDERS_PER_PAGE, after: None };
        loop {
            let orders = self.durable.orders.of_event(event, page).await?;
            let reservations: Vec<Reservation> = orders.items.iter().map(|order| order.reservation()).collect();
            self.follow(event, &reservations).await?;
            page.after = orders.next;
            if page.after.is_none() {
                return Ok(());
            }
        }
    }
}

fn shown() -> Error {
    Error::refused(
        Code::CodeShown,
        "a code of this reservation was shown, so it cannot be given back; ask the seller if the code does not work",
    )
}
