//! Stripe, or what speaks its API: form-encoded requests under a secret key, JSON answers, signed callbacks.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::gateway::{GatewayEvent, Intent, IntentState, NewIntent, Notice, PaymentGateway};
use super::signature::Signing;
use crate::config::{self, ExposeSecret, SecretString};
use crate::domain::payment::Paid;
use crate::error::{Code, Dependency, Error, Result};

/// Larger answers are not from a payment gateway.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Refunds of one intent that are asked for. Ours are one for each change of its order.
const REFUNDS_MAX: &str = "100";

/// Currencies whose smallest unit is another one for Stripe than for ISO 4217: an amount would be a hundred times too large
/// or too small.
const OTHER_UNITS: [&str; 3] = ["ISK", "MGA", "UGX"];

/// Stripe.
pub(super) struct Stripe {
    http: Client,
    base_url: String,
    secret_key: SecretString,
    signing: Signing,
}

impl std::fmt::Debug for Stripe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stripe").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
struct IntentObject {
    id: String,
    status: String,
    #[serde(default)]
    amount_received: i64,
    currency: String,
    client_secret: Option<SecretString>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    reservation_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RefundObject {
    amount: i64,
    status: Option<String>,
}

impl RefundObject {
    /// A refund that failed is money that is still here.
    fn counts(&self) -> bool {
        !matches!(self.status.as_deref(), Some("failed" | "canceled"))
    }
}

#[derive(Debug, Deserialize)]
struct RefundList {
    data: Vec<RefundObject>,
}

#[derive(Debug, Deserialize)]
struct EventObject {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: EventData,
}

#[derive(Debug, Deserialize)]
struct EventData {
    object: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct ChargeObject {
    payment_intent: Option<String>,
}

impl From<IntentObject> for Intent {
    fn from(object: IntentObject) -> Self {
        let state = match object.status.as_str() {
            "succeeded" => IntentState::Succeeded,
            "canceled" => IntentState::Canceled,
            _ => IntentState::Open,
        };
        let received = Paid { minor: object.amount_received, currency: object.currency.to_ascii_uppercase() };
        Self { id: object.id, state, received, client_secret: object.client_secret, pay_url: None }
    }
}

impl Stripe {
    /// # Errors
    /// When the HTTP client cannot be made.
    pub(super) fn new(config: &config::Payment) -> Result<Self> {
        crate::tls::install();
        let deadline = Duration::from_millis(config.deadline_ms);
        let http = Client::builder()
            .timeout(deadline)
            // The secret key goes to the configured address and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| Error::internal("making the payment gateway's client", error))?;
        Ok(Self {
            http,
            base_url: config.base_url.trim_end_matches('/').to_owned(),
            secret_key: config.secret_key.clone(),
            signing: Signing::new(config.webhook_secrets.clone(), config.tolerance_s),
        })
    }

    fn post(&self, path: &str, form: &[(&str, &str)], key: &str) -> RequestBuilder {
        self.http.post(format!("{}{path}", self.base_url)).form(form).header("idempotency-key", key)
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.base_url))
    }

