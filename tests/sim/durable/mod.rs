//! The durable side in memory. It does what the repositories have MongoDB do, and fails when it is told to.

mod database;
mod orders;
mod payments;
mod records;
mod restocks;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use orbit::domain::account::Standing;
use orbit::domain::event::{Event, SalePhase};
use orbit::domain::ids::{EventId, ProductId, UserId};
use orbit::domain::journal::EntryId;
use orbit::domain::message::{Listener, Message};
use orbit::domain::order::Order;
use orbit::domain::page::{Listed, Page};
use orbit::domain::reservation::Reservation;
use orbit::domain::restock::{Restock, RestockState};
use orbit::domain::schedule::ScheduleProblem;
use orbit::error::{Dependency, Error, Result};
use orbit::sale::Durable;
use orbit::store::mongo::audit::AuditEntry;
use orbit::store::mongo::orders::{Tally, Upserted};
use orbit::store::mongo::products::ProductStream;
use tokio::time::timeout;

pub use database::Database;

use crate::network::Line;

/// A database that several processes reach.
pub type SharedDatabase = Arc<Mutex<Database>>;

/// One process's access to it.
pub struct SimDurable {
    database: SharedDatabase,
    line: Line,
    deadline: Duration,
}

impl SimDurable {
    pub const fn new(database: SharedDatabase, line: Line, deadline: Duration) -> Self {
        Self { database, line, deadline }
    }

    async fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Database) -> T + Send + 'static,
    ) -> Result<T> {
        self.ask_or_cut(doing, |database| Some(work(database))).await
    }

    /// As [`Self::ask`], for work that may stop in the middle: then the connection breaks.
    async fn ask_or_cut<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Database) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        let database = Arc::clone(&self.database);
        let call = self.line.ask(move || work(&mut database.lock().unwrap()));
        match timeout(self.deadline, call).await {
            Ok(Some(Some(answer))) => Ok(answer),
            Ok(None | Some(None)) => Err(Error::unavailable(Dependency::Database, doing, "the connection broke")),
            Err(_) => Err(Error::timed_out(Dependency::Database, doing)),
        }
    }
}

impl Durable for SimDurable {
    async fn event(&self, id: EventId) -> Result<Option<Event>> {
        self.ask("reading an event", move |database| database.event(id)).await
    }

    async fn events_in_phases(&self, phases: &[SalePhase], page: Page) -> Result<Listed<Event>> {
        let phases = phases.to_vec();
        let wanted = move |event: &Event| phases.contains(&event.phase);
        self.ask("listing events", move |database| database.events(page, wanted)).await
    }

    async fn events_settled_since(&self, since: DateTime<Utc>, page: Page) -> Result<Listed<Event>> {
        let wanted = move |event: &Event| event.phase == SalePhase::Settled && event.updated_at >= since;
        self.ask("listing events", move |database| database.events(page, wanted)).await
    }

    async fn due_to_open(&self, now: DateTime<Utc>, _limit: u32) -> Result<Vec<Event>> {
        let due = move |event: &Event| {
            event.phase == SalePhase::Draft
                && event.auto_open
                && event.scheduled_at <= now
                && event.ends_at.is_none_or(|at| at > now)
        };
        let page = Page { limit: 100, after: None };
        self.ask("finding sales to open", move |database| database.events(page, due).items).await
    }

    async fn due_to_end(&self, now: DateTime<Utc>, _limit: u32) -> Result<Vec<Event>> {
        let due = move |event: &Event| event.phase == SalePhase::Live && event.ends_at.is_some_and(|at| at <= now);
        let page = Page { limit: 100, after: None };
        self.ask("finding sales to end", move |database| database.events(page, due).items).await
    }

    async fn record_unopened(
        &self,
        _id: EventId,
        _problem: &ScheduleProblem,
        _retry_at: DateTime<Utc>,
    ) -> Result<bool> {
        self.ask("remembering why a sale did not open", |_| false).await
    }

