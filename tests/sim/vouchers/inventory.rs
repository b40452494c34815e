//! The inventory of vouchers in memory. It does what the repositories have MongoDB do, in as many steps, and fails when it is
//! told to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use orbit::domain::ids::{ClientId, UserId, VoucherOrderId, VoucherProductId};
use orbit::domain::page::{Listed, Page};
use orbit::domain::voucher::{Client, Unit, UnitId, UnitStatus, VoucherOrder, VoucherOrderStatus, VoucherProduct};
use orbit::error::{Dependency, Error, Result};
use orbit::store::mongo::vouchers::units::{Assignment, NewUnit, SealedSecrets, Which};
use orbit::vouchers::Inventory;
use tokio::time::timeout;

use super::Bug;
use crate::network::Line;

/// A unit, and whether the live store is to be told of it.
pub struct Stored {
    pub unit: Unit,
    unplaced: bool,
    secrets: SealedSecrets,
    checksum: String,
}

/// An order, and when it is to be looked at.
pub struct Kept {
    pub order: VoucherOrder,
    due_at: Option<DateTime<Utc>>,
}

/// The whole inventory.
pub struct Books {
    pub product: VoucherProduct,
    pub clients: Vec<Client>,
    pub units: BTreeMap<UnitId, Stored>,
    pub orders: Vec<Kept>,
    next: u64,
    bug: Option<Bug>,
    /// Units whose codes somebody has seen.
    pub shown: BTreeSet<UnitId>,
    /// The first thing that went wrong.
    pub wrong: Option<String>,
}

impl Books {
    pub const fn new(product: VoucherProduct, clients: Vec<Client>, bug: Option<Bug>) -> Self {
        Self {
            product,
            clients,
            units: BTreeMap::new(),
            orders: Vec::new(),
            next: 0,
            bug,
            shown: BTreeSet::new(),
            wrong: None,
        }
    }

    /// Orders that are to be looked at.
    pub fn due(&self, now: DateTime<Utc>) -> Vec<VoucherOrder> {
        let due = self.orders.iter().filter(|kept| kept.due_at.is_some_and(|at| at <= now));
        due.map(|kept| kept.order.clone()).collect()
    }

    /// Changes a unit if it is as `only_if` says; its revision counts up. Looks at what must always hold.
    fn change(&mut self, id: UnitId, only_if: impl FnOnce(&Unit) -> bool, change: impl FnOnce(&mut Unit)) -> bool {
        let Some(stored) = self.units.get_mut(&id).filter(|stored| only_if(&stored.unit)) else { return false };
        let before = stored.unit.item.clone();
        change(&mut stored.unit);
        stored.unit.revision += 1;
        stored.unplaced = true;
        let unit = stored.unit.clone();
        let for_sale = matches!(unit.status, UnitStatus::Available | UnitStatus::Allocated);
        if self.shown.contains(&id) && (for_sale || unit.item != before) {
            self.wrong.get_or_insert(format!(
                "unit {id} was shown and is {} for {:?}",
                unit.status.as_str(),
                unit.item
            ));
        }
        if let Some(item) = &unit.item {
            let owners = self.units.values().filter(|stored| stored.unit.item.as_ref() == Some(item)).count();
            if owners > 1 {
                self.wrong.get_or_insert(format!("item {item} has {owners} units"));
            }
        }
        true
    }

    fn assign(&mut self, assignment: &Assignment) {
        let taken = self.units.values().any(|stored| stored.unit.item.as_ref() == Some(&assignment.item));
        if taken {
            return;
        }
        let unguarded = self.bug == Some(Bug::AssignmentIsNotGuarded);
        self.change(
            assignment.unit,
            |unit| unguarded || (unit.status == UnitStatus::Available && unit.client == assignment.client),
            |unit| {
                unit.status = UnitStatus::Allocated;
                unit.item = Some(assignment.item.clone());
            },
        );
    }

