//! Orders: unordered upserts with a revision guard against the unique index on `reservationId`.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use orbit::domain::clock::Clock;
use orbit::domain::ids::{EventId, OrderId, ProductId, UserId};
use orbit::domain::order::{Order, OrderStatus};
use orbit::domain::page::{Cursor, Listed, Page};
use orbit::domain::reservation::Reservation;
use orbit::store::mongo::orders::Upserted;

use super::Database;

impl Database {
    pub fn upsert_orders(&mut self, reservations: &[Reservation]) -> Upserted {
        for reservation in reservations {
            self.upsert_order(reservation);
        }
        Upserted { confirmed: reservations.len(), refused: Vec::new() }
    }

    /// Updates an order of an older revision. If there is none, inserts one; and if it is there in this revision or a
    /// newer one, the insert meets the unique index, which is fine: it is there.
    fn upsert_order(&mut self, reservation: &Reservation) {
        self.changes += 1;
        let now = self.clock.now();
        let same = |order: &&mut Order| order.reservation_id == reservation.id;
        if let Some(order) = self.orders.iter_mut().filter(same).find(|order| order.revision < reservation.revision) {
            set(order, reservation, now);
            self.mark_returned(reservation);
            return;
        }
        if self.unique && self.orders.iter().any(|order| order.reservation_id == reservation.id) {
            return;
        }
        let mut id = [0; 12];
        id[4..].copy_from_slice(&(self.orders.len() as u64).to_be_bytes());
        let mut order = Order {
            id: OrderId::from_bytes(id),
            reservation_id: reservation.id.clone(),
            user: reservation.user,
            product: reservation.product,
            event: reservation.event,
            quantity: reservation.quantity,
            price: reservation.price,
            status: reservation.status,
            created_at: DateTime::from_timestamp_millis(reservation.booked_at_ms).unwrap(),
            updated_at: now,
            revision: reservation.revision,
            idempotency_key: reservation.idempotency_key.clone(),
            expires_at: None,
            returned: 0,
            slot_kept: false,
            operation: String::new(),
        };
        set(&mut order, reservation, now);
        self.orders.push(order);
        self.mark_returned(reservation);
    }

    /// In the same write as the units.
    fn mark_returned(&mut self, reservation: &Reservation) {
        if reservation.returned > 0 {
            self.returned.insert(reservation.id.clone());
        }
    }

    pub fn order(&self, reservation: &str) -> Option<Order> {
        self.orders.iter().find(|order| order.reservation_id == reservation).cloned()
    }

    pub fn change_order(&mut self, after: &Reservation) -> bool {
        let now = self.clock.now();
        let before = |order: &&mut Order| order.reservation_id == after.id && order.revision + 1 == after.revision;
        let Some(order) = self.orders.iter_mut().find(before) else { return false };
        set(order, after, now);
        self.mark_returned(after);
        self.changes += 1;
        self.changed_as_orders.insert(after.id.clone());
        true
    }

    /// Whether the order was changed after its sale was settled: the live store never had that state.
    pub fn was_changed_as_order(&self, reservation: &str) -> bool {
        self.changed_as_orders.contains(reservation)
    }

    pub fn overdue_orders(&self, before: DateTime<Utc>, limit: u32) -> Vec<Order> {
        let overdue = self.orders.iter().filter(|order| {
            order.status == OrderStatus::PendingPayment && order.expires_at.is_some_and(|at| at < before)
        });
        overdue.take(limit as usize).cloned().collect()
    }

    pub fn orders_of(&self, event: EventId) -> impl Iterator<Item = &Order> {
        self.orders.iter().filter(move |order| order.event == event)
    }

    pub fn order_revisions(&self, ids: &[String]) -> HashMap<String, u32> {
        let wanted = self.orders.iter().filter(|order| ids.contains(&order.reservation_id));
        wanted.map(|order| (order.reservation_id.clone(), order.revision)).collect()
    }

    pub fn units_per_product(&self, event: EventId) -> BTreeMap<ProductId, u64> {
        let mut units = BTreeMap::new();
        for order in self.orders_of(event) {
            *units.entry(order.product).or_default() += u64::from(order.units_held());
        }
        units
    }

    /// Newest first.
    pub fn list_orders(&self, event: EventId, page: Page) -> Listed<Order> {
        let place = |order: &Order| (order.created_at.timestamp_millis(), order.id.bytes());
        let mut rows: Vec<Order> = self.orders_of(event).cloned().collect();
        rows.sort_by_key(|order| std::cmp::Reverse(place(order)));
        rows.retain(|order| page.after.is_none_or(|after| place(order) < (after.created_at_ms, after.id)));
        rows.truncate(page.limit as usize + 1);
        Listed::from_rows(rows, page, |order| {
            let (created_at_ms, id) = place(order);
            Cursor { created_at_ms, id }
        })
    }

    pub fn order_of_buyer(&self, event: EventId, product: ProductId, user: UserId) -> Option<Order> {
        let wanted = self.orders_of(event).filter(|order| order.product == product && order.user == user);
        wanted.max_by_key(|order| (!order.status.over(), order.created_at)).cloned()
    }
}

/// What changes about an order.
fn set(order: &mut Order, reservation: &Reservation, now: DateTime<Utc>) {
    order.status = reservation.status;
    order.expires_at = reservation.expires_at_ms.map(|at| DateTime::from_timestamp_millis(at).unwrap());
    order.returned = reservation.returned;
    order.slot_kept = reservation.slot_kept;
    order.operation.clone_from(&reservation.operation);
    order.revision = reservation.revision;
    order.updated_at = now;
}