    async fn unopened(&self, _id: EventId) -> Result<Option<ScheduleProblem>> {
        self.ask("reading why a sale did not open", |_| None).await
    }

    async fn move_phase(&self, id: EventId, from: &[SalePhase], to: SalePhase, run: Option<&str>) -> Result<bool> {
        let (from, run) = (from.to_vec(), run.map(ToOwned::to_owned));
        self.ask("moving a sale's phase", move |database| database.move_phase(id, &from, to, run)).await
    }

    async fn move_phase_of_run(&self, id: EventId, run: &str, from: &[SalePhase], to: SalePhase) -> Result<bool> {
        let (from, run) = (from.to_vec(), run.to_owned());
        self.ask("moving a sale's phase", move |database| database.move_phase_of_run(id, &run, &from, to)).await
    }

    async fn record_settled(&self, id: EventId, orders: u64) -> Result<bool> {
        self.ask("settling a sale", move |database| database.settle(id, orders)).await
    }

    async fn record_drained(&self, id: EventId, position: EntryId) -> Result<()> {
        self.ask("remembering how far a journal was read", move |database| database.record_drained(id, position)).await
    }

    async fn freeze(&self, event: EventId, run: &str) -> Result<u64> {
        let run = run.to_owned();
        self.ask("freezing a catalogue", move |database| database.freeze(event, &run)).await
    }

    async fn thaw(&self, event: EventId, run: &str) -> Result<()> {
        let run = run.to_owned();
        self.ask("thawing a catalogue", move |database| database.thaw(event, &run)).await
    }

    async fn frozen(&self, event: EventId, run: &str) -> Result<ProductStream> {
        let run = run.to_owned();
        let products = self.ask("reading a catalogue", move |database| database.frozen(event, &run)).await?;
        let cut = self.line.faults().cut(products.len() + 1);
        let broken = || Err(Error::unavailable(Dependency::Database, "reading a catalogue", "the cursor broke"));
        let whole = cut.unwrap_or(products.len());
        let rows = products.into_iter().take(whole).map(Ok).chain(cut.map(|_| broken()));
        Ok(Box::pin(futures::stream::iter(rows.collect::<Vec<_>>())))
    }

    async fn prepared_units(&self, event: EventId) -> Result<HashMap<ProductId, u64>> {
        self.ask("reading units", move |database| database.prepared_units(event)).await
    }

    async fn standing(&self, id: UserId) -> Result<Option<Standing>> {
        self.ask("reading an account", move |database| database.standing(id)).await
    }

    async fn upsert_orders(&self, reservations: &[Reservation]) -> Result<Upserted> {
        if reservations.is_empty() {
            return Ok(Upserted::default());
        }
        let reservations = reservations.to_vec();
        let cut = self.line.faults().cut(reservations.len());
        let work = move |database: &mut Database| match cut {
            None => Some(database.upsert_orders(&reservations)),
            Some(done) => {
                database.upsert_orders(&reservations[..done]);
                None
            }
        };
        self.ask_or_cut("writing orders", work).await
    }

    async fn order_revisions(&self, reservation_ids: &[String]) -> Result<HashMap<String, u32>> {
        if reservation_ids.is_empty() {
            return Ok(HashMap::new());
        }
        let ids = reservation_ids.to_vec();
        self.ask("confirming orders", move |database| database.order_revisions(&ids)).await
    }

    async fn count_orders(&self, event: EventId) -> Result<u64> {
        self.ask("counting orders", move |database| database.orders_of(event).count() as u64).await
    }

    async fn tally(&self, event: EventId) -> Result<Tally> {
        let tally = move |database: &mut Database| Tally {
            orders: database.orders_of(event).count() as u64,
            changes: database.orders_of(event).map(|one| u64::from(one.revision)).sum(),
        };
        self.ask("summing changes", tally).await
    }

    async fn units_per_product(&self, event: EventId) -> Result<BTreeMap<ProductId, u64>> {
        self.ask("summing units", move |database| database.units_per_product(event)).await
    }

