//! What must hold between the journal and the orders: nothing leaves it before it is durable.

use std::collections::BTreeSet;

use orbit::domain::event::SalePhase;

use super::{Booking, Verdict, View, require};
use crate::redis::{Bytes, Stream};

/// The consumer group that settles.
const GROUP: &[u8] = b"orbit";

pub fn hold(view: &View<'_>, bookings: &[Booking]) -> Verdict {
    let key = view.catalogue.keys.journal(view.catalogue.id());
    let Some(journal) = view.data.read::<Stream>(key.as_bytes())? else { return Ok(()) };
    let mut journalled = BTreeSet::new();
    for (id, fields) in journal.entries() {
        let reservation = reservation_id(fields).ok_or_else(|| format!("journal entry {id} names no reservation"))?;
        let revision = text(fields, b"revision").map_or(1, |revision| revision.parse().unwrap());
        let durable = view.database.order(&reservation).is_some_and(|order| order.revision >= revision);
        require(durable || !journal.is_acknowledged(GROUP, id), || {
            format!("invariant 8: revision {revision} of {reservation} is acknowledged in the journal and is no order")
        })?;
        journalled.insert(reservation);
    }
    // A sale that is brought back from its orders has bookings that its new journal never had.
    if view.is_running()? || view.phase() == SalePhase::Stopped {
        for booking in bookings {
            let kept = journalled.contains(&booking.id) || view.is_order(&booking.id);
            require(kept, || format!("invariant 8: {} has left the journal and is no order", booking.id))?;
        }
    }
    Ok(())
}

/// The reservations that the journal still tells of.
pub fn reservations(view: &View<'_>) -> Result<BTreeSet<String>, String> {
    let key = view.catalogue.keys.journal(view.catalogue.id());
    let Some(journal) = view.data.read::<Stream>(key.as_bytes())? else { return Ok(BTreeSet::new()) };
    Ok(journal.entries().filter_map(|(_, fields)| reservation_id(fields)).collect())
}

fn reservation_id(fields: &[Bytes]) -> Option<String> {
    text(fields, b"reservationId")
}

fn text(fields: &[Bytes], name: &[u8]) -> Option<String> {
    let pair = fields.chunks_exact(2).find(|pair| pair[0] == name)?;
    Some(String::from_utf8_lossy(&pair[1]).into_owned())
}
