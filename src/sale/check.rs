//! The invariants of one sale, checked against what both stores hold now.
//!
//! Reads page by page. While buyers buy, two reads see two moments: a sale that moved during the check is looked at again
//! a few times, and then what could not be seen is said to be unknown, never wrong.

use std::collections::HashMap;

use super::{Durable, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, ProductId};
use crate::domain::journal::JournalState;
use crate::domain::order::OrderStatus;
use crate::domain::product::LiveProduct;
use crate::domain::sale::SaleStatus;
use crate::error::{Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{BookingRead, EntryRead};

/// How often a moving sale is looked at again.
const LOOKS_MAX: u32 = 5;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not.
    Violated,
    /// The sale moved while it was looked at; pause it and check again.
    Unknown,
}

/// One invariant, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its number in the documentation.
    pub number: u8,
    /// What must hold.
    pub name: &'static str,
    /// Whether it does.
    pub verdict: Verdict,
    /// What was counted.
    pub detail: String,
}

impl Check {
    fn new(number: u8, name: &'static str, holds: bool, detail: String) -> Self {
        Self { number, name, verdict: if holds { Verdict::Holds } else { Verdict::Violated }, detail }
    }
}

struct Figures {
    stock: u64,
    held: u64,
    initial: u64,
    minor: i64,
    limit: u32,
    winners: u64,
}

/// What the bookings of one product take of it.
#[derive(Clone, Copy, Default)]
struct Holding {
    slots: u64,
    units: u64,
    unpaid: u64,
}

#[derive(Default)]
struct Bookings {
    listed: u64,
    unreadable: Vec<String>,
    holding: HashMap<ProductId, Holding>,
    /// Bookings that wait for payment.
    holds: u64,
    changes: u64,
    mispriced: Vec<String>,
    over_limit: Vec<String>,
    /// Reservations that are no orders in this revision: their revisions, by id.
    orderless: HashMap<String, u32>,
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Checks every invariant that the stores can show.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn check(&self, event: &Event) -> Result<Vec<Check>> {
        let status = self.live.status(event.id).await?;
        let mut checks = vec![self.check_status(event, status).await?];
        if event.phase == SalePhase::Settled || event.phase == SalePhase::Draft {
            checks.extend(self.check_at_rest(event).await?);
            return Ok(checks);
        }
        for look in 1.. {
            let before = self.journal(event.id).await?;
            let mut running = self.check_running(event.id, before).await?;
            let moved = self.journal(event.id).await?.appended != before.appended;
            if moved && look < LOOKS_MAX {
                continue;
            }
            for check in running.iter_mut().filter(|check| moved && check.verdict == Verdict::Violated) {
                check.verdict = Verdict::Unknown;
            }
            checks.extend(running);
            break;
        }
        Ok(checks)
    }

    async fn journal(&self, event: EventId) -> Result<JournalState> {
        Ok(self.live.journal_state(event).await?.unwrap_or_default())
    }

    async fn check_status(&self, event: &Event, status: SaleStatus) -> Result<Check> {
        let fits = match event.phase {
            SalePhase::Draft | SalePhase::Opening => status == SaleStatus::NotStarted,
            SalePhase::Live => status != SaleStatus::NotStarted,
            SalePhase::Stopped => status == SaleStatus::Stopped,
            SalePhase::Settled => matches!(status, SaleStatus::Stopped | SaleStatus::NotStarted),
        };
        let held = self.live.held(event.id).await?;
        let detail = match &held {
            Some(held) => format!("{} and {status}; {}", event.phase.as_str(), held.reason),
            None => format!("{} and {status}", event.phase.as_str()),
        };
        Ok(Check::new(1, "both stores agree whether the sale accepts reservations", fits, detail))
    }

