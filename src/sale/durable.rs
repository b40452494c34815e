//! What a sale needs of the durable store.
//!
//! Sales are written against this and not against MongoDB's driver, so that the simulator can run the same code over a
//! store in memory that fails when it is told to. In the service it is always [`Mongo`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::account::Standing;
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::journal::EntryId;
use crate::domain::message::{Listener, Message};
use crate::domain::order::Order;
use crate::domain::page::{Listed, Page};
use crate::domain::reservation::Reservation;
use crate::domain::restock::{Restock, RestockState};
use crate::domain::schedule::ScheduleProblem;
use crate::error::Result;
use crate::store::mongo::Mongo;
use crate::store::mongo::audit::AuditEntry;
use crate::store::mongo::orders::{Tally, Upserted};
use crate::store::mongo::products::ProductStream;

/// A trait of calls to the durable store, and its implementation by [`Mongo`]'s repositories.
macro_rules! durable {
    (
        $(#[doc = $about:literal])+ trait $trait:ident: $($bound:path),+;
        $($(#[doc = $doc:literal])+ fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $answer:ty = $repository:ident.$method:ident;)+
    ) => {
        $(#[doc = $about])+
        pub trait $trait: $($bound +)+ 'static {
            $($(#[doc = $doc])+ fn $name(&self $(, $arg: $type)*) -> impl Future<Output = Result<$answer>> + Send;)+
        }

        impl $trait for Mongo {
            $(async fn $name(&self $(, $arg: $type)*) -> Result<$answer> {
                self.$repository.$method($($arg),*).await
            })+
        }
    };
}
pub(crate) use durable;

durable! {
    /// The durable side of a sale. What each call does is said at the repository behind it. Every call fails when
    /// the store does not answer in time.
    trait Durable: Send, Sync;
    /// The event with this id.
    fn event(&self, id: EventId) -> Option<Event> = events.by_id;
    /// Events whose sale is in one of these phases.
    fn events_in_phases(&self, phases: &[SalePhase], page: Page) -> Listed<Event> = events.in_phases;
    /// Events whose sale was settled lately.
    fn events_settled_since(&self, since: DateTime<Utc>, page: Page) -> Listed<Event> = events.settled_since;
    /// Events that are to open by themselves now.
    fn due_to_open(&self, now: DateTime<Utc>, limit: u32) -> Vec<Event> = events.due_to_open;
    /// Events whose sale is to end now.
    fn due_to_end(&self, now: DateTime<Utc>, limit: u32) -> Vec<Event> = events.due_to_end;
    /// Remembers why a sale did not open by itself, and when to try again; true if it is another reason than before.
    fn record_unopened(&self, id: EventId, problem: &ScheduleProblem, retry_at: DateTime<Utc>) -> bool = events.record_unopened;
    /// Why a sale that is being prepared did not open by itself.
    fn unopened(&self, id: EventId) -> Option<ScheduleProblem> = events.unopened;
    /// Compare-and-set of the phase.
    fn move_phase(&self, id: EventId, from: &[SalePhase], to: SalePhase, run: Option<&str>) -> bool = events.move_phase;
    /// Compare-and-set of the phase, under one opening.
    fn move_phase_of_run(&self, id: EventId, run: &str, from: &[SalePhase], to: SalePhase) -> bool = events.move_phase_of_run;
    /// The sale is settled, and came to so many orders.
    fn record_settled(&self, id: EventId, orders: u64) -> bool = events.settle;
    /// Remembers how far the journal was read.
    fn record_drained(&self, id: EventId, position: EntryId) -> () = events.record_drained;
    /// Stamps the catalogue.
    fn freeze(&self, event: EventId, run: &str) -> u64 = products.freeze;
    /// Takes the stamp away.
    fn thaw(&self, event: EventId, run: &str) -> () = products.thaw;
    /// The stamped products.
    fn frozen(&self, event: EventId, run: &str) -> ProductStream = products.frozen;
    /// How many units each product was prepared with.
    fn prepared_units(&self, event: EventId) -> HashMap<ProductId, u64> = products.prepared_units;
    /// What an account may do.
    fn standing(&self, id: UserId) -> Option<Standing> = accounts.standing;
    /// Writes orders, each on its own, newer revisions over older ones.
    fn upsert_orders(&self, reservations: &[Reservation]) -> Upserted = orders.upsert;
    /// Which reservations are orders, and in which revision.
    fn order_revisions(&self, reservation_ids: &[String]) -> HashMap<String, u32> = orders.revisions;
    /// How many orders the event has.
    fn count_orders(&self, event: EventId) -> u64 = orders.count_of_event;
    /// How many orders the event has, and how many changes they have been through.
    fn tally(&self, event: EventId) -> Tally = orders.tally;
    /// Units ordered of each product.
    fn units_per_product(&self, event: EventId) -> BTreeMap<ProductId, u64> = orders.units_per_product;
    /// The event's orders, page by page.
    fn orders(&self, event: EventId, page: Page) -> Listed<Order> = orders.of_event;
    /// The newest order of a buyer for a product.
    fn order_of_buyer(&self, event: EventId, product: ProductId, user: UserId) -> Option<Order> = orders.of_buyer;
    /// The order of this reservation.
    fn order(&self, reservation: &str) -> Option<Order> = orders.by_reservation;
    /// Changes an order that no live store has any more, if it is still in the revision before.
    fn change_order(&self, after: &Reservation) -> bool = orders.change;
    /// Orders that wait for payment and whose time has passed, in no order.
    fn overdue_orders(&self, before: DateTime<Utc>, limit: u32) -> Vec<Order> = orders.overdue;
    /// Records a restocking, unless its operation is recorded; returns what is recorded.
    fn record_restock(&self, restock: &Restock) -> Restock = restocks.record;
    /// The live store has it.
    fn restock_applied(&self, restock: &Restock) -> () = restocks.applied;
    /// The live store refused it.
    fn discard_restock(&self, restock: &Restock) -> () = restocks.discard;
    /// An event's restockings in a state.
    fn restocks(&self, event: EventId, state: RestockState) -> Vec<Restock> = restocks.in_state;
    /// Units added to each product since the sale was opened, less those withdrawn.
    fn restocked(&self, event: EventId) -> HashMap<ProductId, i64> = restocks.sums;
    /// Who is to be told of an event's sale, if anybody is.
    fn listener(&self, event: EventId) -> Option<Listener> = webhook_endpoints.listener;
    /// Writes messages; those that are there already stay as they are.
    fn store_messages(&self, messages: &[Message]) -> () = webhook_messages.store;
    /// Whether settling twice leaves one order.
    fn settles_once(&self) -> bool = orders.has_unique_index;
    /// Records what could not be settled.
    fn record_dead(&self, event: EventId, key: &str, reason: &str, raw: &HashMap<String, String>, now: DateTime<Utc>) -> () = dead_letters.record;
    /// Forgets what was settled after all.
    fn resolve_dead(&self, event: EventId, keys: &HashSet<String>) -> () = dead_letters.resolve;
    /// Forgets everything that could not be settled.
    fn resolve_all_dead(&self, event: EventId) -> () = dead_letters.resolve_all;
    /// What could not be settled.
    fn dead_keys(&self, event: EventId) -> HashSet<String> = dead_letters.keys_of_event;
    /// Records a repair.
    fn record_repair(&self, entry: &AuditEntry) -> () = audit.record;
    /// Takes or renews the right to do something.
    fn take_lease(&self, name: &str, holder: &str, now: DateTime<Utc>, ttl: Duration) -> bool = leases.take;
    /// Gives it up.
    fn give_up_lease(&self, name: &str, holder: &str) -> () = leases.give_up;
}
