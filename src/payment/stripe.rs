//! Stripe, or what speaks its API: form-encoded requests under a secret key, JSON answers, signed callbacks.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::gateway::{GatewayEvent, Intent, IntentState, NewIntent, Notice, PaymentGateway, Refunded};
use super::signature::Signing;
use super::units;
use crate::config::{self, ExposeSecret, SecretString};
use crate::domain::payment::Paid;
use crate::error::{Code, Dependency, Error, Result};

/// Larger answers are not from a payment gateway.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Refunds of one intent that are asked for. Ours are one for each change of its order.
const REFUNDS_MAX: &str = "100";

/// Stripe.
pub(super) struct Stripe {
    http: Client,
    base_url: String,
    /// The version of the API that is spoken; empty for the one that the account is set to.
    api_version: String,
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
    currency: String,
    status: Option<String>,
}

impl RefundObject {
    /// A refund that failed is money that is still here.
    fn counts(&self) -> bool {
        !matches!(self.status.as_deref(), Some("failed" | "canceled"))
    }

    fn minor(&self) -> Option<i64> {
        units::from_stripe(self.amount, &self.currency.to_ascii_uppercase())
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

/// An answer that is no object.
struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    /// Whether the gateway has looked at the request and does not do it: then it answers the same under the same key for a
    /// day. Not so if it did not come to that: who asks is not known, somebody asks at the same moment, or too often. What
    /// came of it after an error of its own is not known either.
    fn lasts(&self) -> bool {
        let passes =
            [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS];
        self.status.is_client_error() && !passes.contains(&self.status)
    }
}

/// An amount is not a whole number of our units.
#[derive(Debug, thiserror::Error)]
#[error("the amount is no whole number of minor units")]
struct OddAmount;

impl TryFrom<IntentObject> for Intent {
    type Error = OddAmount;

