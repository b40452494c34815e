//! A voucher vendor on a free port of this machine, which misbehaves when it is told to, and counts what it has sold.
//!
//! It is naive unless it is told otherwise: an order that comes twice under one name is sold twice. So whoever orders again
//! what was sold is found out.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use orbit::config;
use orbit::domain::ids::VendorId;
use orbit::vouchers::prefetch::{HttpVendor, NewCandidate, VendorConnection};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub const API_KEY: &str = "key_of_this_vendor";
pub const PRODUCT: &str = "CARD/50 €";

/// What the vendor does to one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Sells, and never answers.
    AnswerLost,
    /// Sells, and answers 500.
    ErrorAfter,
    /// Sells, and closes the connection in the middle of the answer.
    Dropped,
    /// Sells, and answers with what is no JSON, but for the codes in it.
    Rubbish,
    /// Sells, and answers with more than anybody reads.
    Oversized,
    /// Sells, and says so without the codes.
    Bare,
    /// Sells, and sends us elsewhere.
    Redirect,
    /// Does not sell: 500.
    ErrorBefore,
    /// Does not sell, and never answers.
    Swallowed,
    /// Does not sell, and says so.
    Refused { permanent: bool },
    /// Sells so many fewer.
    Short(u32),
    /// Sells every code twice.
    Twice,
    /// Accepts, and is ready when it has been asked so often.
    Pending(u32),
    /// Sells, answers 500, and knows of nothing until it has been asked so often.
    Hidden(u32),
}

#[derive(Debug, Clone, Default)]
struct Order {
    vouchers: Vec<Value>,
    /// Questions until it is ready, or known.
    pending: u32,
    hidden: u32,
}

#[derive(Debug, Default)]
struct Books {
    units: u32,
    discount_bp: Option<u32>,
    orders: BTreeMap<String, Order>,
    refused: BTreeMap<String, bool>,
    /// How often something was ordered, sold, and asked about.
    posts: BTreeMap<String, u32>,
    sales: BTreeMap<String, u32>,
    questions: BTreeMap<String, u32>,
    faults: VecDeque<Fault>,
    /// What every order meets when there is nothing else.
    always: Option<Fault>,
    /// Says nothing of orders, and nothing of what it has.
    silent: bool,
    careful: bool,
    serial: u32,
    in_flight: usize,
    in_flight_max: usize,
}

struct Shop {
    books: Mutex<Books>,
    /// Orders wait here until the test lets them in.
    gate: Semaphore,
}

/// The vendor; it is gone when this is dropped.
pub struct Vendor {
    pub id: VendorId,
    url: String,
    shop: Arc<Shop>,
    /// Dropped, and so aborted, together with the vendor.
    _serving: JoinSet<()>,
}