    async fn check_running(&self, event: EventId, journal: JournalState) -> Result<Vec<Check>> {
        let (products, missing) = self.live_products(event).await?;
        let bookings = self.read_bookings(event, &products).await?;
        let held = |id: &ProductId| bookings.holding.get(id).copied().unwrap_or_default();
        let off = |wrong: &dyn Fn(&ProductId, &Figures) -> bool| -> Vec<String> {
            products.iter().filter(|(id, figures)| wrong(id, figures)).map(|(id, _)| id.to_string()).collect()
        };
        let unbalanced =
            off(&|id, figures| figures.stock + held(id).units != figures.initial || figures.held != held(id).unpaid);
        let unslotted = off(&|id, figures| figures.winners != held(id).slots);
        let holds = self.live.hold_count(event).await?;
        let changes = self.durable.tally(event).await?.changes;
        let trimmed = journal.appended.saturating_sub(journal.length);
        let count = products.len();
        Ok(vec![
            list(2, "no booking is above its product's limit", &bookings.over_limit),
            Check::new(
                3,
                "every booking is whole, listed, and journalled",
                bookings.unreadable.is_empty() && journal.appended >= bookings.changes,
                format!(
                    "{} listed, {} unreadable{}, {} changes, {} journalled",
                    bookings.listed,
                    bookings.unreadable.len(),
                    some(&bookings.unreadable),
                    bookings.changes,
                    journal.appended
                ),
            ),
            Check::new(
                4,
                "stock + units reserved = units at the start + restocked, for each product",
                unbalanced.is_empty(),
                format!("{count} products, {} unbalanced{}", unbalanced.len(), some(&unbalanced)),
            ),
            list(5, "every booking has its product's price", &bookings.mispriced),
            Check::new(
                6,
                "a buyer's slot is taken as long as their units are",
                unslotted.is_empty() && holds == bookings.holds,
                format!(
                    "{count} products, {} differ{}; {} unpaid, {holds} of them with an end",
                    unslotted.len(),
                    some(&unslotted),
                    bookings.holds
                ),
            ),
            self.check_orders(event, bookings.orderless).await?,
            Check::new(
                8,
                "nothing leaves the journal before it is an order",
                trimmed <= changes,
                format!("{trimmed} trimmed, {changes} changes in orders"),
            ),
            list(9, "every product of the sale has its stock", &missing),
        ])
    }

    async fn check_at_rest(&self, event: &Event) -> Result<Vec<Check>> {
        let left = self.live.scan_event_keys(event.id).await?;
        let status = self.live.keys().status(event.id);
        let strays: Vec<String> = left.into_iter().filter(|key| *key != status).collect();
        let oversold = self.oversold(event.id).await?;
        Ok(vec![
            list(4, "no product has more ordered units than it had", &oversold),
            Check::new(
                7,
                "each reservation has exactly one order",
                self.durable.settles_once().await?,
                "the unique index on orders.reservationId".to_owned(),
            ),
            list(10, "no key of the event remains but the stopped status", &strays),
        ])
    }

    async fn oversold(&self, event: EventId) -> Result<Vec<String>> {
        let mut oversold = Vec::new();
        let prepared = self.durable.prepared_units(event).await?;
        let restocked = self.durable.restocked(event).await?;
        for (id, units) in self.durable.units_per_product(event).await? {
            // A deleted product has no units to compare with.
            let added = restocked.get(&id).copied().unwrap_or_default();
            if prepared.get(&id).is_some_and(|prepared| units > prepared.saturating_add_signed(added)) {
                oversold.push(id.to_string());
            }
        }
        Ok(oversold)
    }

    /// Every product's figures, and the products that are listed but not there.
    async fn live_products(&self, event: EventId) -> Result<(HashMap<ProductId, Figures>, Vec<String>)> {
        let (mut figures, mut missing) = (HashMap::new(), Vec::new());
        let mut after = None;
        loop {
            let ids = self.live.product_ids(event, after, self.config.settle_page_size_max).await?;
            let Some(last) = ids.last() else { return Ok((figures, missing)) };
            after = Some(*last);
            let (whole, damaged) = self.whole_products(event, &ids).await?;
            missing.extend(damaged);
            let ids: Vec<ProductId> = whole.iter().map(|product| product.id).collect();
            let winners = self.live.winner_counts(event, &ids).await?;
            figures.extend(whole.into_iter().zip(winners).map(|(product, winners)| {
                let figures = Figures {
                    stock: product.available_units,
                    held: product.held_units,
                    initial: product.initial_units,
                    minor: product.price.minor,
                    limit: product.per_buyer_limit,
                    winners,
                };
                (product.id, figures)
            }));
        }
    }

