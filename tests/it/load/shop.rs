//! A small service in memory that keeps the HTTP contract as far as the load tool uses it, and can break it on purpose.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Multipart, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub const ADMIN: &str = "admin@example.com";
/// Lists come in pages of this size.
const PAGE: usize = 5;

/// One way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Oversells,
    LosesAnOrder,
    InventsAnOrder,
    RoundsPrices,
    LosesAUnit,
    SellsAfterTheEnd,
    MiscountsRevenue,
    RefusesEveryTenth,
    LosesAnswers,
    HasNoCodes,
    StallsOnce(Duration),
}

#[derive(Debug, Clone)]
struct Product {
    id: String,
    price: String,
    stock: i64,
    wishes: usize,
}

#[derive(Debug, Clone)]
struct Booking {
    reservation: String,
    user: String,
    product: String,
    price: String,
    key: String,
}

#[derive(Debug, Default)]
struct Store {
    pending: Vec<String>,
    products: Vec<Product>,
    bookings: Vec<Booking>,
    live: bool,
}

/// The service. Dropping it stops it.
pub struct Shop {
    address: String,
    pub lost_answers: Arc<AtomicUsize>,
    store: Arc<Mutex<Store>>,
    _server: JoinSet<()>,
}

#[derive(Clone)]
struct Desk {
    fault: Option<Fault>,
    store: Arc<Mutex<Store>>,
    purchases: Arc<AtomicUsize>,
    lost_answers: Arc<AtomicUsize>,
    stalled_until: Arc<Mutex<Option<tokio::time::Instant>>>,
}

type Cursor = Query<HashMap<String, String>>;

impl Shop {
    pub async fn open(fault: Option<Fault>) -> Self {
        let store = Arc::new(Mutex::new(Store {
            pending: (0..12).map(|n| format!("other-{n}")).collect(),
            ..Store::default()
        }));
        let lost_answers = Arc::<AtomicUsize>::default();
        let desk = Desk {
            fault,
            store: Arc::clone(&store),
            purchases: Arc::default(),
            lost_answers: Arc::clone(&lost_answers),
            stalled_until: Arc::default(),
        };
        let routes = Router::new()
            .route("/api/auth/signup", post(sign_up))
            .route("/api/auth/signin", post(sign_in))
            .route("/api/auth/check", get(async || Json(json!({ "authenticated": true }))))
            .route("/api/seller/verify", post(verify))
            .route("/api/admin/verifications/pending", get(pending))
            .route("/api/admin/verifications/{id}/approve", post(async || Json(json!({}))))
            .route("/api/seller/events/create", post(create_event))
            .route("/api/seller/events/{event}/registerProducts", post(register_product))
            .route("/api/seller/events/{event}/Live", post(async |State(desk): State<Desk>| set_live(&desk, true)))
            .route("/api/seller/events/{event}/End", post(async |State(desk): State<Desk>| set_live(&desk, false)))
            .route("/api/buyer/event/{event}", get(products))
            .route("/api/buyer/event/{event}/purchase/{product}", post(purchase))
            .route("/api/seller/events/booking/fetch/{event}", get(orders))
            .route("/api/seller/events/booking/analytics/{event}", get(analytics))
            .with_state(desk);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, lost_answers, store, _server: server }
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// How often each product was asked for.
    pub fn wishes(&self) -> Vec<usize> {
        self.store.lock().unwrap().products.iter().map(|product| product.wishes).collect()
    }
}

fn signed(status: StatusCode, email: &str) -> Response {
    let cookie = [(header::SET_COOKIE, format!("token={email}; Path=/; HttpOnly"))];
    (status, cookie, Json(json!({ "user": { "_id": email } }))).into_response()
}

async fn sign_up(Json(body): Json<Value>) -> Response {
    signed(StatusCode::CREATED, body["emailId"].as_str().unwrap())
}