    /// Sends a request and reads the answer, within the client's deadline.
    async fn ask<T: DeserializeOwned>(&self, doing: &'static str, request: RequestBuilder) -> Result<T> {
        let failed = |why: String| Error::unavailable(Dependency::PaymentGateway, doing, why);
        // The address of a request may name a client secret; it is not repeated.
        let fault = |error: reqwest::Error| failed(error.without_url().to_string());
        let request = request.bearer_auth(self.secret_key.expose_secret());
        let mut answer = request.send().await.map_err(fault)?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(fault)? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(failed("the answer is too large".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        if !status.is_success() {
            return Err(failed(format!("status {status}{}", reason(&body))));
        }
        serde_json::from_slice(&body).map_err(|error| failed(format!("the answer cannot be read: {error}")))
    }
}

/// A currency as Stripe spells it.
fn form_currency(code: &str) -> Result<String> {
    if OTHER_UNITS.contains(&code) {
        return Err(Error::refused(Code::PaymentsOff, "payments in this currency cannot be taken"));
    }
    Ok(code.to_ascii_lowercase())
}

/// The gateway's own words for what is wrong, those that are from a closed list: its sentences may quote what was sent.
fn reason(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Answer {
        error: Reason,
    }
    #[derive(Deserialize)]
    struct Reason {
        #[serde(rename = "type")]
        kind: Option<String>,
        code: Option<String>,
    }
    let answer: Option<Answer> = serde_json::from_slice(body).ok();
    let words = answer.map(|answer| [answer.error.kind, answer.error.code]).into_iter().flatten().flatten();
    words.filter(|word| word.len() <= 64).map(|word| format!(", {word}")).collect()
}

impl PaymentGateway for Stripe {
    fn create<'a>(&'a self, wanted: &'a NewIntent) -> BoxFuture<'a, Result<Intent>> {
        Box::pin(async move {
            const DOING: &str = "creating a payment intent";
            let amount = wanted.amount.minor.to_string();
            let currency = form_currency(wanted.amount.currency.code())?;
            let (event, product) = (wanted.event.to_string(), wanted.product.to_string());
            let form = [
                ("amount", amount.as_str()),
                ("currency", currency.as_str()),
                ("automatic_payment_methods[enabled]", "true"),
                ("metadata[reservation_id]", wanted.reservation.as_str()),
                ("metadata[event_id]", event.as_str()),
                ("metadata[product_id]", product.as_str()),
            ];
            let request = self.post("/v1/payment_intents", &form, &wanted.reservation);
            Ok(self.ask::<IntentObject>(DOING, request).await?.into())
        })
    }

    fn intent<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Intent>> {
        Box::pin(async move {
            let request = self.get(&format!("/v1/payment_intents/{id}"));
            Ok(self.ask::<IntentObject>("asking about a payment", request).await?.into())
        })
    }

    fn refunded_minor<'a>(&'a self, intent: &'a str) -> BoxFuture<'a, Result<i64>> {
        Box::pin(async move {
            let query = serde_urlencoded::to_string([("payment_intent", intent), ("limit", REFUNDS_MAX)]);
            let query = query.map_err(|error| Error::internal("asking about refunds", error))?;
            let request = self.get(&format!("/v1/refunds?{query}"));
            let list: RefundList = self.ask("asking about refunds", request).await?;
            Ok(list.data.iter().filter(|refund| refund.counts()).map(|refund| refund.amount).sum())
        })
    }

    fn refund<'a>(&'a self, intent: &'a str, minor: i64, key: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            const DOING: &str = "refunding a payment";
            let amount = minor.to_string();
            let form = [("payment_intent", intent), ("amount", amount.as_str()), ("metadata[refund_key]", key)];
            let refund: RefundObject = self.ask(DOING, self.post("/v1/refunds", &form, key)).await?;
            if refund.counts() {
                return Ok(());
            }
            Err(Error::unavailable(Dependency::PaymentGateway, DOING, "the refund has failed"))
        })
    }

    fn verify(&self, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Result<GatewayEvent> {
        let header = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.signing.check_stripe(header, body, now)?;
        let event: EventObject = serde_json::from_slice(body).map_err(|_| unreadable())?;
        let notice = notice(&event.kind, event.data.object)?;
        Ok(GatewayEvent { id: event.id, notice })
    }
}

fn unreadable() -> Error {
    Error::refused(Code::MalformedBody, "the event cannot be read")
}

fn notice(kind: &str, object: serde_json::Value) -> Result<Notice> {
    match kind {
        "payment_intent.succeeded" | "payment_intent.payment_failed" => {
            let mut object: IntentObject = serde_json::from_value(object).map_err(|_| unreadable())?;
            let reservation = object.metadata.reservation_id.take();
            let intent = Intent::from(object);
            if kind == "payment_intent.payment_failed" {
                return Ok(Notice::Failed { intent: intent.id });
            }
            // A good signature does not make it captured: the object says whether the money is there.
            if intent.state != IntentState::Succeeded {
                return Ok(Notice::Other);
            }
            Ok(Notice::Succeeded { intent: intent.id, reservation, paid: intent.received })
        }
        "charge.refunded" => {
            let charge: ChargeObject = serde_json::from_value(object).map_err(|_| unreadable())?;
            Ok(charge.payment_intent.map_or(Notice::Other, |intent| Notice::Refunded { intent }))
        }
        _ => Ok(Notice::Other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_whose_object_is_not_captured_confirms_nothing() {
        let mut object = json!({ "id": "pi_1", "status": "requires_capture", "amount_received": 0, "currency": "inr" });
        assert_eq!(notice("payment_intent.succeeded", object.clone()).unwrap(), Notice::Other);
        object["status"] = "succeeded".into();
        object["amount_received"] = 300.into();
        object["metadata"] = json!({ "reservation_id": "r" });
        let paid = Paid { minor: 300, currency: "INR".to_owned() };
        let (intent, reservation) = ("pi_1".to_owned(), Some("r".to_owned()));
        assert_eq!(
            notice("payment_intent.succeeded", object).unwrap(),
            Notice::Succeeded { intent, reservation, paid }
        );
    }

    #[test]
    fn what_is_not_known_is_ignored_and_what_cannot_be_read_is_refused() {
        assert_eq!(notice("customer.created", json!({ "id": 7 })).unwrap(), Notice::Other);
        assert_eq!(notice("charge.refunded", json!({ "payment_intent": null })).unwrap(), Notice::Other);
        let refused = notice("payment_intent.succeeded", json!({ "id": 7 })).unwrap_err();
        assert_eq!(refused.code(), Code::MalformedBody);
    }

    #[test]
    fn a_currency_that_stripe_counts_in_other_units_is_refused() {
        assert_eq!(form_currency("INR").unwrap(), "inr");
        for code in OTHER_UNITS {
            assert_eq!(form_currency(code).unwrap_err().code(), Code::PaymentsOff);
        }
    }

    #[test]
    fn only_words_from_a_list_are_repeated() {
        let body = br#"{"error":{"type":"card_error","code":"charge_already_refunded","message":"secret sk_live_1"}}"#;
        assert_eq!(reason(body), ", card_error, charge_already_refunded");
        assert_eq!(reason(b"<html>"), "");
    }
}