    fn release(&mut self, held: &Unit) {
        let (item, status) = (held.item.clone(), held.status);
        let seen_is_sold = self.bug == Some(Bug::ReleaseDoesNotCompare);
        let marked = self.units.get(&held.id).is_some_and(|stored| stored.unplaced);
        let changed = self.change(
            held.id,
            |unit| unit.item == item && (unit.status == status || seen_is_sold),
            |unit| match status {
                UnitStatus::Allocated => {
                    unit.status = UnitStatus::Available;
                    unit.item = None;
                }
                UnitStatus::Delivered => unit.status = UnitStatus::Revoked,
                UnitStatus::Blocked => unit.item = None,
                UnitStatus::Available | UnitStatus::Completed | UnitStatus::Revoked => {}
            },
        );
        if let Some(stored) =
            self.units.get_mut(&held.id).filter(|_| changed && self.bug == Some(Bug::ReleaseIsNotMarked))
        {
            stored.unplaced = marked;
        }
    }
}

fn fits(unit: &Unit, which: &Which) -> bool {
    unit.product == which.product
        && unit.status == UnitStatus::Available
        && unit.denomination == which.denomination
        && unit.client == which.client
        && unit.expires_at >= which.expires_from
        && which.vendors.as_ref().is_none_or(|vendors| vendors.contains(&unit.vendor))
}

/// One process's access to it.
pub struct SimInventory {
    books: Arc<Mutex<Books>>,
    line: Line,
    deadline: Duration,
}

impl SimInventory {
    pub const fn new(books: Arc<Mutex<Books>>, line: Line, deadline: Duration) -> Self {
        Self { books, line, deadline }
    }

    async fn ask<T: Send + 'static>(&self, work: impl FnOnce(&mut Books) -> T + Send + 'static) -> Result<T> {
        self.ask_or_cut(|books| Some(work(books))).await
    }

    async fn ask_or_cut<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Books) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        const DOING: &str = "simulating";
        let books = Arc::clone(&self.books);
        let call = self.line.ask(move || work(&mut books.lock().unwrap()));
        match timeout(self.deadline, call).await {
            Ok(Some(Some(answer))) => Ok(answer),
            Ok(None | Some(None)) => Err(Error::unavailable(Dependency::Database, DOING, "the connection broke")),
            Err(_) => Err(Error::timed_out(Dependency::Database, DOING)),
        }
    }

    /// Does something to each, or only to the first of them.
    async fn each<T: Send + 'static>(&self, things: Vec<T>, work: fn(&mut Books, &T)) -> Result<()> {
        let cut = self.line.faults().cut(things.len());
        self.ask_or_cut(move |books| {
            things.iter().take(cut.unwrap_or(things.len())).for_each(|thing| work(books, thing));
            cut.is_none().then_some(())
        })
        .await
    }

    async fn find(&self, wanted: impl Fn(&Stored) -> bool + Send + 'static, limit: usize) -> Result<Vec<Unit>> {
        self.ask(move |books| {
            let found = books.units.values().filter(|stored| wanted(stored));
            found.take(limit).map(|stored| stored.unit.clone()).collect()
        })
        .await
    }
}

impl Inventory for SimInventory {
    async fn take_numbers(&self, count: usize) -> Result<u64> {
        self.ask(move |books| {
            let first = books.next + 1;
            books.next += count as u64;
            first
        })
        .await
    }

    async fn insert_units(&self, units: &[NewUnit]) -> Result<Vec<usize>> {
        let units = units.to_vec();
        self.ask(move |books| {
            let mut refused = Vec::new();
            for (index, new) in units.into_iter().enumerate() {
                if books.units.values().any(|stored| stored.checksum == new.checksum) {
                    refused.push(index);
                    continue;
                }
                let NewUnit { unit, secrets, checksum, .. } = new;
                books.units.insert(unit.id, Stored { unit, unplaced: true, secrets, checksum });
            }
            refused
        })
        .await
    }

