//! The one who looks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use tokio::time::Instant;

use super::Channel;
use super::asked::Asked;
use super::state::{Seen, State};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::ProductId;
use crate::domain::product::StockLevel;
use crate::domain::sale::SaleStatus;
use crate::error::Result;
use crate::sale::{Durable, Sale};
use crate::store::live::link::Link;
use crate::task::Tracker;

/// Between two looks: four a second at most.
const TICK: Duration = Duration::from_millis(250);
/// After the live store did not answer.
const PAUSE_AFTER_FAULT: Duration = Duration::from_secs(1);
/// A listener hears something at least this often.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Products that one look asks for at most. A sale that has no more is watched as a whole.
const PRODUCTS_PER_LOOK: usize = 1_000;

/// Which products are looked at.
enum Scope {
    /// It is not known yet: nothing is projected before the sale opens.
    Unknown,
    /// All of them.
    All(Vec<ProductId>),
    /// Those that listeners ask for, so many at a time, after this one.
    Asked(Option<ProductId>),
}

/// Looks at one sale and publishes what it sees.
pub(super) struct Watcher<L: Link, D: Durable> {
    sale: Arc<Sale<L, D>>,
    event: Event,
    channel: Channel,
    asked: Arc<Asked>,
    scope: Scope,
    found: SaleStatus,
    newest: Option<Arc<State>>,
}

impl<L: Link, D: Durable> Watcher<L, D> {
    pub(super) fn new(sale: Arc<Sale<L, D>>, event: Event, channel: Channel, asked: Arc<Asked>) -> Self {
        let found = SaleStatus::NotStarted;
        Self { sale, event, channel, asked, scope: Scope::Unknown, found, newest: None }
    }

    /// Looks until the sale has stopped, nobody listens, or the application stops.
    pub(super) async fn run(mut self, tasks: Tracker) {
        let (mut heard, mut failing) = (Instant::now(), false);
        loop {
            let pause = match self.look().await {
                Ok(()) => {
                    failing = false;
                    TICK
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(event = %self.event.id, error = %error, "a watched sale cannot be looked at now");
                    }
                    failing = true;
                    PAUSE_AFTER_FAULT
                }
            };
            let over = self.newest.as_ref().is_some_and(|state| state.status == SaleStatus::Stopped);
            if over || !tasks.pause(pause).await || self.sale.leave_if_alone(self.event.id, &self.channel) {
                return;
            }
            if heard.elapsed() >= HEARTBEAT {
                heard = Instant::now();
                self.channel.send_modify(|published| published.beat += 1);
            }
        }
    }

    /// Looks once, and publishes what is new.
    async fn look(&mut self) -> Result<()> {
        if matches!(self.scope, Scope::Unknown) {
            self.scope = self.find_scope().await?;
        }
        let ids = self.next_products();
        let levels = self.sale.live.levels(self.event.id, &ids).await?;
        if levels.status != self.found {
            self.found = levels.status;
            self.refresh().await;
        }
        let at = DateTime::from_timestamp_millis(levels.now_ms).unwrap_or_default();
        let status = self.event.status_at(self.told(levels.status), at);
        let seen = Seen {
            status,
            at,
            complete: !matches!(self.scope, Scope::Asked(_)),
            levels: self.merged(&ids, levels.products),
        };
        if let Some(state) = State::after(self.newest.as_deref(), seen) {
            let state = Arc::new(state);
            self.newest = Some(Arc::clone(&state));
            self.channel.send_modify(|published| published.state = Some(state));
        }
        Ok(())
    }

    /// What there is to watch is known once the sale runs, and does not change then.
    async fn find_scope(&self) -> Result<Scope> {
        let live = &self.sale.live;
        if !matches!(live.status(self.event.id).await?, SaleStatus::Live | SaleStatus::Paused) {
            return Ok(Scope::Unknown);
        }
        let ids = live.product_ids(self.event.id, None, PRODUCTS_PER_LOOK + 1).await?;
        Ok(if ids.len() > PRODUCTS_PER_LOOK { Scope::Asked(None) } else { Scope::All(ids) })
    }

    fn next_products(&mut self) -> Vec<ProductId> {
        match &mut self.scope {
            Scope::Unknown => Vec::new(),
            Scope::All(ids) => ids.clone(),
            Scope::Asked(after) => {
                let ids = self.asked.some_after(*after, PRODUCTS_PER_LOOK);
                *after = ids.last().copied();
                ids
            }
        }
    }

    /// What is known of each product now. One that the live store does not have keeps what was last seen of it: it is
    /// being removed after the end, or it is damaged, and neither is a stock of zero.
    fn merged(&self, ids: &[ProductId], found: Vec<Option<StockLevel>>) -> BTreeMap<ProductId, StockLevel> {
        let mut levels = self.newest.as_ref().map(|state| state.levels.clone()).unwrap_or_default();
        if matches!(self.scope, Scope::Asked(_)) {
            levels.retain(|id, _| self.asked.has(*id));
        }
        levels.extend(ids.iter().zip(found).filter_map(|(id, level)| level.map(|level| (*id, level))));
        levels
    }

    /// Its end may have been planned after this watch began.
    async fn refresh(&mut self) {
        match self.sale.durable.event(self.event.id).await {
            Ok(Some(event)) => self.event = event,
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(event = %self.event.id, error = %error, "a watched event is shown as it was");
            }
        }
    }

    /// An absent status means "not started" only if MongoDB does not know better. A sale that the live store has lost is
    /// rebuilt, paused.
    fn told(&self, found: SaleStatus) -> SaleStatus {
        let ran = self.newest.as_ref().is_some_and(|state| state.status != SaleStatus::NotStarted);
        match (found, self.event.phase) {
            (SaleStatus::NotStarted, phase) if phase.over() => SaleStatus::Stopped,
            (SaleStatus::NotStarted, SalePhase::Live) => SaleStatus::Paused,
            (SaleStatus::NotStarted, _) if ran => SaleStatus::Paused,
            (found, _) => found,
        }
    }
}

impl<L: Link, D: Durable> Drop for Watcher<L, D> {
    /// However it ends, it is gone from the list before its channel closes.
    fn drop(&mut self) {
        self.sale.leave(self.event.id, &self.channel);
    }
}
