//! What is sold, to whom, and the records of it in the database.

use chrono::DateTime;
use orbit::domain::event::{Event, SalePhase, Terms};
use orbit::domain::ids::{EventId, ProductId, UserId};
use orbit::domain::money::{self, Money};
use orbit::domain::product::Product;
use orbit::store::live::keys::Keys;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::clock::START_MS;

/// A sale, as its seller prepared it.
#[derive(Debug, Clone)]
pub struct Catalogue {
    pub event: Event,
    pub products: Vec<Product>,
    pub buyers: Vec<UserId>,
    /// Whether buyers pay at the gateway. In other sales with unpaid reservations somebody says that they have paid.
    pub pays: bool,
    pub keys: Keys,
}

impl Catalogue {
    /// A few products of a few units, and a few buyers too many.
    pub fn random(random: &mut StdRng) -> Self {
        let event = event(random);
        let count = random.random_range(1..4);
        let products = (0..count).map(|number| product(&event, number, random)).collect();
        let buyers = (0..12).map(|number| UserId::from_bytes(id(3, number))).collect();
        let pays = event.terms.payment_window_s > 0 && random.random_bool(0.6);
        Self { event, products, buyers, pays, keys: Keys::new("") }
    }

    pub const fn id(&self) -> EventId {
        self.event.id
    }

    pub fn product(&self, id: ProductId) -> Option<&Product> {
        self.products.iter().find(|product| product.id == id)
    }
}

fn id(kind: u8, number: u8) -> [u8; 12] {
    let mut id = [0; 12];
    (id[0], id[11]) = (kind, number);
    id
}

/// In half of the sales a reservation is to be paid, within a time that is soon over; some open by themselves, and some
/// end.
fn event(random: &mut StdRng) -> Event {
    let then = DateTime::UNIX_EPOCH;
    let payment_window_s = if random.random_bool(0.5) { random.random_range(1..4) } else { 0 };
    let terms = Terms { payment_window_s, cancel_until: None, refund_keeps_slot: random.random_bool(0.2) };
    let mut moment =
        |range: std::ops::Range<i64>| DateTime::from_timestamp_millis(START_MS + random.random_range(range)).unwrap();
    let (scheduled_at, ends_at) = (moment(0..4_000), moment(4_000..20_000));
    Event {
        id: EventId::from_bytes(id(1, 1)),
        seller: UserId::from_bytes(id(4, 1)),
        slug: "a-sale-000001".to_owned(),
        name: "A sale".to_owned(),
        description: String::new(),
        scheduled_at,
        auto_open: random.random_bool(0.3),
        ends_at: random.random_bool(0.3).then_some(ends_at),
        time_zone: None,
        terms,
        phase: SalePhase::Draft,
        banner_url: String::new(),
        banner_key: None,
        created_at: then,
        updated_at: then,
        drained: None,
        settled_orders: None,
    }
}

fn product(event: &Event, number: u8, random: &mut StdRng) -> Product {
    Product {
        id: ProductId::from_bytes(id(2, number)),
        seller: event.seller,
        event: event.id,
        title: format!("Product {number}"),
        description: "One of a few".to_owned(),
        price: Money { minor: random.random_range(1..100_000), currency: money::currency("INR").unwrap() },
        units: random.random_range(1..9),
        voucher: None,
        per_buyer_limit: random.random_range(1..3),
        image_url: String::new(),
        image_key: String::new(),
        created_at: event.created_at,
        updated_at: event.created_at,
    }
}
