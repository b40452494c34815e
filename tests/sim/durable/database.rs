//! Events, products, dead letters, leases and repairs, with the guards of their repositories.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use orbit::domain::account::{Role, Standing};
use orbit::domain::clock::Clock;
use orbit::domain::event::{Event, SalePhase};
use orbit::domain::ids::{EventId, ProductId, UserId};
use orbit::domain::journal::EntryId;
use orbit::domain::order::Order;
use orbit::domain::page::{Cursor, Listed, Page};
use orbit::domain::payment::Payment;
use orbit::domain::product::Product;
use orbit::domain::restock::Restock;
use orbit::store::mongo::audit::AuditEntry;

use crate::clock::WallClock;

/// A record and the token of the opening that it is marked with.
struct Stamped<T> {
    record: T,
    run: Option<String>,
}

/// Who has a lease, and until when.
struct LeaseRecord {
    holder: String,
    expires_at: DateTime<Utc>,
}

/// The whole database.
pub struct Database {
    pub(super) clock: WallClock,
    events: BTreeMap<EventId, Stamped<Event>>,
    products: BTreeMap<ProductId, Stamped<Product>>,
    /// In the order in which they were inserted.
    pub(super) orders: Vec<Order>,
    /// Reservations whose orders were changed after their sale was settled.
    pub(super) changed_as_orders: BTreeSet<String>,
    /// Whether `reservationId` is unique.
    pub(super) unique: bool,
    /// By their operations.
    pub(super) restocks: BTreeMap<String, Restock>,
    dead: BTreeMap<(EventId, String), String>,
    leases: BTreeMap<String, LeaseRecord>,
    repairs: Vec<AuditEntry>,
    /// By their reservations.
    pub(super) payments: BTreeMap<String, Payment>,
    /// Payments that were left to a person.
    pub(super) stuck: BTreeSet<String>,
    /// Callbacks that were dealt with.
    pub(super) callbacks: BTreeSet<String>,
    /// Orders that gave units back whose money nobody has looked at.
    pub(super) returned: BTreeSet<String>,
    pub(super) failures_honoured: bool,
    pub(super) questions_forgotten: bool,
    pub(super) changes: u64,
}

impl Database {
    /// One event and its products.
    pub fn new(clock: WallClock, event: Event, products: Vec<Product>) -> Self {
        Self {
            clock,
            events: BTreeMap::from([(event.id, Stamped { record: event, run: None })]),
            products: products.into_iter().map(|record| (record.id, Stamped { record, run: None })).collect(),
            orders: Vec::new(),
            changed_as_orders: BTreeSet::new(),
            unique: true,
            restocks: BTreeMap::new(),
            dead: BTreeMap::new(),
            leases: BTreeMap::new(),
            repairs: Vec::new(),
            payments: BTreeMap::new(),
            stuck: BTreeSet::new(),
            callbacks: BTreeSet::new(),
            returned: BTreeSet::new(),
            failures_honoured: false,
            questions_forgotten: false,
            changes: 0,
        }
    }

    /// Grows with every change of an event, an order, a dead letter, or the money of a payment.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes the unique index away.
    pub const fn drop_unique_index(&mut self) {
        self.unique = false;
    }

    pub fn event(&self, id: EventId) -> Option<Event> {
        self.events.get(&id).map(|event| event.record.clone())
    }

    /// Oldest first.
    pub fn events(&self, page: Page, wanted: impl Fn(&Event) -> bool) -> Listed<Event> {
        let cursor =
            |event: &Event| Cursor { created_at_ms: event.created_at.timestamp_millis(), id: event.id.bytes() };
        let mut rows: Vec<Event> =
            self.events.values().map(|event| &event.record).filter(|one| wanted(one)).cloned().collect();
        rows.sort_by_key(|event| (event.created_at, event.id));
        rows.retain(|event| {
            page.after.is_none_or(|after| {
                (event.created_at.timestamp_millis(), event.id.bytes()) > (after.created_at_ms, after.id)
            })
        });
        rows.truncate(page.limit as usize + 1);
        Listed::from_rows(rows, page, cursor)
    }

