//! Endpoints: registered, shown, turned off and on, given new secrets; and what was sent to them.

use secrecy::{ExposeSecret, SecretString};

use super::{Webhooks, signature};
use crate::domain::ids::{DeliveryId, UserId, WebhookId};
use crate::domain::message::MessageKind;
use crate::domain::page::{Listed, Page};
use crate::domain::webhook::{Delivery, PreviousSecret, Webhook, WebhookState};
use crate::error::{Code, Error, Result};
use crate::outbound;
use crate::store::mongo::new_id;
use crate::store::mongo::webhooks::NewSecret;

/// An endpoint and its secret, which nobody can read again.
#[derive(Debug)]
pub struct NewWebhook {
    /// The endpoint.
    pub webhook: Webhook,
    /// `whsec_` and base64.
    pub secret: SecretString,
}

fn unknown() -> Error {
    Error::not_found("webhook not found")
}

impl Webhooks {
    /// Registers an endpoint. No `kinds` means all of them.
    ///
    /// # Errors
    /// [`Error::Invalid`] if messages are not sent to such an address; [`Code::WebhookLimitReached`]; when the database
    /// does not answer.
    pub async fn register(&self, seller: UserId, url: &str, kinds: Vec<MessageKind>) -> Result<NewWebhook> {
        let url = outbound::parse(url, (&self.config).into())
            .map_err(|refused| Error::invalid("url", refused.to_string()))?;
        let limit = self.config.endpoints_per_seller_max;
        if self.mongo.webhook_endpoints.of_seller(seller).await?.len() >= limit {
            let message = format!("a seller has at most {limit} webhooks; delete one first");
            return Err(Error::refused(Code::WebhookLimitReached, message));
        }
        let (id, now, secret) = (WebhookId::from_bytes(new_id()), self.clock.now(), signature::new_secret());
        let webhook = Webhook {
            id,
            seller,
            url: url.into(),
            kinds,
            state: WebhookState::Enabled,
            secret: self.sealer.seal(&id.to_string(), secret.expose_secret())?,
            previous: None,
            created_at: now,
            updated_at: now,
        };
        self.mongo.webhook_endpoints.insert(&webhook).await?;
        tracing::info!(%seller, webhook = %id, "webhook registered");
        Ok(NewWebhook { webhook, secret })
    }

    /// The seller's endpoint of this id.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the seller has none; when the database does not answer.
    pub async fn webhook(&self, seller: UserId, id: WebhookId) -> Result<Webhook> {
        let found = self.mongo.webhook_endpoints.by_id(id).await?;
        found.filter(|webhook| webhook.seller == seller).ok_or_else(unknown)
    }

    /// A seller's endpoints, oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_seller(&self, seller: UserId) -> Result<Vec<Webhook>> {
        self.mongo.webhook_endpoints.of_seller(seller).await
    }

    /// Removes an endpoint with everything that was sent to it.
    ///
    /// # Errors
    /// When the database does not answer: deleting again is safe.
    pub async fn delete(&self, webhook: &Webhook) -> Result<()> {
        // Its deliveries last: one that is made meanwhile is forgotten when it is tried.
        self.mongo.webhook_endpoints.delete(webhook.id).await?;
        self.mongo.webhook_deliveries.forget_all(webhook.id).await
    }

    /// Turns an endpoint on or off. What was still to be sent to one that is turned off is given up.
    ///
    /// # Errors
    /// [`Code::NotFound`] if it was deleted meanwhile; when the database does not answer.
    pub async fn set_enabled(&self, webhook: &Webhook, enabled: bool) -> Result<Webhook> {
        let to = if enabled { WebhookState::Enabled } else { WebhookState::Disabled };
        let changed = self.mongo.webhook_endpoints.set_state(webhook.id, &WebhookState::ALL, to).await?;
        if !enabled {
            self.mongo.webhook_deliveries.give_up(webhook.id).await?;
        }
        changed.ok_or_else(unknown)
    }

    /// Gives an endpoint a new secret; the one before signs beside it for a while.
    ///
    /// # Errors
    /// [`Code::NotFound`] if it was deleted or given another secret meanwhile; when the database does not answer.
    pub async fn rotate(&self, webhook: &Webhook) -> Result<NewWebhook> {
        let secret = signature::new_secret();
        let sealed = self.sealer.seal(&webhook.id.to_string(), secret.expose_secret())?;
        let overlap = chrono::Duration::seconds(i64::try_from(self.config.rotation_overlap_s).unwrap_or(0));
        let previous = PreviousSecret { sealed: webhook.secret.clone(), until: self.clock.now() + overlap };
        let new = NewSecret { sealed: &sealed, previous: &previous };
        let webhook = self.mongo.webhook_endpoints.rotate(webhook.id, new).await?.ok_or_else(unknown)?;
        tracing::info!(webhook = %webhook.id, "a webhook has a new secret");
        Ok(NewWebhook { webhook, secret })
    }

    /// What was sent to an endpoint, newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn deliveries(&self, webhook: &Webhook, page: Page) -> Result<Listed<Delivery>> {
        self.mongo.webhook_deliveries.of_webhook(webhook.id, page).await
    }

    /// Has a message sent to an endpoint again, from the first attempt on.
    ///
    /// # Errors
    /// [`Code::WebhookDisabled`]; [`Code::NotFound`] if the endpoint has no such delivery; when the database does not
    /// answer.
    pub async fn replay(&self, webhook: &Webhook, delivery: DeliveryId) -> Result<Delivery> {
        if webhook.state == WebhookState::Disabled {
            return Err(Error::refused(Code::WebhookDisabled, "the webhook is disabled; enable it first"));
        }
        let replayed = self.mongo.webhook_deliveries.replay(webhook.id, delivery, self.clock.now()).await?;
        replayed.ok_or_else(|| Error::not_found("delivery not found"))
    }
}