    fn try_from(object: IntentObject) -> Result<Self, OddAmount> {
        let currency = object.currency.to_ascii_uppercase();
        let minor = units::from_stripe(object.amount_received, &currency).ok_or(OddAmount)?;
        let state = match object.status.as_str() {
            "succeeded" => IntentState::Succeeded,
            "canceled" => IntentState::Canceled,
            _ => IntentState::Open,
        };
        let received = Paid { minor, currency };
        Ok(Self { id: object.id, state, received, client_secret: object.client_secret, pay_url: None })
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
            api_version: config.api_version.clone(),
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

    async fn ask_for_intent(&self, doing: &'static str, request: RequestBuilder) -> Result<Intent> {
        let object: IntentObject = self.ask(doing, request).await?;
        object.try_into().map_err(|odd: OddAmount| Error::unavailable(Dependency::PaymentGateway, doing, odd))
    }

    /// As [`Self::answer`], where it does not matter why there is no object.
    async fn ask<T: DeserializeOwned>(&self, doing: &'static str, request: RequestBuilder) -> Result<T> {
        let refused = |refusal: Refusal| Error::unavailable(Dependency::PaymentGateway, doing, refusal.why);
        self.answer(doing, request).await?.map_err(refused)
    }

    /// Sends a request and reads the answer, within the client's deadline: an object, or a refusal.
    async fn answer<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        request: RequestBuilder,
    ) -> Result<Result<T, Refusal>> {
        let failed = |why: String| Error::unavailable(Dependency::PaymentGateway, doing, why);
        // The address of a request may name a client secret; it is not repeated.
        let fault = |error: reqwest::Error| failed(error.without_url().to_string());
        let mut request = request.bearer_auth(self.secret_key.expose_secret());
        if !self.api_version.is_empty() {
            // What an answer means is not to change when somebody changes the account's version.
            request = request.header("stripe-version", &self.api_version);
        }
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
            let why = format!("status {status}{}", reason(&body));
            return Ok(Err(Refusal { status, why }));
        }
        serde_json::from_slice(&body).map(Ok).map_err(|error| failed(format!("the answer cannot be read: {error}")))
    }
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
            let units = u32::try_from(wanted.amount.minor / wanted.price.minor.max(1)).unwrap_or(u32::MAX);
            units::check_price(wanted.price, units)?;
            let code = wanted.amount.currency.code();
            let amount = in_their_units(DOING, wanted.amount.minor, code)?;
            let currency = code.to_ascii_lowercase();
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
            self.ask_for_intent(DOING, request).await
        })
    }

    fn intent<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Intent>> {
        Box::pin(async move {
            let request = self.get(&format!("/v1/payment_intents/{id}"));
            self.ask_for_intent("asking about a payment", request).await
        })
    }

    fn refunded_minor<'a>(&'a self, intent: &'a str) -> BoxFuture<'a, Result<i64>> {
        Box::pin(async move {
            const DOING: &str = "asking about refunds";
            let query = serde_urlencoded::to_string([("payment_intent", intent), ("limit", REFUNDS_MAX)]);
            let query = query.map_err(|error| Error::internal(DOING, error))?;
            let list: RefundList = self.ask(DOING, self.get(&format!("/v1/refunds?{query}"))).await?;
            let counted = list.data.iter().filter(|refund| refund.counts());
            let sum: Option<i64> = counted.map(RefundObject::minor).sum();
            sum.ok_or_else(|| Error::unavailable(Dependency::PaymentGateway, DOING, OddAmount))
        })
    }

    fn refund<'a>(&'a self, intent: &'a str, back: &'a Paid, key: &'a str) -> BoxFuture<'a, Result<Refunded>> {
        Box::pin(async move {
            const DOING: &str = "refunding a payment";
            let amount = in_their_units(DOING, back.minor, &back.currency)?;
            let form = [("payment_intent", intent), ("amount", amount.as_str()), ("metadata[refund_key]", key)];
            match self.answer::<RefundObject>(DOING, self.post("/v1/refunds", &form, key)).await? {
                Ok(refund) if refund.counts() => Ok(Refunded::Made),
                Ok(_) => Ok(Refunded::Refused("the refund has failed".to_owned())),
                Err(refusal) if refusal.lasts() => Ok(Refunded::Refused(refusal.why)),
                Err(refusal) => Err(Error::unavailable(Dependency::PaymentGateway, DOING, refusal.why)),
            }
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

/// What goes back is a part of what was taken, so that there is such an amount.
fn in_their_units(doing: &'static str, minor: i64, code: &str) -> Result<String> {
    let there = units::to_stripe(minor, code).ok_or_else(|| Error::internal(doing, format!("{minor} of {code}")))?;
    Ok(there.to_string())
}

fn unreadable() -> Error {
    Error::refused(Code::MalformedBody, "the event cannot be read")
}

fn notice(kind: &str, object: serde_json::Value) -> Result<Notice> {
    match kind {
        "payment_intent.succeeded" | "payment_intent.payment_failed" => {
            let mut object: IntentObject = serde_json::from_value(object).map_err(|_| unreadable())?;
            let reservation = object.metadata.reservation_id.take();
            let intent = Intent::try_from(object).map_err(|_| unreadable())?;
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
    fn what_was_received_is_told_in_our_units() {
        let paid = |amount: i64, currency: &str| {
            let object =
                json!({ "id": "pi_1", "status": "succeeded", "amount_received": amount, "currency": currency });
            match notice("payment_intent.succeeded", object) {
                Ok(Notice::Succeeded { paid, .. }) => Some((paid.minor, paid.currency)),
                _ => None,
            }
        };
        assert_eq!(paid(500, "jpy"), Some((500, "JPY".to_owned())));
        assert_eq!(paid(500, "isk"), Some((5, "ISK".to_owned())));
        assert_eq!(paid(5, "mga"), Some((500, "MGA".to_owned())));
        assert_eq!(paid(550, "ugx"), None, "it cannot be read");
    }

    #[test]
    fn only_words_from_a_list_are_repeated() {
        let body = br#"{"error":{"type":"card_error","code":"charge_already_refunded","message":"secret sk_live_1"}}"#;
        assert_eq!(reason(body), ", card_error, charge_already_refunded");
        assert_eq!(reason(b"<html>"), "");
    }
}