async fn sign_in(Json(body): Json<Value>) -> Response {
    match body["emailId"].as_str().unwrap() {
        "stranger@example.com" => StatusCode::UNAUTHORIZED.into_response(),
        email => signed(StatusCode::OK, email),
    }
}

fn caller(headers: &HeaderMap) -> String {
    headers[header::AUTHORIZATION].to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
}

fn set_live(desk: &Desk, live: bool) -> Json<Value> {
    desk.store.lock().unwrap().live = live;
    Json(json!({}))
}

async fn verify(State(desk): State<Desk>, headers: HeaderMap) -> Json<Value> {
    desk.store.lock().unwrap().pending.push(caller(&headers));
    Json(json!({}))
}

/// One page of a list, and the cursor of the next.
fn page(name: &str, items: Vec<Value>, query: &HashMap<String, String>) -> Json<Value> {
    let from: usize = query.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let next = (from + PAGE < items.len()).then(|| (from + PAGE).to_string());
    let items: Vec<Value> = items.into_iter().skip(from).take(PAGE).collect();
    // Null for nothing, as older servers say it.
    let items = if items.is_empty() { Value::Null } else { items.into() };
    Json(json!({ name: items, "nextCursor": next }))
}

async fn pending(State(desk): State<Desk>, Query(query): Cursor) -> Json<Value> {
    let pending = desk.store.lock().unwrap().pending.clone();
    page("verifications", pending.into_iter().map(|seller| json!({ "id": "v", "sellerId": seller })).collect(), &query)
}

async fn create_event(form: Multipart) -> (StatusCode, Json<Value>) {
    let fields = read(form).await;
    assert!(fields["scheduledAt"].contains('T') && fields.contains_key("imageBanner"));
    (StatusCode::CREATED, Json(json!({ "eventId": "e" })))
}

async fn register_product(State(desk): State<Desk>, form: Multipart) -> StatusCode {
    let fields = read(form).await;
    assert_eq!(fields["image"], "application/octet-stream");
    let mut store = desk.store.lock().unwrap();
    let product = Product {
        id: format!("p{:02}", store.products.len()),
        price: fields["price"].clone(),
        stock: fields["frequency"].parse().unwrap(),
        wishes: 0,
    };
    store.products.push(product);
    StatusCode::CREATED
}

