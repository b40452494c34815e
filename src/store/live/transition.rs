//! `lua/transition.lua`: compare-and-set of the sale's status.

use super::link::Link;
use super::{Live, OpeningToken};
use crate::domain::ids::EventId;
use crate::domain::sale::{SaleAction, SaleStatus};
use crate::error::{Error, Result};

/// What came of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transitioned {
    /// The status was this and is now the target.
    Changed(SaleStatus),
    /// The status is this; there is no such edge.
    Refused(SaleStatus),
    /// The opening token is not good any more.
    TokenLost(SaleStatus),
    /// The sale is held until it is repaired.
    Held(SaleStatus),
    /// The moment has not come, by the live store's clock.
    TooEarly(SaleStatus),
}

impl<L: Link> Live<L> {
    /// Moves the status along one edge. `token` is required to leave `NOT_STARTED`, and for nothing else.
    ///
    /// # Errors
    /// When the live store does not answer; the status may or may not have changed.
    pub async fn transition(
        &self,
        event: EventId,
        action: SaleAction,
        token: Option<&OpeningToken>,
    ) -> Result<Transitioned> {
        self.transition_not_before(event, action, token, None).await
    }

    /// As [`Self::transition`], but not before a moment of the live store's clock, in milliseconds since 1970: a process
    /// whose own clock is wrong does nothing early.
    ///
    /// # Errors
    /// When the live store does not answer; the status may or may not have changed.
    pub async fn transition_not_before(
        &self,
        event: EventId,
        action: SaleAction,
        token: Option<&OpeningToken>,
        not_before_ms: Option<i64>,
    ) -> Result<Transitioned> {
        let mut call = self.scripts.transition.prepare_invoke();
        call.key(self.keys.status(event))
            .key(self.keys.opening(event))
            .key(self.keys.held(event))
            .arg(action.target().as_str())
            .arg(token.map_or("", OpeningToken::as_str))
            .arg(not_before_ms.map(|at| at.to_string()).unwrap_or_default());
        for source in action.sources() {
            call.arg(source.as_str());
        }
        let reply = self.invoke("transition", &call).await?;
        match reply.tag() {
            "CHANGED" => Ok(Transitioned::Changed(reply.status(1)?)),
            "REFUSED" => Ok(Transitioned::Refused(reply.status(1)?)),
            "TOKEN_LOST" => Ok(Transitioned::TokenLost(reply.status(1)?)),
            "HELD" => Ok(Transitioned::Held(reply.status(1)?)),
            "TOO_EARLY" => Ok(Transitioned::TooEarly(reply.status(1)?)),
            _ => Err(reply.damaged("unknown tag")),
        }
    }

    /// The sale's status.
    ///
    /// # Errors
    /// When the live store does not answer, or holds no status that we know.
    pub async fn status(&self, event: EventId) -> Result<SaleStatus> {
        let key = self.keys.status(event);
        let doing = "reading a sale's status";
        parse_status(doing, self.query(doing, redis::cmd("GET").arg(key)).await?)
    }

    /// The sale's status, and the live store's time in milliseconds since 1970, in one round trip.
    ///
    /// # Errors
    /// When the live store does not answer, or holds no status that we know.
    pub async fn status_and_time(&self, event: EventId) -> Result<(SaleStatus, i64)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("GET").arg(self.keys.status(event)).cmd("TIME");
        let doing = "reading a sale's status and the time";
        let (text, time): (Option<String>, (i64, i64)) = self.query_all(doing, &pipeline).await?;
        Ok((parse_status(doing, text)?, time.0 * 1_000 + time.1 / 1_000))
    }

    /// Lets the stopped status of a settled sale expire.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn expire_status(&self, event: EventId, ttl_s: u64) -> Result<()> {
        let key = self.keys.status(event);
        self.query("expiring a stopped status", redis::cmd("EXPIRE").arg(key).arg(ttl_s)).await
    }
}

pub(super) fn parse_status(doing: &'static str, text: Option<String>) -> Result<SaleStatus> {
    match text {
        None => Ok(SaleStatus::NotStarted),
        Some(text) => SaleStatus::parse(&text).ok_or(Error::Damaged { doing, detail: text }),
    }
}
