//! Orders of vouchers: made for a client, outside any sale.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::allocate::{Allocation, ITEMS_MAX};
use super::{Inventory, Vouchers, named};
use crate::domain::ids::{UserId, VoucherOrderId};
use crate::domain::page::{Listed, Page};
use crate::domain::voucher::{
    Client, Secrets, Unit, UnitId, UnitStatus, VoucherLine, VoucherOrder, VoucherOrderStatus,
};
use crate::error::{Code, Error, FieldError, Result};
use crate::store::live::link::Link;
use crate::store::mongo::new_id;

/// After this a write of a process that was interrupted has arrived, or never will.
pub(super) const LATE: TimeDelta = TimeDelta::seconds(30);
/// Kinds of vouchers in an order.
pub const LINES_MAX: usize = 20;

use VoucherOrderStatus::{Allocated, Cancelled, Delivered, Pending};

/// A code that was shown to whom it belongs.
#[derive(Debug)]
pub struct ShownCode {
    /// Its unit.
    pub unit: Unit,
    /// What it is about.
    pub secrets: Secrets,
}

impl<L: Link, D: Inventory> Vouchers<L, D> {
    /// Makes an order for a client and gives each of its items a unit, or none. An order of the same reference for the same
    /// is the one that was made.
    ///
    /// # Errors
    /// [`Code::VouchersShort`]: the order is cancelled. [`Code::VoucherState`]: it was cancelled before.
    /// [`Code::ReferenceReused`]; fields that break a rule. When a store
    /// does not answer, the order may be pending: it is finished by itself, or by asking again.
    pub async fn order(&self, client: &Client, reference: &str, lines: Vec<VoucherLine>) -> Result<VoucherOrder> {
        self.check_lines(&lines).await?;
        let now = self.clock.now();
        let order = VoucherOrder {
            id: VoucherOrderId::from_bytes(new_id()),
            client: client.id,
            reference: reference.to_owned(),
            sold: None,
            lines,
            status: Pending,
            reason: None,
            round: 1,
            created_at: now,
        };
        if self.durable.create_order(&order, now + LATE).await? {
            return self.fulfil(order, client).await;
        }
        let before = self.durable.order_of_reference(client.id, reference).await?;
        match before {
            Some(before) if before.lines != order.lines => {
                Err(Error::refused(Code::ReferenceReused, "another order has this reference"))
            }
            Some(before) if before.status == Pending => self.fulfil(before, client).await,
            Some(before) if before.status == Cancelled => {
                let why = before.reason.unwrap_or_default();
                Err(Error::refused(Code::VoucherState, format!("the order of this reference was cancelled: {why}")))
            }
            Some(before) => Ok(before),
            None => Err(Error::internal("ordering vouchers", "an order was there and is gone")),
        }
    }

    async fn check_lines(&self, lines: &[VoucherLine]) -> Result<()> {
        let invalid = |field: String, message: &str| Error::Invalid {
            fields: vec![FieldError { field, message: message.to_owned() }],
        };
        if lines.is_empty() || lines.len() > LINES_MAX {
            return Err(invalid("items".to_owned(), "must have 1 to 20 kinds of vouchers"));
        }
        let total: u64 = lines.iter().map(|line| u64::from(line.quantity)).sum();
        if total > ITEMS_MAX as u64 || lines.iter().any(|line| line.quantity == 0) {
            return Err(invalid("items".to_owned(), "must be 1 to 500 vouchers"));
        }
        for (index, line) in lines.iter().enumerate() {
            if lines
                .iter()
                .take(index)
                .any(|other| (other.product, other.denomination) == (line.product, line.denomination))
            {
                return Err(invalid(format!("items[{index}]"), "is there twice"));
            }
            let product = self.product(line.product).await?;
            if !product.denominations.contains(&line.denomination.minor) {
                return Err(invalid(format!("items[{index}].denomination"), "is not one of the product's"));
            }
        }
        Ok(())
    }

