//! A payment gateway that speaks Stripe's API, on a free port of this machine, and that misbehaves when it is told to.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::Utc;
use hmac::{Hmac, KeyInit, Mac};
use orbit::config::{Config, Gateway};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::harness::{Actor, Reply, TestApp, config};

const SECRET_KEY: &str = "sk_test_of_this_gateway";
/// That of the defaults.
const API_VERSION: &str = "2025-09-30.clover";
pub const WEBHOOK_SECRET: &str = "whsec_of_this_gateway_0001";
/// The one that is being replaced.
pub const OLD_WEBHOOK_SECRET: &str = "whsec_of_this_gateway_0000";
/// One call, in milliseconds: what a lost answer costs a test.
const DEADLINE_MS: u64 = 400;

/// What the gateway does to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Does it, and never answers.
    AnswerLost,
    /// Does it, and answers 500.
    ErrorAfter,
    /// Does it, and answers with what is no JSON.
    Rubbish,
    /// Does it, late, but in time.
    Slow,
    /// Does it, and answers when it is told to.
    Held,
    /// Does not do it, and never answers.
    Lost,
    /// Does not do it: 429.
    Busy,
    /// Does not do it: 400.
    Refused,
}

/// Everything that does it, and everything that passes.
pub const PASSING: [Fault; 5] = [Fault::AnswerLost, Fault::ErrorAfter, Fault::Rubbish, Fault::Slow, Fault::Busy];

type Fields = HashMap<String, String>;
/// An object, or a status and a code.
type Done = Result<Value, (u16, &'static str)>;

#[derive(Debug, Default)]
struct Books {
    intents: Vec<Value>,
    refunds: Vec<Value>,
    /// The fields and the answer of each idempotency key.
    answered: HashMap<String, (Fields, Done)>,
    faults: VecDeque<Fault>,
    questions: usize,
    /// Whether there is no money to give back.
    broke: bool,
    /// Calls that were left waiting.
    waiting: usize,
    /// Lets a call be answered that was held.
    gate: Arc<Notify>,
}

/// The gateway; it is gone when this is dropped.
pub struct StripeServer {
    url: String,
    books: Arc<Mutex<Books>>,
    /// Dropped, and so aborted, together with the gateway.
    _serving: JoinSet<()>,
}

impl StripeServer {
    pub async fn start() -> Self {
        let books = Arc::new(Mutex::new(Books::default()));
        let router = Router::new()
            .route("/v1/payment_intents", post(create_intent))
            .route("/v1/payment_intents/{id}", get(show_intent))
            .route("/v1/refunds", post(create_refund).get(list_refunds))
            .with_state(Arc::clone(&books));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, books, _serving: serving }
    }

    /// A configuration of the test's own that pays here.
    pub async fn config(&self) -> Config {
        let mut config = config().await;
        config.payment.gateway = Gateway::Stripe;
        config.payment.base_url.clone_from(&self.url);
        config.payment.secret_key = SECRET_KEY.into();
        config.payment.webhook_secrets = vec![OLD_WEBHOOK_SECRET.into(), WEBHOOK_SECRET.into()];
        config.payment.deadline_ms = DEADLINE_MS;
        config.validate().unwrap();
        config
    }

    /// An application that pays here.
    pub async fn app(&self) -> TestApp {
        TestApp::with(self.config().await).await
    }

    /// What the next calls meet, in order.
    pub fn meet(&self, faults: impl IntoIterator<Item = Fault>) {
        self.books.lock().unwrap().faults = faults.into_iter().collect();
    }

    /// Has no money to give back, or has some again. What it has answered to a key it answers again.
    pub fn go_broke(&self, broke: bool) {
        self.books.lock().unwrap().broke = broke;
    }

    /// Calls that were held, or lost, or whose answer was.
    pub fn waiting(&self) -> usize {
        self.books.lock().unwrap().waiting
    }

    /// Answers a call that is held.
    pub fn release(&self) {
        self.books.lock().unwrap().gate.notify_one();
    }

    /// The intents of a reservation.
    pub fn intents(&self, reservation: &str) -> Vec<Value> {
        let books = self.books.lock().unwrap();
        let of = |intent: &&Value| intent["metadata"]["reservation_id"] == reservation;
        books.intents.iter().filter(of).cloned().collect()
    }

    /// Calls that asked what became of an intent.
    pub fn questions(&self) -> usize {
        self.books.lock().unwrap().questions
    }

    /// The amounts that went back of an intent.
    pub fn refunds(&self, intent: &str) -> Vec<i64> {
        let books = self.books.lock().unwrap();
        let of = books.refunds.iter().filter(|refund| refund["payment_intent"] == intent);
        of.map(|refund| refund["amount"].as_i64().unwrap()).collect()
    }

    /// The buyer pays. Nobody is told of it.
    pub fn pay(&self, intent: &str) -> Value {
        let mut books = self.books.lock().unwrap();
        let found = books.intents.iter_mut().find(|one| one["id"] == intent).unwrap();
        found["status"] = "succeeded".into();
        found["amount_received"] = found["amount"].clone();
        found.clone()
    }

    /// Somebody gives money back on the gateway's own pages.
    pub fn refund_by_hand(&self, intent: &str, minor: i64) {
        let mut books = self.books.lock().unwrap();
        let currency = books.intents.iter().find(|one| one["id"] == intent).unwrap()["currency"].clone();
        let refund = json!({
            "id": "re_by_hand", "payment_intent": intent, "amount": minor, "currency": currency, "status": "succeeded",
        });
        books.refunds.push(refund);
    }
}

