//! One attempt at one delivery: signed anew, sent, judged, recorded.

use std::time::Instant;

use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use secrecy::SecretString;

use super::{Webhooks, signature};
use crate::domain::message::Message;
use crate::domain::webhook::{Attempt, ERROR_CHARS_MAX, Webhook, WebhookState, pause_after};
use crate::error::Result;
use crate::outbound;
use crate::store::mongo::webhooks::{Claimed, Verdict};
use crate::telemetry::metrics::{WEBHOOK_ATTEMPTS, WEBHOOK_DELIVERIES_FAILED};

/// What came of a request.
enum Sent {
    /// An answer; its body is not read.
    Answered(StatusCode),
    /// None, for this reason.
    Unanswered(String),
}

impl Webhooks {
    /// Makes the attempt that is due, and records what follows from it.
    pub(super) async fn attempt(&self, claimed: &Claimed) -> Result<()> {
        let delivery = &claimed.delivery;
        let (webhook, message) = tokio::try_join!(
            self.mongo.webhook_endpoints.by_id(delivery.webhook),
            self.mongo.webhook_messages.by_id(&delivery.message),
        )?;
        let (Some(webhook), Some(message)) = (webhook, message) else {
            return self.mongo.webhook_deliveries.forget(delivery.id).await;
        };
        if webhook.state == WebhookState::Disabled {
            return self.mongo.webhook_deliveries.give_up(webhook.id).await;
        }
        let (at, began) = (self.clock.now(), Instant::now());
        let sent = self.send(&webhook, &message, at).await;
        let mut attempt = Attempt {
            number: delivery.attempts + 1,
            at,
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            status: None,
            error: None,
        };
        match sent {
            Sent::Answered(status) => {
                attempt.status = Some(status.as_u16());
                attempt.error = (!status.is_success()).then(|| refusal(status));
            }
            Sent::Unanswered(why) => attempt.error = Some(why.chars().take(ERROR_CHARS_MAX).collect()),
        }
        self.conclude(claimed, &webhook, &attempt).await
    }

    async fn conclude(&self, claimed: &Claimed, webhook: &Webhook, attempt: &Attempt) -> Result<()> {
        let endpoints = &self.mongo.webhook_endpoints;
        let gone = attempt.status == Some(StatusCode::GONE.as_u16());
        let (outcome, verdict) = match (&attempt.error, pause_after(attempt.number, rand::random())) {
            (None, _) => ("delivered", Verdict::Delivered),
            (Some(_), _) if gone => ("gone", Verdict::Failed),
            (Some(_), None) => ("exhausted", Verdict::Failed),
            (Some(_), Some(pause)) => ("failed", Verdict::Again(self.clock.now() + pause)),
        };
        metrics::counter!(WEBHOOK_ATTEMPTS, "outcome" => outcome).increment(1);
        if !self.mongo.webhook_deliveries.finish(claimed, attempt, verdict).await? {
            // The claim ran out, and somebody else has it in hand or the endpoint was turned off.
            tracing::debug!(delivery = %claimed.delivery.id, "an attempt came too late to count");
            return Ok(());
        }
        match verdict {
            Verdict::Delivered if webhook.state == WebhookState::Failing => {
                endpoints.set_state(webhook.id, &[WebhookState::Failing], WebhookState::Enabled).await?;
            }
            Verdict::Delivered | Verdict::Again(_) => {}
            Verdict::Failed if gone => {
                metrics::counter!(WEBHOOK_DELIVERIES_FAILED).increment(1);
                tracing::warn!(webhook = %webhook.id, "a webhook said that it is gone; it is disabled");
                endpoints.set_state(webhook.id, &WebhookState::ALL, WebhookState::Disabled).await?;
                self.mongo.webhook_deliveries.give_up(webhook.id).await?;
            }
            Verdict::Failed => {
                metrics::counter!(WEBHOOK_DELIVERIES_FAILED).increment(1);
                tracing::warn!(webhook = %webhook.id, "a message could not be delivered in any attempt");
                endpoints.set_state(webhook.id, &[WebhookState::Enabled], WebhookState::Failing).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, webhook: &Webhook, message: &Message, at: chrono::DateTime<chrono::Utc>) -> Sent {
        // The rules may have become stricter since it was registered, and a number is looked up nowhere.
        let url = match outbound::parse(&webhook.url, (&self.config).into()) {
            Ok(url) => url,
            Err(refused) => return Sent::Unanswered(format!("the address {refused}")),
        };
        let Some(signature) = self.sign(webhook, message, at) else {
            return Sent::Unanswered("the secret cannot be read; rotate it".to_owned());
        };
        match self.post(url, message, at, signature).await {
            Ok(status) => Sent::Answered(status),
            Err(error) => Sent::Unanswered(self.reason(&error)),
        }
    }

    async fn post(
        &self,
        url: Url,
        message: &Message,
        at: chrono::DateTime<chrono::Utc>,
        signature: String,
    ) -> reqwest::Result<StatusCode> {
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", at.timestamp())
            .header("webhook-signature", signature)
            .body(message.body.clone());
        Ok(request.send().await?.status())
    }

    /// With the newest secret, and with the one before while that is good.
    fn sign(&self, webhook: &Webhook, message: &Message, at: chrono::DateTime<chrono::Utc>) -> Option<String> {
        let open = |sealed: &str| self.sealer.open(&webhook.id.to_string(), sealed).map(SecretString::from).ok();
        let mut secrets = vec![open(&webhook.secret)?];
        let previous = webhook.previous.as_ref().filter(|previous| at < previous.until);
        secrets.extend(previous.and_then(|previous| open(&previous.sealed)));
        signature::sign(&secrets, &message.id, at.timestamp(), &message.body)
    }

    /// Why there was no answer, without the address: a seller may have put something secret into it.
    fn reason(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("no answer within {} ms", self.config.attempt_deadline_ms);
        }
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let doing = if error.is_connect() { "no connection" } else { "no answer" };
        format!("{doing}: {cause}")
    }
}

fn refusal(status: StatusCode) -> String {
    if status.is_redirection() {
        return format!("answered {}; redirects are not followed", status.as_u16());
    }
    format!("answered {}", status.as_u16())
}
