//! Changes of orders after their sale was settled: marked in the order, and told from there.

use super::Webhooks;
use crate::domain::message::{Message, MessageKind};
use crate::error::Result;
use crate::telemetry::metrics::WEBHOOK_MESSAGES;

/// Orders that are looked at in one round.
const ORDERS_PER_ROUND: u32 = 200;

impl Webhooks {
    /// Makes messages of marked changes, then takes the marks away; true if there may be more.
    pub(super) async fn tell_changes(&self) -> Result<bool> {
        let marked = self.mongo.untold_orders.some(ORDERS_PER_ROUND).await?;
        for order in &marked {
            let Some(first) = order.states.first() else { continue };
            if let Some(listener) = self.mongo.webhook_endpoints.listener(first.event).await? {
                let at = self.clock.now();
                let wanted = |kind: &MessageKind| listener.kinds.contains(kind);
                let message = |state| {
                    let kind = MessageKind::of(state).filter(wanted)?;
                    Some(Message::of_reservation(listener.seller, kind, state, at))
                };
                let messages: Vec<_> = order.states.iter().filter_map(message).collect();
                self.mongo.webhook_messages.store(&messages).await?;
                metrics::counter!(WEBHOOK_MESSAGES).increment(messages.len() as u64);
            }
            self.mongo.untold_orders.told(order).await?;
        }
        Ok(marked.len() == ORDERS_PER_ROUND as usize)
    }
}
