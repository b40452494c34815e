//! Time, as buyers are told it: the live store's clock, and what it counts down to.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::event::Event;
use crate::domain::next_step::{NextStep, seconds_until};
use crate::domain::order::OrderStatus;
use crate::domain::sale::SaleStatus;

/// The time, and what comes next by itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimingBody {
    /// DRAFT, OPENING, LIVE, STOPPED or SETTLED.
    phase: &'static str,
    /// The clock that opens and ends sales and lets holds run out.
    server_time: DateTime<Utc>,
    /// The same in milliseconds since 1970.
    server_time_ms: i64,
    /// `opens` or `ends`; absent if nothing comes by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    countdown_to: Option<&'static str>,
    /// Milliseconds until then; 0 if it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    countdown_ms: Option<i64>,
}

impl TimingBody {
    pub(super) fn new(event: &Event, status: SaleStatus, now: DateTime<Utc>) -> Self {
        let next = event.next_moment(status);
        Self {
            phase: event.phase.as_str(),
            server_time: now,
            server_time_ms: now.timestamp_millis(),
            countdown_to: next.map(|next| next.what),
            countdown_ms: next.map(|next| (next.at - now).num_milliseconds().max(0)),
        }
    }
}

/// What a buyer can do about a reservation.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct NextBody {
    /// `pay`, `reserve_again` or `none`.
    action: &'static str,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<DateTime<Utc>>,
    /// For people.
    sentence: &'static str,
}

/// How long a reservation lasts, and what its buyer can do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct LifeBody {
    /// Whole seconds until an unpaid reservation runs out, by the live store's clock; absent without a deadline, or if that
    /// clock could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_seconds: Option<u64>,
    next: NextBody,
}

impl LifeBody {
    pub(super) fn new(
        status: OrderStatus,
        expires_at: Option<DateTime<Utc>>,
        slot_kept: bool,
        now: Option<DateTime<Utc>>,
    ) -> Self {
        let waits = status == OrderStatus::PendingPayment;
        let step = NextStep::of(status, expires_at, slot_kept, now);
        Self {
            remaining_seconds: expires_at.zip(now).filter(|_| waits).map(|(at, now)| seconds_until(at, now)),
            next: NextBody { action: step.action(), until: step.until(), sentence: step.sentence() },
        }
    }
}