impl Vendor {
    /// A vendor of this number, with so many units at this discount.
    pub async fn start(number: u8, units: u32, discount_bp: impl Into<Option<u32>>) -> Self {
        let books = Books { units, discount_bp: discount_bp.into(), ..Books::default() };
        let shop = Arc::new(Shop { books: Mutex::new(books), gate: Semaphore::new(Semaphore::MAX_PERMITS) });
        let router = Router::new()
            .route("/api/v1/products/{product}/availability", get(availability))
            .route("/api/v1/orders", post(create))
            .route("/api/v1/orders/{id}", get(show))
            .with_state(Arc::clone(&shop));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}/api", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { id: VendorId::from_bytes([number; 12]), url, shop, _serving: serving }
    }

    /// Where its API begins.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The way to it.
    pub fn api(&self, config: &config::Prefetch) -> HttpVendor {
        let connection = VendorConnection { base_url: self.url.clone(), api_key: API_KEY.into() };
        HttpVendor::new(&connection, config).unwrap()
    }

    /// It, in a job, with the discount that was agreed on.
    pub fn candidate(&self, discount_bp: u32) -> NewCandidate {
        NewCandidate { vendor: self.id, product_ref: PRODUCT.to_owned(), discount_bp }
    }

    /// What the next orders meet.
    pub fn meet(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shop.books.lock().unwrap().faults = faults.into_iter().collect();
    }

    /// What every order meets that meets nothing else.
    pub fn always(&self, fault: impl Into<Option<Fault>>) {
        self.shop.books.lock().unwrap().always = fault.into();
    }

    /// Whether it says nothing when it is asked.
    pub fn silent(&self, silent: bool) {
        self.shop.books.lock().unwrap().silent = silent;
    }

    /// From now on it sells once under one name.
    pub fn careful(&self) {
        self.shop.books.lock().unwrap().careful = true;
    }

    /// Lets no order in any more; they wait.
    pub fn close_gate(&self) {
        self.shop.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Lets so many orders in.
    pub fn let_in(&self, orders: usize) {
        self.shop.gate.add_permits(orders);
    }

    /// Orders that came, by their names.
    pub fn posts(&self) -> BTreeMap<String, u32> {
        self.shop.books.lock().unwrap().posts.clone()
    }

    /// How often it has sold under each name.
    pub fn sales(&self) -> BTreeMap<String, u32> {
        self.shop.books.lock().unwrap().sales.clone()
    }

    /// Questions about orders, by their names.
    pub fn questions(&self) -> BTreeMap<String, u32> {
        self.shop.books.lock().unwrap().questions.clone()
    }

    /// What it has sold under one name, as it tells it.
    pub fn sold(&self, name: &str) -> Vec<Value> {
        self.shop.books.lock().unwrap().orders[name].vouchers.clone()
    }

    /// Every code that it has sold under names that it remembers.
    pub fn codes(&self) -> Vec<String> {
        let books = self.shop.books.lock().unwrap();
        let vouchers = books.orders.values().flat_map(|order| &order.vouchers);
        vouchers.map(|voucher| voucher["code"].as_str().unwrap().to_owned()).collect()
    }

    /// Orders at once, at most; of those that were answered well.
    pub fn in_flight_max(&self) -> usize {
        self.shop.books.lock().unwrap().in_flight_max
    }

    /// Asserts that nothing was sold twice, and that so many orders were sold.
    pub fn assert_sold_once(&self, orders: usize) {
        let sales = self.sales();
        assert!(sales.values().all(|times| *times == 1), "sold twice: {sales:?}");
        assert_eq!(sales.len(), orders, "{sales:?}");
    }
}

fn authorised(headers: &HeaderMap) -> bool {
    headers["authorization"].to_str().unwrap() == format!("Bearer {API_KEY}")
}

fn failing() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("the key {API_KEY} is known")).into_response()
}

async fn availability(
    State(shop): State<Arc<Shop>>,
    Path(product): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    assert!(authorised(&headers));
    assert_eq!(
        (product.as_str(), query["denominationMinor"].as_str(), query["currency"].as_str()),
        (PRODUCT, "5000", "EUR")
    );
    let books = shop.books.lock().unwrap();
    if books.silent {
        return failing();
    }
    let left = books
        .units
        .saturating_sub(u32::try_from(books.orders.values().map(|o| o.vouchers.len()).sum::<usize>()).unwrap());
    Json(json!({ "units": left, "discountBp": books.discount_bp })).into_response()
}

impl Books {
    fn sell(&mut self, id: &str, count: u32, fault: Option<Fault>) {
        if self.careful && self.orders.contains_key(id) {
            return;
        }
        *self.sales.entry(id.to_owned()).or_default() += 1;
        self.serial += 1;
        let serial = self.serial;
        let count = if let Some(Fault::Short(fewer)) = fault { count - fewer } else { count };
        let voucher = |index: u32| {
            let index = if fault == Some(Fault::Twice) { index / 2 } else { index };
            json!({
                "code": format!("CODE-{id}-{serial}-{index}"), "pin": "0042", "reference": format!("{id}/{index}"),
                "claimUrl": null, "expiresAt": "2031-03-31T21:59:59Z",
            })
        };
        let pending = if let Some(Fault::Pending(questions)) = fault { questions } else { 0 };
        let hidden = if let Some(Fault::Hidden(questions)) = fault { questions } else { 0 };
        self.orders.insert(id.to_owned(), Order { vouchers: (0..count).map(voucher).collect(), pending, hidden });
    }

