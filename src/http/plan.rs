//! What a sale is opened with, as sellers and buyers are shown it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::event::Event;

/// When a sale opens and ends, and what its buyers are promised.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanBody {
    scheduled_at: DateTime<Utc>,
    /// The same moment as the clocks show it in `timeZone`, with the offset that holds there then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    scheduled_at_local: Option<String>,
    /// Whether the sale opens by itself at `scheduledAt`.
    auto_open: bool,
    /// When the sale ends by itself; purchases are refused from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    ends_at_local: Option<String>,
    /// An IANA zone, for display only.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    /// Seconds in which a reservation is to be paid; with 0 it is confirmed at once.
    payment_window: u32,
    /// Until when a buyer may cancel; without it always.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_until: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    cancel_until_local: Option<String>,
    /// Whether a buyer whose confirmed reservation was cancelled may not reserve the product again.
    refund_keeps_slot: bool,
}

impl From<&Event> for PlanBody {
    fn from(event: &Event) -> Self {
        let local = |at| event.local(at).map(|at| at.to_rfc3339());
        Self {
            scheduled_at: event.scheduled_at,
            scheduled_at_local: local(event.scheduled_at),
            auto_open: event.auto_open,
            ends_at: event.ends_at,
            ends_at_local: event.ends_at.and_then(local),
            time_zone: event.time_zone.clone(),
            payment_window: event.terms.payment_window_s,
            cancel_until: event.terms.cancel_until,
            cancel_until_local: event.terms.cancel_until.and_then(local),
            refund_keeps_slot: event.terms.refund_keeps_slot,
        }
    }
}
