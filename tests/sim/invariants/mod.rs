//! What must hold at every moment, looked at in both stores at once.

mod journal;
mod live;
mod orders;
mod payments;

use std::collections::BTreeSet;

use orbit::domain::event::SalePhase;
use orbit::domain::ids::{ProductId, UserId};

use crate::durable::Database;
use crate::gateway::Till;
use crate::ledger::Ledger;
use crate::redis::{Hash, Keyspace, Set, SortedSet, Text};
use crate::world::Catalogue;

/// Both stores, and what really happened.
pub struct View<'a> {
    pub data: &'a Keyspace,
    pub database: &'a Database,
    pub till: &'a Till,
    pub ledger: &'a Ledger,
    pub catalogue: &'a Catalogue,
}

/// What a check comes to: nothing, or the invariant that does not hold.
pub type Verdict = Result<(), String>;

/// Everything that must hold now.
pub fn hold(view: &View<'_>) -> Verdict {
    if let Some(violation) = view.ledger.violation() {
        return Err(violation.clone());
    }
    let bookings = view.bookings()?;
    live::hold(view, &bookings)?;
    journal::hold(view, &bookings)?;
    orders::hold(view)?;
    payments::hold(view, &bookings)
}

/// What must hold as well when the sale is over and nothing is broken any more.
pub fn hold_at_rest(view: &View<'_>) -> Verdict {
    hold(view)?;
    orders::hold_at_rest(view)?;
    live::hold_at_rest(view)
}

/// What must hold as well when nothing is left to be done about money.
pub fn money_holds_at_rest(view: &View<'_>) -> Verdict {
    hold(view)?;
    payments::hold_at_rest(view)
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// A booking, as the live store has it.
struct Booking {
    key: String,
    id: String,
    user: UserId,
    product: ProductId,
    quantity: u64,
    price_minor: i64,
    /// Units that are out of stock for it.
    units: u64,
    unpaid: bool,
    takes_slot: bool,
}

impl View<'_> {
    fn status(&self) -> Result<String, String> {
        let key = self.catalogue.keys.status(self.catalogue.id());
        let text = self.data.read::<Text>(key.as_bytes())?.map(|text| String::from_utf8_lossy(&text.0).into_owned());
        Ok(text.unwrap_or_else(|| "NOT_STARTED".to_owned()))
    }

    /// Whether buyers can buy, or could after a Resume.
    fn is_running(&self) -> Result<bool, String> {
        Ok(matches!(self.status()?.as_str(), "LIVE" | "PAUSED"))
    }

    fn phase(&self) -> SalePhase {
        self.database.event(self.catalogue.id()).map_or(SalePhase::Draft, |event| event.phase)
    }

    fn set(&self, key: &str) -> Result<BTreeSet<String>, String> {
        let members = self.data.read::<Set>(key.as_bytes())?.into_iter().flatten();
        Ok(members.map(|member| String::from_utf8_lossy(member).into_owned()).collect())
    }

    fn sorted_set(&self, key: &str) -> Result<BTreeSet<String>, String> {
        let members = self.data.read::<SortedSet>(key.as_bytes())?.into_iter().flat_map(SortedSet::keys);
        Ok(members.map(|member| String::from_utf8_lossy(member).into_owned()).collect())
    }

    fn hash(&self, key: &str) -> Result<Option<&Hash>, String> {
        self.data.read::<Hash>(key.as_bytes())
    }

    /// Every booking that there is, listed or not.
    fn bookings(&self) -> Result<Vec<Booking>, String> {
        let keys = self.data.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned());
        keys.filter(|key| key.starts_with("booking:")).map(|key| self.booking(key)).collect()
    }

    fn booking(&self, key: String) -> Result<Booking, String> {
        let hash = self.hash(&key)?.ok_or_else(|| format!("{key} is gone"))?;
        let quantity: u64 = field(hash, "quantity")?;
        let returned = if hash.contains_key(&b"returned"[..]) { field(hash, "returned")? } else { 0 };
        let units = quantity - returned;
        Ok(Booking {
            id: field(hash, "reservationId")?,
            user: field(hash, "userId")?,
            product: field(hash, "productId")?,
            quantity,
            price_minor: field(hash, "price")?,
            units,
            unpaid: field::<String>(hash, "status")? == "PENDING_PAYMENT",
            takes_slot: units > 0 || hash.contains_key(&b"slot"[..]),
            key,
        })
    }

    /// Reservations that were made and are neither a booking, nor in the journal, nor an order.
    pub fn made_and_gone(&self) -> Result<Vec<String>, String> {
        let booked: BTreeSet<String> = self.bookings()?.into_iter().map(|booking| booking.id).collect();
        // A buyer may have another booking by now: then the journal has what became of the first.
        let journalled = journal::reservations(self)?;
        let kept = |id: &String| booked.contains(id) || journalled.contains(id) || self.is_order(id);
        Ok(self.ledger.made().keys().filter(|id| !kept(id)).cloned().collect())
    }

    fn is_order(&self, id: &str) -> bool {
        self.database.orders_of(self.catalogue.id()).any(|order| order.reservation_id == id)
    }
}

/// A field of a hash, parsed.
fn field<T: std::str::FromStr>(hash: &Hash, name: &str) -> Result<T, String> {
    let value = hash.get(name.as_bytes()).ok_or_else(|| format!("invariant 9: a hash has no {name}"))?;
    String::from_utf8_lossy(value).parse().map_err(|_| format!("invariant 9: {name} cannot be read"))
}
