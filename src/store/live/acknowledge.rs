//! `lua/acknowledge.lua`: journal entries that MongoDB has confirmed are struck and trimmed.

use super::link::Link;
use super::{Live, journal};
use crate::domain::ids::EventId;
use crate::domain::journal::EntryId;
use crate::error::Result;

/// Entries that one confirmation trims at most.
const TRIM_MAX: usize = 2_000;

impl<L: Link> Live<L> {
    /// Strikes entries that MongoDB has confirmed, and trims what is confirmed as a whole.
    ///
    /// # Errors
    /// When the live store does not answer; confirming again is safe.
    pub async fn acknowledge(&self, event: EventId, ids: &[EntryId]) -> Result<()> {
        let mut call = self.scripts.acknowledge.prepare_invoke();
        call.key(self.keys.journal(event)).arg(journal::GROUP).arg(TRIM_MAX);
        for id in ids {
            call.arg(id.to_string());
        }
        let reply = self.invoke("acknowledge", &call).await?;
        match reply.tag() {
            "ACKNOWLEDGED" => Ok(()),
            // A group that is made anew reads from the start: the orders are written again, which changes nothing.
            "NO_GROUP" => Ok(()),
            _ => Err(reply.damaged("unknown tag")),
        }
    }
}
