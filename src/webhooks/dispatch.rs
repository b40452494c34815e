//! The loop of every process: messages become deliveries, and deliveries that are due become attempts.
//!
//! Attempts are bounded for the process and for each endpoint. An endpoint that has its share in flight is passed over, so
//! one that is slow holds up nobody but itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Webhooks;
use crate::domain::ids::{UserId, WebhookId};
use crate::domain::message::Message;
use crate::domain::webhook::Webhook;
use crate::error::Result;
use crate::store::mongo::webhooks::Claimed;
use crate::task::Tracker;
use crate::telemetry::metrics::WEBHOOK_IN_FLIGHT;

/// Messages that become deliveries at once.
const MESSAGES_PER_STEP: u32 = 200;
/// After a failure; a database that is away is not asked twice a second.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

impl Webhooks {
    /// Delivers until the application stops. Attempts in flight are finished.
    pub async fn keep_delivering(self: Arc<Self>, tasks: Tracker) {
        let interval = Duration::from_millis(self.config.poll_interval_ms);
        let mut pause = interval;
        while tasks.pause(pause).await {
            pause = match self.round(&tasks).await {
                Ok(()) => interval,
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), error = %error, "messages cannot be delivered now; they are kept");
                    PAUSE_AFTER_FAILURE.max(interval)
                }
            };
        }
    }

    /// Everything that can be done now, but for what has no place.
    async fn round(self: &Arc<Self>, tasks: &Tracker) -> Result<()> {
        while self.tell_changes().await? {}
        while self.dispatch().await? {}
        while !tasks.shutdown().is_cancelled() {
            let Some(busy) = self.busy() else { return Ok(()) };
            let (now, ttl) = (self.clock.now(), Duration::from_millis(self.config.claim_ttl_ms));
            let Some(claimed) = self.mongo.webhook_deliveries.claim(&busy, now, ttl).await? else { return Ok(()) };
            let place = Place::take(Arc::clone(self), claimed.delivery.webhook);
            tasks.spawn(attempt_in(place, claimed));
        }
        Ok(())
    }

    /// Gives messages their deliveries; true if there may be more. A crash in between does it again, and makes none twice.
    async fn dispatch(&self) -> Result<bool> {
        let messages = self.mongo.webhook_messages.waiting(MESSAGES_PER_STEP).await?;
        let mut webhooks: HashMap<UserId, Vec<Webhook>> = HashMap::new();
        for message in &messages {
            if let Entry::Vacant(unknown) = webhooks.entry(message.seller) {
                unknown.insert(self.of_seller(message.seller).await?);
            }
        }
        let wanted = |message: &&Message, webhook: &Webhook| webhook.wants(message.kind);
        let deliveries: Vec<(&Message, WebhookId)> = messages
            .iter()
            .flat_map(|message| {
                let of_seller = webhooks.get(&message.seller).map_or(&[][..], Vec::as_slice);
                of_seller.iter().filter(move |webhook| wanted(&message, webhook)).map(move |one| (message, one.id))
            })
            .collect();
        self.mongo.webhook_deliveries.insert(&deliveries, self.clock.now()).await?;
        if !messages.is_empty() {
            let ids: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
            self.mongo.webhook_messages.dispatched(&ids).await?;
        }
        Ok(messages.len() == MESSAGES_PER_STEP as usize)
    }

    /// Endpoints that have their share in flight; `None` if the process has.
    fn busy(&self) -> Option<Vec<WebhookId>> {
        let in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if in_flight.values().sum::<usize>() >= self.config.in_flight_max {
            return None;
        }
        let share = self.config.in_flight_per_endpoint_max;
        Some(in_flight.iter().filter(|(_, count)| **count >= share).map(|(id, _)| *id).collect())
    }
}

async fn attempt_in(place: Place, claimed: Claimed) {
    if let Err(error) = place.of.attempt(&claimed).await {
        // Its claim runs out, and it is tried again.
        tracing::warn!(code = error.code().as_str(), error = %error, delivery = %claimed.delivery.id, "an attempt could not be recorded");
    }
}

/// One attempt's place among those in flight.
struct Place {
    of: Arc<Webhooks>,
    webhook: WebhookId,
}

impl Place {
    fn take(of: Arc<Webhooks>, webhook: WebhookId) -> Self {
        *of.in_flight.lock().unwrap_or_else(PoisonError::into_inner).entry(webhook).or_default() += 1;
        metrics::gauge!(WEBHOOK_IN_FLIGHT).increment(1.0);
        Self { of, webhook }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut in_flight = self.of.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_flight.get_mut(&self.webhook) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.webhook);
            }
        }
        metrics::gauge!(WEBHOOK_IN_FLIGHT).decrement(1.0);
    }
}
