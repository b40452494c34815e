//! The payment gateway of trials: anybody pays anything by pressing a button, and no money moves.
//!
//! What it knows is in the database, so that every process knows it. Its events are signed and then go through the same
//! door as those of a real gateway.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::gateway::{GatewayEvent, Intent, IntentState, NewIntent, Notice, PaymentGateway, Refunded};
use super::signature::Signing;
use crate::config::{self, SecretString};
use crate::domain::payment::{Paid, PaymentState};
use crate::error::{Code, Dependency, Error, Result};
use crate::store::mongo::Mongo;
use crate::store::mongo::sandbox_intents::SandboxIntent;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The sandbox.
#[derive(Debug)]
pub struct Sandbox {
    mongo: Arc<Mongo>,
    signing: Signing,
}

/// A callback on its way.
#[derive(Debug)]
pub struct Callback {
    /// The signature and what it is of.
    pub headers: HeaderMap,
    /// The raw body.
    pub body: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventBody {
    #[serde(rename = "type")]
    kind: String,
    intent_id: String,
    reservation_id: String,
    amount_minor: i64,
    currency: String,
}

const SUCCEEDED: &str = "payment.succeeded";
const FAILED: &str = "payment.failed";

impl Sandbox {
    pub(super) fn new(mongo: Arc<Mongo>, config: &config::Payment) -> Self {
        let mut secrets = config.webhook_secrets.clone();
        if secrets.is_empty() {
            // Its events come from this process and go to this process: nobody else needs the secret.
            secrets.push(SecretString::from(format!("{}{}", uuid::Uuid::new_v4(), uuid::Uuid::new_v4())));
        }
        Self { mongo, signing: Signing::new(secrets, config.tolerance_s) }
    }

    /// What is to be paid.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn shown(&self, id: &str) -> Result<SandboxIntent> {
        self.mongo.sandbox_intents.by_id(id).await?.ok_or_else(|| Error::not_found("payment not found"))
    }

    /// Somebody has pressed a button: the callback that follows from it.
    ///
    /// # Errors
    /// [`Code::NotFound`]; when the database does not answer.
    pub async fn press(&self, id: &str, pays: bool, now: DateTime<Utc>) -> Result<Callback> {
        let wanted = if pays { PaymentState::Succeeded } else { PaymentState::Failed };
        let decided = self.mongo.sandbox_intents.decide(id, wanted).await?;
        let intent = decided.ok_or_else(|| Error::not_found("payment not found"))?;
        // What was paid before stays paid, and is told again: the event has the same name.
        let kind = if intent.state == PaymentState::Succeeded { SUCCEEDED } else { FAILED };
        let event = format!("{kind}:{}", intent.id);
        let body = EventBody {
            kind: kind.to_owned(),
            intent_id: intent.id,
            reservation_id: intent.reservation,
            amount_minor: intent.amount.minor,
            currency: intent.amount.currency.code().to_owned(),
        };
        let body = serde_json::to_vec(&body).map_err(|error| Error::internal("writing a sandbox event", error))?;
        self.signed(&event, body, now)
    }

    fn signed(&self, event: &str, body: Vec<u8>, now: DateTime<Utc>) -> Result<Callback> {
        let seconds = now.timestamp().to_string();
        let signature = self.signing.sign_webhook(event, &seconds, &body)?;
        let mut headers = HeaderMap::new();
        for (name, text) in [(ID, event), (TIMESTAMP, &seconds), (SIGNATURE, &signature)] {
            let value =
                HeaderValue::from_str(text).map_err(|error| Error::internal("signing a sandbox event", error))?;
            headers.insert(name, value);
        }
        Ok(Callback { headers, body })
    }
}

impl From<SandboxIntent> for Intent {
    fn from(intent: SandboxIntent) -> Self {
        let state = if intent.state == PaymentState::Succeeded { IntentState::Succeeded } else { IntentState::Open };
        Self {
            pay_url: Some(format!("/api/sandbox/pay/{}", intent.id)),
            received: Paid { minor: intent.amount.minor, currency: intent.amount.currency.code().to_owned() },
            id: intent.id,
            state,
            client_secret: None,
        }
    }
}

fn refused(doing: &'static str) -> Error {
    Error::unavailable(Dependency::PaymentGateway, doing, "the sandbox has no such money")
}

impl PaymentGateway for Sandbox {
    fn create<'a>(&'a self, wanted: &'a NewIntent) -> BoxFuture<'a, Result<Intent>> {
        Box::pin(async move {
            let (id, intents) = (format!("sandbox_{}", wanted.reservation), &self.mongo.sandbox_intents);
            Ok(intents.create(&id, &wanted.reservation, wanted.amount).await?.into())
        })
    }

    fn intent<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Intent>> {
        Box::pin(async move {
            let found = self.mongo.sandbox_intents.by_id(id).await?;
            Ok(found.ok_or_else(|| refused("asking about a payment"))?.into())
        })
    }

    fn refunded_minor<'a>(&'a self, intent: &'a str) -> BoxFuture<'a, Result<i64>> {
        Box::pin(async move {
            let found = self.mongo.sandbox_intents.by_id(intent).await?;
            Ok(found.ok_or_else(|| refused("asking about refunds"))?.refunded_minor)
        })
    }

    fn refund<'a>(&'a self, intent: &'a str, back: &'a Paid, key: &'a str) -> BoxFuture<'a, Result<Refunded>> {
        Box::pin(async move {
            let made = self.mongo.sandbox_intents.refund(intent, back.minor, key).await?;
            Ok(if made { Refunded::Made } else { Refunded::Refused("the sandbox has no such money".to_owned()) })
        })
    }

    fn verify(&self, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Result<GatewayEvent> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let id = text(ID);
        self.signing.check_webhook((id, text(TIMESTAMP), text(SIGNATURE)), body, now)?;
        let unreadable = |_| Error::refused(Code::MalformedBody, "the event cannot be read");
        let event: EventBody = serde_json::from_slice(body).map_err(unreadable)?;
        let notice = match event.kind.as_str() {
            SUCCEEDED => Notice::Succeeded {
                intent: event.intent_id,
                reservation: Some(event.reservation_id),
                paid: Paid { minor: event.amount_minor, currency: event.currency },
            },
            FAILED => Notice::Failed { intent: event.intent_id },
            _ => Notice::Other,
        };
        Ok(GatewayEvent { id: id.to_owned(), notice })
    }
}