    fn told(&mut self, id: &str) -> (StatusCode, Value) {
        if let Some(permanent) = self.refused.get(id) {
            let body =
                json!({ "externalId": id, "status": "refused", "permanent": permanent, "reason": "out_of_stock" });
            return (StatusCode::CONFLICT, body);
        }
        match self.orders.get_mut(id) {
            Some(order) if order.hidden > 0 => order.hidden -= 1,
            Some(order) if order.pending > 0 => {
                order.pending -= 1;
                return (StatusCode::ACCEPTED, json!({ "externalId": id, "status": "pending" }));
            }
            Some(order) => {
                let body = json!({ "externalId": id, "status": "fulfilled", "vouchers": order.vouchers });
                return (StatusCode::OK, body);
            }
            None => {}
        }
        (StatusCode::NOT_FOUND, json!({ "externalId": id, "status": "not_found" }))
    }
}

async fn create(State(shop): State<Arc<Shop>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    assert!(authorised(&headers));
    assert_eq!(
        (&body["product"], &body["denominationMinor"], &body["currency"]),
        (&json!(PRODUCT), &json!(5000), &json!("EUR"))
    );
    let id = body["externalId"].as_str().unwrap().to_owned();
    let count = u32::try_from(body["count"].as_u64().unwrap()).unwrap();
    let fault = {
        let mut books = shop.books.lock().unwrap();
        *books.posts.entry(id.clone()).or_default() += 1;
        books.in_flight += 1;
        books.in_flight_max = books.in_flight_max.max(books.in_flight);
        books.faults.pop_front().or(books.always)
    };
    shop.gate.acquire().await.unwrap().forget();
    let (status, told) = {
        let mut books = shop.books.lock().unwrap();
        books.refused.remove(&id);
        match fault {
            Some(Fault::ErrorBefore | Fault::Swallowed) => {}
            Some(Fault::Refused { permanent }) => drop(books.refused.insert(id.clone(), permanent)),
            _ => books.sell(&id, count, fault),
        }
        books.told(&id)
    };
    match fault {
        Some(Fault::AnswerLost | Fault::Swallowed) => std::future::pending().await,
        Some(Fault::ErrorAfter | Fault::ErrorBefore | Fault::Hidden(_)) => failing(),
        Some(Fault::Bare) => Json(json!({ "externalId": id, "status": "fulfilled" })).into_response(),
        Some(Fault::Redirect) => axum::response::Redirect::temporary("/api/v1/orders/elsewhere").into_response(),
        Some(Fault::Rubbish) => format!("<html>{told}</html>").into_response(),
        Some(Fault::Oversized) => format!("{told}{}", " ".repeat(2 * 1024 * 1024)).into_response(),
        Some(Fault::Dropped) => {
            let half = Bytes::from(told.to_string().into_bytes()[..20].to_vec());
            let cut = futures::stream::iter([Ok(half), Err(std::io::Error::other("cut"))]);
            Body::from_stream(cut).into_response()
        }
        _ => {
            // Long enough for orders to overlap.
            tokio::time::sleep(Duration::from_millis(20)).await;
            shop.books.lock().unwrap().in_flight -= 1;
            (status, Json(told)).into_response()
        }
    }
}

async fn show(State(shop): State<Arc<Shop>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    assert!(authorised(&headers));
    let mut books = shop.books.lock().unwrap();
    *books.questions.entry(id.clone()).or_default() += 1;
    if books.silent {
        return failing();
    }
    let (status, told) = books.told(&id);
    (status, Json(told)).into_response()
}
