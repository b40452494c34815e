//! `lua/remove.lua`: bounded removal of an event's keys.

use super::link::Link;
use super::{Live, OpeningToken};
use crate::domain::ids::EventId;
use crate::domain::sale::SaleStatus;
use crate::error::Result;

/// What came of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// This many keys existed and are gone.
    Keys(u64),
    /// The sale has another status; nothing was removed.
    Refused(SaleStatus),
    /// The opening token is not good any more; nothing was removed.
    TokenLost,
}

impl<L: Link> Live<L> {
    /// Removes booking keys: of a stopped sale, when the caller has confirmed each of them in MongoDB; or of a sale that is
    /// rebuilt from MongoDB, under its token.
    ///
    /// # Errors
    /// When the live store does not answer; removing again is safe.
    pub async fn remove_bookings(
        &self,
        event: EventId,
        booking_keys: &[String],
        token: Option<&OpeningToken>,
    ) -> Result<Removed> {
        self.remove(event, self.keys.bookings(event), booking_keys, status_for(token), token).await
    }

    /// Removes keys that the sale's key set lists: of a stopped sale, or of a failed opening under its token.
    ///
    /// # Errors
    /// When the live store does not answer; removing again is safe.
    pub async fn remove_sale_keys(
        &self,
        event: EventId,
        keys: &[String],
        token: Option<&OpeningToken>,
    ) -> Result<Removed> {
        self.remove(event, self.keys.product_keys(event), keys, status_for(token), token).await
    }

    /// Gives an opening back before its time. Does nothing if the token is not good any more.
    ///
    /// # Errors
    /// When the live store does not answer; then the token expires by itself.
    pub async fn release_opening(&self, event: EventId, token: &OpeningToken) -> Result<()> {
        let (opening, listed_in) = ([self.keys.opening(event)], self.keys.product_keys(event));
        let token = Some(token);
        let removed = self.remove(event, listed_in.clone(), &opening, SaleStatus::NotStarted, token).await?;
        // Another opening had finished: the token is of no use to anybody.
        if let Removed::Refused(current) = removed {
            self.remove(event, listed_in, &opening, current, token).await?;
        }
        Ok(())
    }

    async fn remove(
        &self,
        event: EventId,
        listed_in: String,
        keys: &[String],
        status: SaleStatus,
        token: Option<&OpeningToken>,
    ) -> Result<Removed> {
        let mut call = self.scripts.remove.prepare_invoke();
        call.key(self.keys.status(event)).key(self.keys.opening(event)).key(listed_in);
        for key in keys {
            call.key(key);
        }
        call.arg(status.as_str()).arg(token.map_or("", OpeningToken::as_str));
        let reply = self.invoke("remove", &call).await?;
        match reply.tag() {
            "REMOVED" => Ok(Removed::Keys(reply.parse(1)?)),
            "REFUSED" => Ok(Removed::Refused(reply.status(1)?)),
            "TOKEN_LOST" => Ok(Removed::TokenLost),
            _ => Err(reply.damaged("unknown tag")),
        }
    }

    /// One page of the keys that the sale's key set lists, and where the next page starts (0: the end).
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn sale_keys_page(&self, event: EventId, cursor: u64, count: usize) -> Result<(u64, Vec<String>)> {
        self.set_page("listing a sale's keys", self.keys.product_keys(event), cursor, count).await
    }

    pub(super) async fn set_page(
        &self,
        doing: &'static str,
        set: String,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<String>)> {
        let mut call = redis::cmd("SSCAN");
        call.arg(set).arg(cursor).arg("COUNT").arg(count);
        self.query(doing, &call).await
    }

    /// Every key of the event that the server holds, by scanning the whole keyspace: for checks, not for the live path.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn scan_event_keys(&self, event: EventId) -> Result<Vec<String>> {
        let pattern = self.keys.pattern(event);
        let (mut cursor, mut found) = (0_u64, Vec::new());
        loop {
            let mut call = redis::cmd("SCAN");
            call.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1000);
            let (next, page): (u64, Vec<String>) = self.query("scanning for keys", &call).await?;
            found.extend(page);
            if next == 0 {
                found.sort_unstable();
                found.dedup();
                return Ok(found);
            }
            cursor = next;
        }
    }
}

const fn status_for(token: Option<&OpeningToken>) -> SaleStatus {
    if token.is_some() { SaleStatus::NotStarted } else { SaleStatus::Stopped }
}