    async fn assign(&self, assignments: &[Assignment]) -> Result<()> {
        self.each(assignments.to_vec(), Books::assign).await
    }

    async fn units_of_items(&self, items: &[String]) -> Result<Vec<Unit>> {
        let items = items.to_vec();
        self.find(move |stored| stored.unit.item.as_ref().is_some_and(|item| items.contains(item)), usize::MAX).await
    }

    async fn units(&self, ids: &[UnitId]) -> Result<Vec<Unit>> {
        let ids = ids.to_vec();
        self.find(move |stored| ids.contains(&stored.unit.id), usize::MAX).await
    }

    async fn release(&self, items: &[String]) -> Result<Vec<Unit>> {
        let held = self.units_of_items(items).await?;
        let held: Vec<Unit> = held
            .into_iter()
            .filter(|unit| !matches!(unit.status, UnitStatus::Completed | UnitStatus::Revoked))
            .collect();
        let ids: Vec<UnitId> = held.iter().map(|unit| unit.id).collect();
        self.each(held, Books::release).await?;
        self.units(&ids).await
    }

    async fn retag(&self, which: &Which, to: Option<ClientId>, quantity: u32) -> Result<Vec<Unit>> {
        let mut found = self
            .find(
                {
                    let which = which.clone();
                    move |stored| fits(&stored.unit, &which)
                },
                usize::MAX,
            )
            .await?;
        found.sort_by_key(|unit| (unit.expires_at, unit.id));
        if to.is_none() {
            found.reverse();
        }
        found.truncate(quantity as usize);
        let ids: Vec<UnitId> = found.iter().map(|unit| unit.id).collect();
        let things: Vec<(UnitId, Which, Option<ClientId>)> = ids.iter().map(|id| (*id, which.clone(), to)).collect();
        self.each(things, |books, (id, which, to)| {
            books.change(*id, |unit| fits(unit, which), |unit| unit.client = *to);
        })
        .await?;
        Ok(self.units(&ids).await?.into_iter().filter(|unit| unit.client == to).collect())
    }

    async fn advance_unit(&self, id: UnitId, item: Option<&str>, to: UnitStatus) -> Result<Option<Unit>> {
        let item = item.map(ToOwned::to_owned);
        self.ask(move |books| {
            let may = |unit: &Unit| unit.item == item && to.sources().contains(&unit.status);
            books.change(id, may, |unit| unit.status = to).then(|| books.units[&id].unit.clone())
        })
        .await
    }

    async fn expire_at(&self, id: UnitId, at: DateTime<Utc>) -> Result<Option<Unit>> {
        self.ask(move |books| {
            let unseen = [UnitStatus::Available, UnitStatus::Allocated, UnitStatus::Blocked];
            let done = books.change(id, |unit| unseen.contains(&unit.status), |unit| unit.expires_at = at);
            done.then(|| books.units[&id].unit.clone())
        })
        .await
    }

    async fn unplaced(&self, limit: u32) -> Result<Vec<Unit>> {
        self.find(|stored| stored.unplaced, limit as usize).await
    }

    async fn placed(&self, units: &[Unit]) -> Result<()> {
        let known = units.iter().map(|unit| (unit.id, unit.revision)).collect();
        self.each(known, |books, (id, revision)| {
            if let Some(stored) = books.units.get_mut(id).filter(|stored| stored.unit.revision == *revision) {
                stored.unplaced = false;
            }
        })
        .await
    }

