//! `lua/hold.lua`: a sale of which the live store has lost something is held until it is repaired.

use super::Live;
use super::link::Link;
use crate::domain::ids::EventId;
use crate::domain::sale::SaleStatus;
use crate::error::Result;

/// Why a sale is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// While true the seller cannot resume it.
    pub blocking: bool,
    /// A sentence for the seller and the operator.
    pub reason: String,
}

impl<L: Link> Live<L> {
    /// Stops a running sale from selling until it is repaired. Returns the status before; if that is neither live nor
    /// paused, nothing was changed.
    ///
    /// # Errors
    /// When the live store does not answer; holding again is safe.
    pub async fn hold(&self, event: EventId, reason: &str) -> Result<SaleStatus> {
        let mut call = self.scripts.hold.prepare_invoke();
        call.key(self.keys.status(event)).key(self.keys.held(event)).key(self.keys.product_keys(event)).arg(reason);
        let reply = self.invoke("hold", &call).await?;
        match reply.tag() {
            "HELD" => reply.status(1),
            "REFUSED" => reply.status(1),
            _ => Err(reply.damaged("unknown tag")),
        }
    }

    /// Lets the seller resume a sale that was repaired, and says what happened.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn release_hold(&self, event: EventId, notice: &str) -> Result<()> {
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.cmd("SADD").arg(self.keys.product_keys(event)).arg(self.keys.held(event)).ignore();
        pipeline.cmd("HSET").arg(self.keys.held(event)).arg(&["blocking", "0", "reason", notice]).ignore();
        self.query_all("releasing a held sale", &pipeline).await
    }

    /// Why the sale is held; `None` if it is not.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn held(&self, event: EventId) -> Result<Option<Held>> {
        let mut call = redis::cmd("HMGET");
        call.arg(self.keys.held(event)).arg(&["blocking", "reason"]);
        let fields: (Option<String>, Option<String>) = self.query("asking why a sale is held", &call).await?;
        Ok(fields.1.map(|reason| Held { blocking: fields.0.as_deref() == Some("1"), reason }))
    }
}