    /// Gives the items of a pending order their units.
    pub(super) async fn fulfil(&self, order: VoucherOrder, client: &Client) -> Result<VoucherOrder> {
        // Whoever has reset it may have died before it took these back.
        self.release(&order.items_before()).await?;
        let mut units = Vec::new();
        for (index, line) in order.lines.iter().enumerate() {
            match self.allocate(&self.allocation(&order, client, index, line).await?).await {
                Ok(allocated) => units.extend(allocated),
                // What a sale has promised is given when there is something to give.
                Err(error) if error.code() == Code::VouchersShort && order.sold.is_none() => {
                    self.cancel(&order, &error.to_string()).await?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        self.durable.log_inward(order.id, &units).await?;
        let advanced = self.durable.advance_order(&order, &[Pending], Allocated, None, self.look_after(&order)).await?;
        let now = self.voucher_order(order.id).await?;
        if !advanced && (now.round != order.round || now.status == Cancelled) {
            self.release(&order.items_ever()).await?;
        }
        Ok(now)
    }

    async fn allocation(
        &self,
        order: &VoucherOrder,
        client: &Client,
        index: usize,
        line: &VoucherLine,
    ) -> Result<Allocation> {
        let product = self.product(line.product).await?;
        let days = client.validity_days_min.unwrap_or(self.config.validity_days_min);
        Ok(Allocation {
            product: line.product,
            denomination: line.denomination,
            client: Some(client.id),
            only_kept: order.sold.is_some(),
            vendors: product.vendors.into_iter().filter(|vendor| !client.refuses.contains(vendor)).collect(),
            expires_from: self.clock.now() + TimeDelta::days(days.into()),
            items: order.items(index),
        })
    }

    /// Cancels an order: vouchers that nobody has seen are sold again, and those that were shown are revoked. Cancelling
    /// again changes nothing.
    ///
    /// # Errors
    /// When a store does not answer: cancelling again is safe.
    pub async fn cancel(&self, order: &VoucherOrder, reason: &str) -> Result<VoucherOrder> {
        let due_at = Some(self.clock.now() + LATE);
        let from = [Pending, Allocated, Delivered];
        let mut order = order.clone();
        // It may have been reset since it was read: then its items are others.
        while !self.durable.advance_order(&order, &from, Cancelled, Some(reason), due_at).await? {
            let now = self.voucher_order(order.id).await?;
            if now.status == Cancelled {
                break;
            }
            order = now;
        }
        self.release(&order.items_ever()).await?;
        self.voucher_order(order.id).await
    }

    /// When an order that was reset is looked at once more: a late write may fill one of the items that it had before.
    fn look_after(&self, order: &VoucherOrder) -> Option<DateTime<Utc>> {
        (order.round > 1).then(|| self.clock.now() + LATE)
    }

    /// Takes back what an order has and gives its items other vouchers. Only if none was shown.
    ///
    /// # Errors
    /// [`Code::VoucherState`]; as [`Self::order`].
    pub async fn reset(&self, id: VoucherOrderId) -> Result<VoucherOrder> {
        let order = self.voucher_order(id).await?;
        let held = self.durable.units_of_items(&order.all_items()).await?;
        if held.iter().any(|unit| unit.status != UnitStatus::Allocated) {
            return Err(Error::refused(Code::VoucherState, "a voucher of this order was shown, or is blocked"));
        }
        let client = self.orderer(&order).await?;
        let due_at = Some(self.clock.now() + LATE);
        // Whether a reservation's order comes back is for the reservation to say.
        let from = if order.sold.is_some() { vec![Allocated] } else { vec![Allocated, Cancelled] };
        if !self.durable.advance_order(&order, &from, Pending, None, due_at).await? {
            return Err(Error::refused(Code::VoucherState, format!("the order is {}", order.status.as_str())));
        }
        self.fulfil(self.voucher_order(id).await?, &client).await
    }

    /// Shows the codes of an order to whom they belong. The same codes every time, in the order of the items; `viewer` is
    /// recorded.
    ///
    /// # Errors
    /// [`Code::VoucherState`] if the order has no vouchers, or one of them is blocked. When the database does not answer.
    pub async fn show_codes(&self, order: &VoucherOrder, viewer: UserId) -> Result<Vec<ShownCode>> {
        let no_codes = || Error::refused(Code::VoucherState, format!("the order is {}", order.status.as_str()));
        if !matches!(order.status, Allocated | Delivered) {
            return Err(no_codes());
        }
        let items = order.all_items();
        let held = self.durable.units_of_items(&items).await?;
        let held_back = [UnitStatus::Blocked, UnitStatus::Revoked];
        if let Some(unit) = held.iter().find(|unit| held_back.contains(&unit.status)) {
            let what = format!("a voucher of this order is {}", unit.status.as_str());
            return Err(Error::refused(Code::VoucherState, what));
        }
        // Before anything is shown: of this and a cancellation at the same moment, one is first.
        if !self.durable.advance_order(order, &[Allocated, Delivered], Delivered, None, self.look_after(order)).await? {
            return Err(no_codes());
        }
        let mut shown: HashMap<String, Unit> = HashMap::new();
        for unit in held {
            let item = unit.item.clone().unwrap_or_default();
            let unit = match unit.status {
                UnitStatus::Delivered | UnitStatus::Completed => unit,
                // Before anybody sees it: should it be released at the same moment, one of the two is first.
                UnitStatus::Allocated => {
                    let to = UnitStatus::Delivered;
                    self.durable.advance_unit(unit.id, Some(&item), to).await?.ok_or_else(no_codes)?
                }
                UnitStatus::Available | UnitStatus::Blocked | UnitStatus::Revoked => return Err(no_codes()),
            };
            shown.insert(item, unit);
        }
        let units: Vec<Unit> = items.iter().filter_map(|item| shown.remove(item)).collect();
        if units.len() != items.len() {
            return Err(no_codes());
        }
        self.durable.log_view(order.id, viewer, self.clock.now()).await?;
        self.place(&units).await?;
        let ids: Vec<UnitId> = units.iter().map(|unit| unit.id).collect();
        let sealed: HashMap<_, _> = self.durable.secrets(&ids).await?.into_iter().collect();
        let open = |unit: Unit| {
            let sealed = sealed.get(&unit.id).ok_or_else(|| Error::internal("showing vouchers", "a unit is gone"))?;
            Ok(ShownCode { secrets: self.keyring.open(unit.id, sealed)?, unit })
        };
        units.into_iter().map(open).collect()
    }

    /// The client has what it ordered: its vouchers are done with.
    ///
    /// # Errors
    /// [`Code::VoucherState`] if its codes were not shown. When the database does not answer.
    pub async fn complete(&self, order: &VoucherOrder) -> Result<()> {
        if order.status != Delivered {
            return Err(Error::refused(Code::VoucherState, format!("the order is {}", order.status.as_str())));
        }
        for unit in self.durable.units_of_items(&order.all_items()).await? {
            self.durable.advance_unit(unit.id, unit.item.as_deref(), UnitStatus::Completed).await?;
        }
        Ok(())
    }

    /// Brings an order that was interrupted to its end.
    ///
    /// # Errors
    /// [`Code::VouchersShort`]; when a store does not answer: it is looked at again.
    pub async fn finish_order(&self, order: VoucherOrder) -> Result<()> {
        match order.status {
            Pending => {
                let client = self.client(order.client).await?;
                self.fulfil(order, &client).await.map(|_| ())
            }
            Allocated | Delivered => {
                self.release(&order.items_before()).await?;
                self.durable.rest_order(&order).await
            }
            Cancelled => self.release_late(&order).await,
        }
    }

    pub(super) async fn release_late(&self, order: &VoucherOrder) -> Result<()> {
        self.release(&order.items_ever()).await?;
        self.durable.rest_order(order).await
    }

    /// An order.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn voucher_order(&self, id: VoucherOrderId) -> Result<VoucherOrder> {
        let found = self.durable.order(id).await?;
        found.ok_or_else(|| named::unknown("voucher order"))
    }

    /// When an order that nobody finishes is finished.
    #[must_use]
    pub fn finished_by(order: &VoucherOrder) -> DateTime<Utc> {
        order.created_at + LATE
    }

    /// Whoever an order's vouchers are for, as those who fill it know them.
    pub(super) async fn orderer(&self, order: &VoucherOrder) -> Result<Client> {
        let Some(sold) = order.sold else { return self.client(order.client).await };
        Ok(Client {
            id: order.client,
            name: String::new(),
            members: vec![sold.buyer],
            refuses: Vec::new(),
            // They were chosen when they were kept.
            validity_days_min: Some(0),
            created_at: order.created_at,
        })
    }
}

impl Vouchers {
    /// A client's orders, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn voucher_orders(&self, client: &Client, page: Page) -> Result<Listed<VoucherOrder>> {
        self.durable.voucher_orders.of_client(client.id, page).await
    }
}
