//! Clean-up: removes a settled sale from Redis, in bounded batches, and only what MongoDB has confirmed.

use std::collections::HashSet;

use super::Sale;
use crate::domain::ids::EventId;
use crate::error::{Error, Result};
use crate::store::live::{BookingRead, Removed};

impl Sale {
    /// Removes every key of a stopped sale but the status and what is in `dead`. When nothing else is left, the status
    /// gets its end. Returns how many bookings are kept.
    pub(super) async fn clean_up(&self, event: EventId, dead: &HashSet<String>) -> Result<u64> {
        self.remove_settled_bookings(event).await?;
        let left = self.live.booking_count(event).await?;
        if left > dead.len() as u64 {
            let detail = format!("{left} bookings are left after clean-up, {} of them known", dead.len());
            return Err(Error::Damaged { doing: "cleaning up a sale", detail });
        }
        self.remove_sale_keys(event, left > 0).await?;
        if left == 0 {
            self.live.expire_status(event, self.stopped_status_ttl_s).await?;
        }
        Ok(left)
    }

    /// Asks MongoDB about each reservation once more before its booking goes: nothing leaves Redis on trust.
    async fn remove_settled_bookings(&self, event: EventId) -> Result<()> {
        let mut cursor = 0;
        loop {
            let (next, keys) = self.live.booking_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            let whole: Vec<(String, String)> = self
                .live
                .read_bookings(event, keys)
                .await?
                .into_iter()
                .filter_map(|stored| match stored.read {
                    BookingRead::Whole(reservation) => Some((stored.key, reservation.id)),
                    BookingRead::Absent | BookingRead::Unreadable { .. } => None,
                })
                .collect();
            let ids: Vec<String> = whole.iter().map(|(_, id)| id.clone()).collect();
            let confirmed = self.mongo.orders.settled(&ids).await?;
            let keys: Vec<String> =
                whole.into_iter().filter(|(_, id)| confirmed.contains(id)).map(|(key, _)| key).collect();
            for batch in keys.chunks(self.config.settle_page_size_max) {
                expect_removed(self.live.remove_bookings(event, batch).await?)?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// `keep_records`: bookings that could not be settled stay, and with them their index and the journal.
    async fn remove_sale_keys(&self, event: EventId, keep_records: bool) -> Result<()> {
        let records = [self.live.keys().bookings(event), self.live.keys().journal(event)];
        let mut cursor = 0;
        loop {
            let (next, mut keys) = self.live.sale_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            if keep_records {
                keys.retain(|key| !records.contains(key));
            }
            for batch in keys.chunks(self.config.settle_page_size_max) {
                expect_removed(self.live.remove_sale_keys(event, batch, None).await?)?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
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
