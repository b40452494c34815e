//! Clean-up: removes a settled sale from Redis, in bounded batches, and only what MongoDB has confirmed.

use super::{Durable, Sale};
use crate::domain::ids::EventId;
use crate::domain::page::Page;
use crate::error::{Error, Result};
use crate::store::live::Removed;
use crate::store::live::link::Link;

/// Keys in one call, far fewer than are read at once: taking them out of a large index is slow, and buyers of other sales
/// wait meanwhile.
const REMOVED_AT_ONCE: usize = 100;

impl<L: Link, D: Durable> Sale<L, D> {
    /// Removes every key of a stopped sale but the status and the bookings that are no orders. When nothing else is left,
    /// the status gets its end. `orders` is how many it has. Returns how many reservations are kept for an operator.
    pub(super) async fn clean_up(&self, event: EventId, orders: u64) -> Result<u64> {
        self.remove_settled_bookings(event, orders).await?;
        let unread = self.unread_entries(event).await?;
        let kept = self.live.booking_count(event).await?;
        let letters = self.durable.dead_keys(event).await?.len() as u64;
        if kept > letters {
            let detail = format!("{kept} bookings are left after clean-up, {letters} of them known");
            return Err(Error::Damaged { doing: "cleaning up a sale", detail });
        }
        self.remove_sale_keys(event, kept + unread > 0).await?;
        if kept + unread == 0 {
            self.live.expire_status(event, self.stopped_status_ttl_s).await?;
        }
        Ok(kept + unread)
    }

    /// Asks MongoDB about each reservation before its booking goes: nothing leaves Redis on trust.
    async fn remove_settled_bookings(&self, event: EventId, orders: u64) -> Result<()> {
        let known_dead = self.durable.dead_keys(event).await?;
        let listed = self.live.booking_count(event).await?;
        let mut cursor = 0;
        loop {
            let (next, keys) = self.live.booking_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            let settled = self.settle_page(event, keys).await?;
            let revived = known_dead.intersection(&settled.keys).cloned().collect();
            self.durable.resolve_dead(event, &revived).await?;
            let keys: Vec<String> = settled.keys.into_iter().collect();
            for batch in keys.chunks(REMOVED_AT_ONCE) {
                expect_removed(self.live.remove_bookings(event, batch, None).await?)?;
            }
            if next == 0 {
                break;
            }
            cursor = next;
        }
        if listed < orders {
            self.remove_unlisted_bookings(event).await?;
        }
        Ok(())
    }

    /// Fewer bookings were listed than there are orders: some may be there that no index lists. Their orders name them.
    async fn remove_unlisted_bookings(&self, event: EventId) -> Result<()> {
        let limit = u32::try_from(self.config.settle_page_size_max).unwrap_or(u32::MAX);
        let dead = self.durable.dead_keys(event).await?;
        let mut after = None;
        loop {
            let orders = self.durable.orders(event, Page { limit, after }).await?;
            let key = |order: &crate::domain::order::Order| self.live.keys().booking(order.user, order.product, event);
            let keys: Vec<String> = orders.items.iter().map(key).filter(|key| !dead.contains(key)).collect();
            if !keys.is_empty() {
                expect_removed(self.live.remove_bookings(event, &keys, None).await?)?;
            }
            after = orders.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// `keep_records`: reservations that could not be settled stay, and with them their index and the journal. Otherwise
    /// those go last: they say how far a settlement is.
    async fn remove_sale_keys(&self, event: EventId, keep_records: bool) -> Result<()> {
        let records = [self.live.keys().bookings(event), self.live.keys().journal(event)];
        let mut cursor = 0;
        loop {
            let (next, mut keys) = self.live.sale_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            keys.retain(|key| !records.contains(key));
            for batch in keys.chunks(REMOVED_AT_ONCE) {
                expect_removed(self.live.remove_sale_keys(event, batch, None).await?)?;
            }
            if next == 0 {
                break;
            }
            cursor = next;
        }
        if !keep_records {
            expect_removed(self.live.remove_sale_keys(event, &records, None).await?)?;
        }
        Ok(())
    }
}

fn expect_removed(removed: Removed) -> Result<()> {
    match removed {
        Removed::Keys(_) => Ok(()),
        Removed::Refused(status) => {
            let detail = format!("the sale is {status} while its keys are being removed");
            Err(Error::Damaged { doing: "cleaning up a sale", detail })
        }
        Removed::TokenLost => Err(Error::internal("cleaning up a sale", "no token is needed")),
    }
}