/// An event of the gateway.
pub fn event(id: &str, kind: &str, object: &Value) -> Value {
    json!({ "id": id, "object": "event", "type": kind, "data": { "object": object } })
}

/// An event that says that this intent is paid.
pub fn paid(id: &str, intent: &Value) -> Value {
    event(id, "payment_intent.succeeded", intent)
}

/// The header for a body that is signed at this moment.
pub fn signature(secret: &str, seconds: i64, body: &str) -> String {
    let mut mac: Hmac<Sha256> = Hmac::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{seconds}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

/// Sends a body with a signature.
pub async fn send(to: &Actor, body: String, signature: &str) -> Reply {
    let request = to.request(reqwest::Method::POST, "/api/payments/callback");
    Actor::send(request.header("stripe-signature", signature).body(body)).await
}

/// Sends an event as the gateway does.
pub async fn deliver(to: &Actor, event: &Value) -> Reply {
    let body = event.to_string();
    let signature = signature(WEBHOOK_SECRET, now_s(), &body);
    send(to, body, &signature).await
}

/// As [`deliver`], to a process that may be dead before it answers.
pub async fn try_deliver(to: &Actor, event: &Value) -> reqwest::Result<Reply> {
    let body = event.to_string();
    let signature = signature(WEBHOOK_SECRET, now_s(), &body);
    let request = to.request(reqwest::Method::POST, "/api/payments/callback");
    Actor::try_send(request.header("stripe-signature", signature).body(body)).await
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the gateway has a clock of its own")]
pub fn now_s() -> i64 {
    Utc::now().timestamp()
}

type Shared = State<Arc<Mutex<Books>>>;

/// Answers, unless a fault is due.
async fn answer(books: &Mutex<Books>, work: impl FnOnce(&mut Books) -> Done) -> Response {
    let (fault, done, gate) = {
        let mut books = books.lock().unwrap();
        let fault = books.faults.pop_front();
        let done = match fault {
            Some(Fault::Busy) => Err((429, "rate_limit")),
            Some(Fault::Refused) => Err((400, "invalid_request_error")),
            Some(Fault::Lost) => Ok(Value::Null),
            _ => work(&mut books),
        };
        books.waiting += usize::from(matches!(fault, Some(Fault::Held | Fault::Lost | Fault::AnswerLost)));
        (fault, done, Arc::clone(&books.gate))
    };
    match (fault, done) {
        (Some(Fault::AnswerLost | Fault::Lost), Ok(_)) => std::future::pending().await,
        (Some(Fault::Held), Ok(body)) => {
            gate.notified().await;
            Json(body).into_response()
        }
        (Some(Fault::ErrorAfter), Ok(_)) => problem(500, "api_error"),
        (Some(Fault::Rubbish), Ok(_)) => "<html>all is well</html>".into_response(),
        (fault, Ok(body)) => {
            if fault == Some(Fault::Slow) {
                tokio::time::sleep(Duration::from_millis(DEADLINE_MS / 4)).await;
            }
            Json(body).into_response()
        }
        (_, Err((status, code))) => problem(status, code),
    }
}

fn problem(status: u16, code: &str) -> Response {
    let body = json!({ "error": { "type": code, "code": code, "message": format!("your key {SECRET_KEY} is known") } });
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

/// The same key has the same answer, also if that was a refusal, and with other fields none.
fn once(
    books: &mut Books,
    headers: &HeaderMap,
    fields: Fields,
    make: impl FnOnce(&mut Books, &Fields) -> Done,
) -> Done {
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    if let Some((first, answer)) = books.answered.get(&key) {
        return if *first == fields { answer.clone() } else { Err((400, "idempotency_error")) };
    }
    let made = make(books, &fields);
    books.answered.insert(key, (fields, made.clone()));
    made
}

/// Whether it is ours, in the version of the API that this gateway speaks.
fn authorised(headers: &HeaderMap) -> bool {
    let ours = headers["authorization"].to_str().unwrap() == format!("Bearer {SECRET_KEY}");
    ours && headers["stripe-version"] == API_VERSION
}

async fn create_intent(State(books): Shared, headers: HeaderMap, Form(fields): Form<Fields>) -> Response {
    assert!(authorised(&headers));
    answer(&books, |books| {
        once(books, &headers, fields, |books, fields| {
            let id = format!("pi_{}", uuid::Uuid::new_v4().simple());
            let metadata = json!({
                "reservation_id": fields["metadata[reservation_id]"],
                "event_id": fields["metadata[event_id]"],
                "product_id": fields["metadata[product_id]"],
            });
            let intent = json!({
                "id": id, "object": "payment_intent", "status": "requires_payment_method", "amount_received": 0,
                "amount": fields["amount"].parse::<i64>().unwrap(), "currency": fields["currency"],
                "client_secret": format!("{id}_secret"), "metadata": metadata, "livemode": false,
            });
            assert_eq!(fields["automatic_payment_methods[enabled]"], "true");
            books.intents.push(intent.clone());
            Ok(intent)
        })
    })
    .await
}

async fn show_intent(State(books): Shared, Path(id): Path<String>, headers: HeaderMap) -> Response {
    assert!(authorised(&headers));
    answer(&books, |books| {
        books.questions += 1;
        books.intents.iter().find(|intent| intent["id"] == id).cloned().ok_or((404, "resource_missing"))
    })
    .await
}

async fn create_refund(State(books): Shared, headers: HeaderMap, Form(fields): Form<Fields>) -> Response {
    assert!(authorised(&headers));
    answer(&books, |books| {
        once(books, &headers, fields, |books, fields| {
            let (intent, amount) = (&fields["payment_intent"], fields["amount"].parse::<i64>().unwrap());
            let paid = books.intents.iter().find(|one| one["id"] == *intent).ok_or((404, "resource_missing"))?;
            let of = books.refunds.iter().filter(|refund| refund["payment_intent"] == *intent);
            let back: i64 = of.map(|refund| refund["amount"].as_i64().unwrap()).sum();
            if books.broke {
                return Err((400, "balance_insufficient"));
            }
            if back + amount > paid["amount_received"].as_i64().unwrap() {
                return Err((400, "charge_already_refunded"));
            }
            let refund = json!({
                "id": format!("re_{}", books.refunds.len()), "object": "refund", "payment_intent": intent,
                "amount": amount, "currency": paid["currency"], "status": "succeeded",
            });
            books.refunds.push(refund.clone());
            Ok(refund)
        })
    })
    .await
}

async fn list_refunds(State(books): Shared, Query(query): Query<Fields>, headers: HeaderMap) -> Response {
    assert!(authorised(&headers));
    answer(&books, |books| {
        let of = books.refunds.iter().filter(|refund| refund["payment_intent"] == query["payment_intent"].as_str());
        Ok(json!({ "object": "list", "data": of.collect::<Vec<_>>(), "has_more": false }))
    })
    .await
}