    pub fn move_phase(&mut self, id: EventId, from: &[SalePhase], to: SalePhase, run: Option<String>) -> bool {
        let now = self.clock.now();
        let Some(event) = self.events.get_mut(&id).filter(|event| from.contains(&event.record.phase)) else {
            return false;
        };
        self.changes += 1;
        event.record.phase = to;
        event.record.updated_at = now;
        if run.is_some() {
            event.run = run;
        }
        true
    }

    pub fn move_phase_of_run(&mut self, id: EventId, run: &str, from: &[SalePhase], to: SalePhase) -> bool {
        let marked = self.events.get(&id).is_some_and(|event| event.run.as_deref() == Some(run));
        marked && self.move_phase(id, from, to, None)
    }

    pub fn settle(&mut self, id: EventId, orders: u64) -> bool {
        let settled = self.move_phase(id, &[SalePhase::Stopped], SalePhase::Settled, None);
        if let Some(event) = self.events.get_mut(&id).filter(|_| settled) {
            event.record.settled_orders = Some(orders);
        }
        settled
    }

    pub fn record_drained(&mut self, id: EventId, position: EntryId) {
        if let Some(event) = self.events.get_mut(&id) {
            event.record.drained = event.record.drained.max(Some(position));
        }
    }

    pub fn freeze(&mut self, event: EventId, run: &str) -> u64 {
        let products = self.products.values_mut().filter(|product| product.record.event == event);
        products.map(|product| product.run = Some(run.to_owned())).count() as u64
    }

    pub fn thaw(&mut self, event: EventId, run: &str) {
        let products = self.products.values_mut().filter(|product| product.record.event == event);
        products.filter(|product| product.run.as_deref() == Some(run)).for_each(|product| product.run = None);
    }

    pub fn frozen(&self, event: EventId, run: &str) -> Vec<Product> {
        let products = self.products.values().filter(|product| product.record.event == event);
        products.filter(|product| product.run.as_deref() == Some(run)).map(|product| product.record.clone()).collect()
    }

    pub fn prepared_units(&self, event: EventId) -> HashMap<ProductId, u64> {
        let of_event = self.products.iter().filter(|(_, product)| product.record.event == event);
        of_event.map(|(id, product)| (*id, product.record.units.into())).collect()
    }

    /// Every account is a seller who may sell.
    pub fn standing(&self, _: UserId) -> Option<Standing> {
        Some(Standing { role: Role::Seller, active: true, approved: true, email_verified: true })
    }

    pub fn record_dead(&mut self, event: EventId, key: String, reason: String) {
        self.changes += 1;
        self.dead.insert((event, key), reason);
    }

    pub fn resolve_dead(&mut self, event: EventId, resolved: impl Fn(&String) -> bool) {
        self.changes += 1;
        self.dead.retain(|(of, key), _| *of != event || !resolved(key));
    }

    pub fn dead_keys(&self, event: EventId) -> HashSet<String> {
        self.dead.keys().filter(|(of, _)| *of == event).map(|(_, key)| key.clone()).collect()
    }

    pub fn record_repair(&mut self, entry: AuditEntry) {
        self.repairs.push(entry);
    }

    /// What was repaired, in order.
    pub fn repairs(&self) -> &[AuditEntry] {
        &self.repairs
    }

    pub fn take_lease(&mut self, name: String, holder: String, now: DateTime<Utc>, ttl: Duration) -> bool {
        if self.leases.get(&name).is_some_and(|lease| lease.holder != holder && lease.expires_at >= now) {
            return false;
        }
        self.leases.insert(name, LeaseRecord { holder, expires_at: now + ttl });
        true
    }

    pub fn give_up_lease(&mut self, name: &str, holder: &str) {
        if self.leases.get(name).is_some_and(|lease| lease.holder == holder) {
            self.leases.remove(name);
        }
    }
}