    async fn orders(&self, event: EventId, page: Page) -> Result<Listed<Order>> {
        self.ask("listing orders", move |database| database.list_orders(event, page)).await
    }

    async fn order(&self, reservation: &str) -> Result<Option<Order>> {
        let reservation = reservation.to_owned();
        self.ask("reading an order", move |database| database.order(&reservation)).await
    }

    async fn change_order(&self, after: &Reservation) -> Result<bool> {
        let after = after.clone();
        self.ask("changing an order", move |database| database.change_order(&after)).await
    }

    async fn overdue_orders(&self, before: DateTime<Utc>, limit: u32) -> Result<Vec<Order>> {
        self.ask("listing overdue orders", move |database| database.overdue_orders(before, limit)).await
    }

    async fn record_restock(&self, restock: &Restock) -> Result<Restock> {
        let restock = restock.clone();
        self.ask("recording a restocking", move |database| database.record_restock(restock)).await
    }

    async fn restock_applied(&self, restock: &Restock) -> Result<()> {
        let restock = Restock { state: RestockState::Applied, ..restock.clone() };
        self.ask("finishing a restocking", move |database| database.restock_applied(restock)).await
    }

    async fn discard_restock(&self, restock: &Restock) -> Result<()> {
        let operation = restock.operation.clone();
        self.ask("discarding a restocking", move |database| database.discard_restock(&operation)).await
    }

    async fn restocks(&self, _event: EventId, state: RestockState) -> Result<Vec<Restock>> {
        self.ask("listing restockings", move |database| database.restocks(state)).await
    }

    async fn restocked(&self, _event: EventId) -> Result<HashMap<ProductId, i64>> {
        self.ask("summing restockings", |database| database.restocked()).await
    }

    async fn order_of_buyer(&self, event: EventId, product: ProductId, user: UserId) -> Result<Option<Order>> {
        self.ask("reading an order", move |database| database.order_of_buyer(event, product, user)).await
    }

    async fn listener(&self, _event: EventId) -> Result<Option<Listener>> {
        // Nobody: messages to sellers decide nothing about a sale.
        Ok(None)
    }

    async fn store_messages(&self, _messages: &[Message]) -> Result<()> {
        Ok(())
    }

    async fn settles_once(&self) -> Result<bool> {
        self.ask("looking at indexes", |_| true).await
    }

    async fn record_dead(
        &self,
        event: EventId,
        key: &str,
        reason: &str,
        _raw: &HashMap<String, String>,
        _now: DateTime<Utc>,
    ) -> Result<()> {
        let (key, reason) = (key.to_owned(), reason.to_owned());
        self.ask("recording a dead letter", move |database| database.record_dead(event, key, reason)).await
    }

    async fn resolve_dead(&self, event: EventId, keys: &HashSet<String>) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let keys = keys.clone();
        self.ask("resolving dead letters", move |database| database.resolve_dead(event, |key| keys.contains(key))).await
    }

    async fn resolve_all_dead(&self, event: EventId) -> Result<()> {
        self.ask("resolving dead letters", move |database| database.resolve_dead(event, |_| true)).await
    }

    async fn dead_keys(&self, event: EventId) -> Result<HashSet<String>> {
        self.ask("reading dead letters", move |database| database.dead_keys(event)).await
    }

    async fn record_repair(&self, entry: &AuditEntry) -> Result<()> {
        let entry = entry.clone();
        self.ask("recording a repair", move |database| database.record_repair(entry)).await
    }

    async fn take_lease(&self, name: &str, holder: &str, now: DateTime<Utc>, ttl: Duration) -> Result<bool> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.ask("taking a lease", move |database| database.take_lease(name, holder, now, ttl)).await
    }

    async fn give_up_lease(&self, name: &str, holder: &str) -> Result<()> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.ask("giving up a lease", move |database| database.give_up_lease(&name, &holder)).await
    }
}