/// Fields with their text; files with their declared type.
async fn read(mut form: Multipart) -> HashMap<String, String> {
    let mut fields = HashMap::new();
    while let Some(field) = form.next_field().await.unwrap() {
        let (name, kind) = (field.name().unwrap().to_owned(), field.content_type().map(str::to_owned));
        let bytes = field.bytes().await.unwrap();
        fields.insert(name, kind.unwrap_or_else(|| String::from_utf8(bytes.to_vec()).unwrap()));
    }
    fields
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

async fn products(State(desk): State<Desk>, Query(query): Cursor) -> Json<Value> {
    let products = desk.store.lock().unwrap().products.clone();
    let seen = |p: Product| json!({ "productId": p.id, "price": number(&p.price), "availableStock": p.stock });
    page("products", products.into_iter().map(seen).collect(), &query)
}

async fn purchase(State(desk): State<Desk>, Path((_, id)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let number = desk.purchases.fetch_add(1, Ordering::Relaxed);
    stall(&desk, number).await;
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let decision = decide(&desk, number, caller(&headers), &id, &key);
    // The decision stands, and the buyer is not told.
    if desk.fault == Some(Fault::LosesAnswers) && number.is_multiple_of(3) && number < 60 {
        desk.lost_answers.fetch_add(1, Ordering::Relaxed);
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    decision
}

/// From the fiftieth purchase on, nobody is served for a while.
async fn stall(desk: &Desk, number: usize) {
    let Some(Fault::StallsOnce(time)) = desk.fault else { return };
    let until = {
        let mut until = desk.stalled_until.lock().unwrap();
        if number == 50 {
            *until = Some(tokio::time::Instant::now() + time);
        }
        *until
    };
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
}

fn decide(desk: &Desk, number: usize, user: String, id: &str, key: &str) -> Response {
    let fault = |fault| desk.fault == Some(fault);
    let mut store = desk.store.lock().unwrap();
    let live = store.live || fault(Fault::SellsAfterTheEnd);
    let product = store.products.iter_mut().find(|product| product.id == id).unwrap();
    product.wishes += 1;
    let product = product.clone();
    if !live {
        return refused(desk, "sale not active");
    }
    if fault(Fault::RefusesEveryTenth) && number.is_multiple_of(10) {
        return (StatusCode::TOO_MANY_REQUESTS, Json(json!({ "error": "slow down", "code": "rate_limited" })))
            .into_response();
    }
    if let Some(booking) = store.bookings.iter().find(|booking| booking.user == user && booking.product == id) {
        return if booking.key == key { accepted(desk, booking) } else { refused(desk, "already booked") };
    }
    let unit_gone = fault(Fault::LosesAUnit) && id == "p03";
    let spare = i64::from(fault(Fault::Oversells));
    if product.stock + spare <= 0 || unit_gone {
        return refused(desk, "sold out");
    }
    store.products.iter_mut().filter(|product| product.id == id).for_each(|product| product.stock -= 1);
    let (reservation, price) = (format!("r{}", store.bookings.len()), product.price);
    let booking = Booking { reservation, user, product: id.to_owned(), price, key: key.to_owned() };
    store.bookings.push(booking.clone());
    accepted(desk, &booking)
}

fn accepted(desk: &Desk, booking: &Booking) -> Response {
    let rounded = booking.price.split('.').next().unwrap().to_owned();
    let price = if desk.fault == Some(Fault::RoundsPrices) { rounded } else { booking.price.clone() };
    let body = json!({ "reservationId": booking.reservation, "price": number(&price), "status": "CONFIRMED" });
    (StatusCode::CREATED, Json(body)).into_response()
}

fn refused(desk: &Desk, text: &str) -> Response {
    let code = if desk.fault == Some(Fault::HasNoCodes) { Value::Null } else { text.replace(' ', "_").into() };
    (StatusCode::CONFLICT, Json(json!({ "error": text, "code": code }))).into_response()
}

fn order(booking: &Booking) -> Value {
    json!({
        "id": booking.reservation, "reservationId": booking.reservation, "userId": booking.user,
        "productId": booking.product, "eventId": "e", "price": number(&booking.price), "status": "CONFIRMED",
    })
}

fn settled(desk: &Desk) -> Vec<Booking> {
    let mut bookings = desk.store.lock().unwrap().bookings.clone();
    if desk.fault == Some(Fault::LosesAnOrder) {
        bookings.pop();
    }
    if desk.fault == Some(Fault::InventsAnOrder) {
        let (reservation, user) = ("r-invented".to_owned(), "nobody".to_owned());
        let invented = Booking { reservation, user, ..bookings[0].clone() };
        bookings.push(invented);
    }
    bookings
}

async fn orders(State(desk): State<Desk>, Query(query): Cursor) -> Json<Value> {
    page("orders", settled(&desk).iter().map(order).collect(), &query)
}

async fn analytics(State(desk): State<Desk>) -> Json<Value> {
    let bookings = settled(&desk);
    let paise: i64 = bookings.iter().map(|booking| booking.price.replace('.', "").parse::<i64>().unwrap()).sum();
    let paise = paise + i64::from(desk.fault == Some(Fault::MiscountsRevenue));
    let revenue = number(&format!("{}.{:02}", paise / 100, paise % 100));
    let statuses = BTreeMap::from([("CONFIRMED", bookings.len())]);
    Json(json!({
        "analytics": { "totalOrders": bookings.len(), "totalRevenue": revenue, "statusBreakdown": statuses }
    }))
}
