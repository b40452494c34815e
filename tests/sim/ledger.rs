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

/// A state of a reservation: its revision, its status, and its units that went back.
pub type State = (u32, String, u32);

/// What a payer was told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paid {
    /// It is confirmed.
    Confirmed,
    /// The money goes back.
    InVain,
    /// It was confirmed, and its buyer has cancelled it since.
    Cancelled,
}

/// The ledger of one run.
pub struct Ledger {
    started: Instant,
    made: BTreeMap<String, Made>,
    /// The reservation that a buyer was told of last, of each product.
    told: BTreeMap<(UserId, ProductId), String>,
    /// Reservations of which no unit is left.
    over: BTreeSet<String>,
    /// Every state that the live store has given a reservation: its revision, its status, and its units that went back.
    states: BTreeMap<String, BTreeSet<State>>,
    /// What payers were told of their reservations.
    paid: BTreeMap<String, Paid>,
    /// Whether the schedule has taken changes away, of which nobody can say what they were.
    changes_lost: bool,
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
            over: BTreeSet::new(),
            states: BTreeMap::new(),
            paid: BTreeMap::new(),
            changes_lost: false,
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

    /// Who was told of which reservation of a product, if it was not lost since and is not over.
    pub fn told(&self) -> Vec<(UserId, ProductId, String)> {
        let kept = self.told.iter().filter(|(_, id)| !self.excused.contains(*id) && !self.over.contains(*id));
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

    /// The live store came back without its last changes.
    pub const fn forget_changes(&mut self) {
        self.changes_lost = true;
    }

    pub const fn changes_lost(&self) -> bool {
        self.changes_lost
    }

    /// Whether the live store has ever given the reservation this state.
    pub fn was_ever(&self, id: &str, state: &State) -> bool {
        self.states.get(id).is_some_and(|states| states.contains(state))
    }

    /// A payer is told what became of their money.
    pub fn tell_payer(&mut self, id: &str, paid: Paid) {
        self.note(format!("the payer of {id} is told {paid:?}"));
        self.paid.insert(id.to_owned(), paid);
    }

    /// A buyer is told that a reservation is cancelled.
    pub fn tell_cancelled(&mut self, id: &str) {
        self.note(format!("the buyer of {id} is told that it is cancelled"));
        if self.paid.contains_key(id) {
            self.paid.insert(id.to_owned(), Paid::Cancelled);
        }
        self.over.insert(id.to_owned());
    }

    /// What payers were told.
    pub const fn paid(&self) -> &BTreeMap<String, Paid> {
        &self.paid
    }

    /// Sees each command at the server and its reply: what the scripts answer is what they did.
    pub fn observe(&mut self, data: &Keyspace, words: &[Bytes], reply: &Reply) {
        let Reply::Array(parts) = reply else { return };
        let Some(Reply::Bulk(tag)) = parts.first() else { return };
        match tag.as_slice() {
            b"RESERVED" => {
                self.made_now(data, words, parts);
                self.state(&parts[1..]);
            }
            b"CONFIRMED" | b"RETAKEN" => self.state(&parts[1..]),
            b"DONE" => parts[1..].chunks_exact(10).filter(|one| one[0] == Reply::text("RELEASED")).for_each(|one| {
                self.state(&one[1..]);
            }),
            _ => {}
        }
    }

    /// A reservation has this state now: reservationId quantity price currency status bookedAt expiresAt revision returned.
    fn state(&mut self, fields: &[Reply]) {
        let text = |at: usize| match &fields[at] {
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        };
        let (id, quantity, status) = (text(0), text(1), text(4));
        let state = (text(7).parse().unwrap(), status.clone(), text(8).parse().unwrap());
        self.note(format!("{id} is {status} in revision {}", state.0));
        if quantity == text(8) {
            self.over.insert(id.clone());
        } else {
            self.over.remove(&id);
        }
        self.states.entry(id).or_default().insert(state);
    }

    /// `EVALSHA hash 8 KEYS... ARGV...` that answers RESERVED has made a reservation.
    fn made_now(&mut self, data: &Keyspace, words: &[Bytes], parts: &[Reply]) {
        let text = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
        let status = data.read::<Text>(&words[3]).ok().flatten().map(|status| text(&status.0));
        if status.as_deref() != Some("LIVE") {
            self.blame(format!("invariant 1: a reservation was made while the status was {status:?}"));
        }
        let [user, product, _event, id, quantity] = [11, 12, 13, 14, 15].map(|at| text(&words[at]));
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
        let other = before.filter(|before| before != id && !self.is_excused(before) && !self.over.contains(before));
        if let Some(before) = other {
            self.blame(format!("invariant 2: a buyer was told of {before}, and then of {id}"));
        }
    }
}

/// The last byte of an id: enough for a reader of the history.
pub fn short(id: [u8; 12]) -> String {
    format!("#{}", id[11])
}