    /// A page of products, one by one only if one of them is damaged.
    async fn whole_products(&self, event: EventId, ids: &[ProductId]) -> Result<(Vec<LiveProduct>, Vec<String>)> {
        match self.live.products(event, ids).await {
            Ok(products) => return Ok((products, Vec::new())),
            Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        for id in ids {
            match self.live.products(event, &[*id]).await {
                Ok(found) => whole.extend(found),
                Err(Error::Damaged { .. }) => damaged.push(id.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((whole, damaged))
    }

    async fn read_bookings(&self, event: EventId, products: &HashMap<ProductId, Figures>) -> Result<Bookings> {
        let mut all = Bookings { listed: self.live.booking_count(event).await?, ..Bookings::default() };
        let mut seen = std::collections::HashSet::new();
        let mut cursor = 0;
        loop {
            let (next, mut keys) = self.live.booking_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            keys.retain(|key| seen.insert(key.clone()));
            let mut revisions = HashMap::new();
            for booking in self.live.read_bookings(event, keys).await? {
                let BookingRead::Whole(reservation) = booking.read else {
                    all.unreadable.push(booking.key);
                    continue;
                };
                all.changes += u64::from(reservation.revision);
                let holding = all.holding.entry(reservation.product).or_default();
                holding.slots += u64::from(reservation.takes_slot());
                holding.units += u64::from(reservation.units_held());
                if reservation.status == OrderStatus::PendingPayment {
                    holding.unpaid += u64::from(reservation.units_held());
                    all.holds += 1;
                }
                if let Some(product) = products.get(&reservation.product) {
                    if product.minor != reservation.price.minor {
                        all.mispriced.push(booking.key.clone());
                    }
                    if reservation.quantity > product.limit {
                        all.over_limit.push(booking.key.clone());
                    }
                }
                revisions.insert(reservation.id, reservation.revision);
            }
            all.orderless.extend(self.without_order(revisions).await?);
            if next == 0 {
                return Ok(all);
            }
            cursor = next;
        }
    }
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Those of these reservations that are no orders in their revision.
    async fn without_order(&self, mut revisions: HashMap<String, u32>) -> Result<HashMap<String, u32>> {
        let ids: Vec<String> = revisions.keys().cloned().collect();
        let orders = self.durable.order_revisions(&ids).await?;
        revisions.retain(|id, revision| orders.get(id).is_none_or(|at| at < revision));
        Ok(revisions)
    }

    /// What is no order yet must wait in the journal.
    async fn check_orders(&self, event: EventId, orderless: HashMap<String, u32>) -> Result<Check> {
        let (waiting, mut lost) = (orderless.len(), orderless);
        let mut after = None;
        while !lost.is_empty() {
            let entries = self.live.journal_page(event, after, self.config.settle_page_size_max).await?;
            let Some(last) = entries.last() else { break };
            after = Some(last.id);
            for entry in entries {
                if let EntryRead::Whole(reservation) = entry.read
                    && lost.get(&reservation.id).is_some_and(|revision| *revision <= reservation.revision)
                {
                    lost.remove(&reservation.id);
                }
            }
        }
        // Drained and trimmed since we looked for its order?
        let lost: Vec<String> = self.without_order(lost).await?.into_keys().collect();
        let detail = format!("{waiting} not written yet, {} of them not in the journal{}", lost.len(), some(&lost));
        Ok(Check::new(
            7,
            "every reservation is an order, or is in the journal and becomes one",
            lost.is_empty(),
            detail,
        ))
    }
}

/// An invariant that holds when nothing is listed against it.
fn list(number: u8, name: &'static str, against: &[String]) -> Check {
    Check::new(number, name, against.is_empty(), format!("{} against it{}", against.len(), some(against)))
}

/// The first few of a list, for a person to go on with.
fn some(items: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    if items.is_empty() {
        return String::new();
    }
    let more = if items.len() > SHOWN_MAX { " ..." } else { "" };
    format!(": {}{more}", items.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(" "))
}
