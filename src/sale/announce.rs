//! Telling sellers: what happens in a sale becomes messages, written where it becomes durable.
//!
//! Changes of reservations are told when they are written as orders, before the journal forgets them; the opening when the
//! journal of a running sale is read first; the ending, and what was settled, before the sale is marked settled. A crash in
//! between tells the same again, which makes no second message. What changes after that is marked in the order itself.
//!
//! Sales of sellers who listen to nothing cost one question to the database every few seconds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Durable, Sale};
use crate::domain::event::Event;
use crate::domain::ids::EventId;
use crate::domain::message::{Listener, Message, MessageKind};
use crate::domain::order::OrderStatus;
use crate::domain::page::Page;
use crate::domain::reservation::Reservation;
use crate::domain::sale::SaleStatus;
use crate::error::Result;
use crate::store::live::link::Link;
use crate::telemetry::metrics::WEBHOOK_MESSAGES;

/// Sales that are remembered. Asking again is all that forgetting one costs.
const REMEMBERED_MAX: usize = 1_000;
/// Orders of a settled sale that are read, and told of, at once.
const ORDERS_PER_PAGE: u32 = 500;

/// Who listens to which sale, for a few seconds.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<HashMap<EventId, Known>>);

#[derive(Debug, Clone)]
struct Known {
    until: Instant,
    listener: Option<Listener>,
    /// Whether the opening has been told to whoever listens.
    opening_told: bool,
}

impl Listeners {
    fn known(&self, event: EventId) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&event).filter(|known| Instant::now() < known.until).cloned()
    }

    fn learn(&self, event: EventId, listener: Option<Listener>, keep: Duration) -> Known {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if all.len() >= REMEMBERED_MAX {
            all.retain(|_, known| now < known.until);
        }
        let opening_told = all.get(&event).is_some_and(|known| known.opening_told);
        let known = Known { until: now + keep, listener, opening_told };
        all.insert(event, known.clone());
        known
    }

    fn opening_told(&self, event: EventId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(&event) {
            known.opening_told = true;
        }
    }
}

impl<L: Link, D: Durable> Sale<L, D> {
    async fn listening(&self, event: EventId) -> Result<Known> {
        if let Some(known) = self.listeners.known(event) {
            return Ok(known);
        }
        let listener = self.durable.listener(event).await?;
        Ok(self.listeners.learn(event, listener, self.listeners_known_for))
    }

    async fn tell(&self, messages: Vec<Message>) -> Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        self.durable.store_messages(&messages).await?;
        metrics::counter!(WEBHOOK_MESSAGES).increment(messages.len() as u64);
        Ok(())
    }

    /// Tells of reservations that are orders now.
    pub(super) async fn announce_changes(
        &self,
        event: EventId,
        changed: impl Iterator<Item = &Reservation> + Send,
    ) -> Result<()> {
        let Some(Listener { seller, kinds }) = self.listening(event).await?.listener else { return Ok(()) };
        let at = self.clock.now();
        let wanted = |change: &Reservation| MessageKind::of(change).filter(|kind| kinds.contains(kind));
        let message = |change| Some(Message::of_reservation(seller, wanted(change)?, change, at));
        self.tell(changed.filter_map(message).collect()).await
    }

    /// Tells that a sale is open, the first time that this process sees it running.
    pub(super) async fn announce_opening(&self, event: &Event) -> Result<()> {
        let known = self.listening(event.id).await?;
        let Some(listener) = known.listener.filter(|_| !known.opening_told) else { return Ok(()) };
        if !listener.kinds.contains(&MessageKind::SaleOpened) {
            return Ok(());
        }
        // The phase moves a moment before the status does, and may move back.
        if self.live.status(event.id).await? == SaleStatus::NotStarted {
            return Ok(());
        }
        self.tell(vec![Message::of_opening(event, self.clock.now())]).await?;
        self.listeners.opening_told(event.id);
        Ok(())
    }

    /// Tells that a sale is over, and of every order that stays confirmed.
    pub(super) async fn announce_ending(&self, event: EventId, dead_letters: u64) -> Result<()> {
        let Some(Listener { seller, kinds }) = self.listening(event).await?.listener else { return Ok(()) };
        let at = self.clock.now();
        // It may have been over before anybody drained it.
        if kinds.contains(&MessageKind::SaleOpened)
            && let Some(event) = self.durable.event(event).await?
        {
            self.tell(vec![Message::of_opening(&event, at)]).await?;
        }
        if kinds.contains(&MessageKind::OrderSettled) {
            let mut page = Page { limit: ORDERS_PER_PAGE, after: None };
            loop {
                let orders = self.durable.orders(event, page).await?;
                let confirmed = orders.items.iter().filter(|order| order.status == OrderStatus::Confirmed);
                let kind = MessageKind::OrderSettled;
                let messages =
                    confirmed.map(|order| Message::of_reservation(seller, kind, &order.reservation(), at)).collect();
                self.tell(messages).await?;
                page.after = orders.next;
                if page.after.is_none() {
                    break;
                }
            }
        }
        if kinds.contains(&MessageKind::SaleEnded) {
            let orders = self.durable.count_orders(event).await?;
            self.tell(vec![Message::of_ending(seller, event, orders, dead_letters, at)]).await?;
        }
        Ok(())
    }
}