    async fn soonest(&self, which: &Which, limit: u32) -> Result<Vec<Unit>> {
        let which = which.clone();
        let mut found = self.find(move |stored| fits(&stored.unit, &which), usize::MAX).await?;
        found.sort_by_key(|unit| (unit.expires_at, unit.id));
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn units_page(&self, product: VoucherProductId, after: Option<UnitId>, limit: u32) -> Result<Vec<Unit>> {
        let wanted = move |stored: &Stored| {
            stored.unit.product == product
                && stored.unit.status == UnitStatus::Available
                && after.is_none_or(|after| stored.unit.id > after)
        };
        self.find(wanted, limit as usize).await
    }

    async fn secrets(&self, ids: &[UnitId]) -> Result<Vec<(UnitId, SealedSecrets)>> {
        let ids = ids.to_vec();
        self.ask(move |books| {
            let secrets = |id: &UnitId| Some((*id, books.units.get(id)?.secrets.clone()));
            ids.iter().filter_map(secrets).collect()
        })
        .await
    }

    async fn create_order(&self, order: &VoucherOrder, due_at: DateTime<Utc>) -> Result<bool> {
        let order = order.clone();
        self.ask(move |books| {
            let same = |kept: &Kept| (kept.order.client, &kept.order.reference) == (order.client, &order.reference);
            if books.orders.iter().any(same) {
                return false;
            }
            books.orders.push(Kept { order, due_at: Some(due_at) });
            true
        })
        .await
    }

    async fn order(&self, id: VoucherOrderId) -> Result<Option<VoucherOrder>> {
        self.ask(move |books| books.orders.iter().map(|kept| &kept.order).find(|order| order.id == id).cloned()).await
    }

    async fn order_of_reference(&self, client: ClientId, reference: &str) -> Result<Option<VoucherOrder>> {
        let reference = reference.to_owned();
        self.ask(move |books| {
            let mut orders = books.orders.iter().map(|kept| &kept.order);
            orders.find(|order| order.client == client && order.reference == reference).cloned()
        })
        .await
    }

    async fn advance_order(
        &self,
        order: &VoucherOrder,
        from: &[VoucherOrderStatus],
        to: VoucherOrderStatus,
        reason: Option<&str>,
        due_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let (id, round, from, reason) = (order.id, order.round, from.to_vec(), reason.map(ToOwned::to_owned));
        self.ask(move |books| {
            let mut all = books.orders.iter_mut();
            let Some(kept) =
                all.find(|kept| kept.order.id == id && kept.order.round == round && from.contains(&kept.order.status))
            else {
                return false;
            };
            (kept.order.status, kept.order.reason, kept.due_at) = (to, reason, due_at);
            kept.order.round += u32::from(to == VoucherOrderStatus::Pending);
            true
        })
        .await
    }

    async fn due_orders(&self, now: DateTime<Utc>, limit: u32) -> Result<Vec<VoucherOrder>> {
        self.ask(move |books| books.due(now).into_iter().take(limit as usize).collect()).await
    }

    async fn rest_order(&self, seen: &VoucherOrder) -> Result<()> {
        let (id, status, round) = (seen.id, seen.status, seen.round);
        self.ask(move |books| {
            let as_seen = |order: &VoucherOrder| order.id == id && order.status == status && order.round == round;
            books.orders.iter_mut().filter(|kept| as_seen(&kept.order)).for_each(|kept| kept.due_at = None);
        })
        .await
    }

    async fn log_inward(&self, _order: VoucherOrderId, _units: &[Unit]) -> Result<()> {
        self.ask(|_| ()).await
    }

    async fn log_view(&self, _order: VoucherOrderId, _by: UserId, _at: DateTime<Utc>) -> Result<()> {
        self.ask(|_| ()).await
    }

    async fn voucher_product(&self, id: [u8; 12]) -> Result<Option<VoucherProduct>> {
        self.ask(move |books| Some(books.product.clone()).filter(|product| product.id.bytes() == id)).await
    }

    async fn voucher_products(&self, _page: Page) -> Result<Listed<VoucherProduct>> {
        self.ask(|books| Listed { items: vec![books.product.clone()], next: None }).await
    }

    async fn voucher_client(&self, id: [u8; 12]) -> Result<Option<Client>> {
        self.ask(move |books| books.clients.iter().find(|client| client.id.bytes() == id).cloned()).await
    }
}
