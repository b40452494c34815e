//! What really happened: every reservation that the live store made, whoever was told of it, and what the schedule has
//! taken away since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use orbit::domain::ids::{ProductId, UserId};
use orbit::domain::reservation::Reservation;
use tokio::time::Instant;

use crate::redis::{Bytes, Keyspace, Reply, Text};

/// A ledger that everybody writes to.
pub type SharedLedger = Arc<Mutex<Ledger>>;

/// A reservation, as the live store made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub user: UserId,
    pub product: ProductId,
    pub quantity: u32,
    pub price_minor: i64,
}

/// The ledger of one run.
pub struct Ledger {
    started: Instant,
    made: BTreeMap<String, Made>,
    /// The reservation that a buyer was told of last, of each product.
    told: BTreeMap<(UserId, ProductId), String>,
    /// Reservations that were only in the live store when the schedule took them away.
    excused: BTreeSet<String>,
    /// The first thing that must not happen, if it has.
    violation: Option<String>,
    history: Vec<String>,
    ids: u64,
}

impl Ledger {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            made: BTreeMap::new(),
            told: BTreeMap::new(),
            excused: BTreeSet::new(),
            violation: None,
            history: Vec::new(),
            ids: 0,
        }
    }

    /// An id for a reservation that nobody had before.
    pub fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("reservation-{:04}", self.ids)
    }

    pub const fn made(&self) -> &BTreeMap<String, Made> {
        &self.made
    }

    /// Who was told of which reservation of a product, if it was not lost since.
    pub fn told(&self) -> Vec<(UserId, ProductId, String)> {
        let kept = self.told.iter().filter(|(_, id)| !self.excused.contains(*id));
        kept.map(|((user, product), id)| (*user, *product, id.clone())).collect()
    }

    pub fn is_excused(&self, id: &str) -> bool {
        self.excused.contains(id)
    }

    /// Writes down what somebody did, for whoever reads a failure.
    pub fn note(&mut self, what: String) {
        self.history.push(format!("{:9.3} s  {what}", self.started.elapsed().as_secs_f64()));
    }

    pub fn history(&self) -> &[String] {
        &self.history
    }

    /// Writes down that something happened that must not.
    pub fn blame(&mut self, what: String) {
        self.note(format!("VIOLATION {what}"));
        self.violation.get_or_insert(what);
    }

    pub fn violation(&self) -> Option<&String> {
        self.violation.as_ref()
    }

    /// The schedule has taken a reservation away that was nowhere else.
    pub fn excuse(&mut self, id: &str) {
        self.note(format!("lost on purpose: {id}"));
        self.excused.insert(id.to_owned());
    }

    /// Sees each command at the server: `EVALSHA hash 7 KEYS... ARGV...` that answers RESERVED has made a reservation.
    pub fn observe(&mut self, data: &Keyspace, words: &[Bytes], reply: &Reply) {
        let Reply::Array(parts) = reply else { return };
        if parts.first() != Some(&Reply::text("RESERVED")) {
            return;
        }
        let text = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
        let status = data.read::<Text>(&words[3]).ok().flatten().map(|status| text(&status.0));
        if status.as_deref() != Some("LIVE") {
            self.blame(format!("invariant 1: a reservation was made while the status was {status:?}"));
        }
        let [user, product, _event, id, quantity] = [10, 11, 12, 13, 14].map(|at| text(&words[at]));
        let Some(Reply::Bulk(price)) = parts.get(3) else { return self.blame("a reservation has no price".to_owned()) };
        let made = Made {
            user: user.parse().unwrap(),
            product: product.parse().unwrap(),
            quantity: quantity.parse().unwrap(),
            price_minor: text(price).parse().unwrap(),
        };
        self.note(format!("{id} made for {}", short(made.user.bytes())));
        self.made.insert(id, made);
    }

    /// A buyer is told of a reservation. It is the one that was made for them, and they never hear of a second one.
    pub fn tell(&mut self, user: UserId, reservation: &Reservation) {
        let id = &reservation.id;
        self.note(format!("{} is told of {id}", short(user.bytes())));
        let told = Made {
            user: reservation.user,
            product: reservation.product,
            quantity: reservation.quantity,
            price_minor: reservation.price.minor,
        };
        if user != reservation.user || self.made.get(id) != Some(&told) {
            return self.blame(format!("invariant 5: a buyer was told {told:?}, and {:?} was made", self.made.get(id)));
        }
        let before = self.told.insert((user, reservation.product), id.clone());
        if let Some(before) = before.filter(|before| before != id && !self.is_excused(before)) {
            self.blame(format!("invariant 2: a buyer was told of {before}, and then of {id}"));
        }
    }
}

/// The last byte of an id: enough for a reader of the history.
pub fn short(id: [u8; 12]) -> String {
    format!("#{}", id[11])
}
