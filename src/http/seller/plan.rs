//! The fields of a form that say what a sale is opened with. Empty text takes an optional field away.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use utoipa::ToSchema;

use super::events::PAST_TOLERANCE;
use crate::catalogue::PlanChange;
use crate::domain::event::{Event, PAYMENT_WINDOW_S_MAX};
use crate::domain::schedule::is_time_zone;
use crate::http::extract::Fields;

const NO_MOMENT: &str = "must be an RFC 3339 time with an offset, such as 2030-01-31T18:00:00+05:30; without one nobody \
                         knows whose 18:00 it is";

/// What a sale is opened with. Every field may be left out; empty text takes one away. None of them can change once the
/// sale was opened.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents the form")]
pub(super) struct PlanForm {
    /// Whether the sale opens by itself at `scheduledAt`, which then must not be in the past.
    auto_open: Option<bool>,
    /// When the sale ends by itself: RFC 3339 with an offset, in the future and after `scheduledAt`.
    ends_at: Option<DateTime<Utc>>,
    /// The name of a zone in the IANA database, such as Europe/Berlin. Answers show times in it as well.
    time_zone: Option<String>,
    /// Whole seconds in which a reservation is to be paid, at most 604800; 0 confirms at once.
    #[schema(maximum = 604_800)]
    payment_window: Option<u32>,
    /// Until when a buyer may cancel: RFC 3339 with an offset.
    cancel_until: Option<DateTime<Utc>>,
    /// Whether a buyer whose confirmed reservation was cancelled may not reserve the product again.
    refund_keeps_slot: Option<bool>,
}

/// Reads the plan against its rules. `scheduled_at` is what the form says; `stored` is the event that is changed.
pub(super) fn plan(
    fields: &mut Fields<'_>,
    scheduled_at: Option<DateTime<Utc>>,
    stored: Option<&Event>,
    now: DateTime<Utc>,
) -> PlanChange {
    let plan = PlanChange {
        auto_open: fields.parse("autoOpen", |text| given(text, flag)).map(Option::unwrap_or_default),
        ends_at: fields.parse("endsAt", |text| given(text, |text| future(text, now))),
        time_zone: fields.parse("timeZone", |text| given(text, zone)),
        payment_window_s: fields.parse("paymentWindow", |text| given(text, seconds)).map(Option::unwrap_or_default),
        cancel_until: fields.parse("cancelUntil", |text| given(text, moment)),
        refund_keeps_slot: fields.parse("refundKeepsSlot", |text| given(text, flag)).map(Option::unwrap_or_default),
    };
    let opens = scheduled_at.or(stored.map(|event| event.scheduled_at));
    let ends = plan.ends_at.unwrap_or_else(|| stored.and_then(|event| event.ends_at));
    if let (Some(opens), Some(ends)) = (opens, ends)
        && (plan.ends_at.is_some() || scheduled_at.is_some())
        && ends <= opens
    {
        match plan.ends_at {
            Some(_) => fields.broken("endsAt", "must be after scheduledAt".to_owned()),
            None => fields.broken("scheduledAt", "must be before endsAt".to_owned()),
        }
    }
    if plan.auto_open == Some(true) && opens.is_some_and(|at| at < now - PAST_TOLERANCE) {
        fields.broken("autoOpen", "needs a scheduledAt that is not in the past".to_owned());
    }
    plan
}

fn given<T>(text: &str, parse: impl FnOnce(&str) -> Result<T, &'static str>) -> Result<Option<T>, &'static str> {
    if text.is_empty() { Ok(None) } else { parse(text).map(Some) }
}

/// A moment, whatever its offset.
pub(super) fn moment(text: &str) -> Result<DateTime<Utc>, &'static str> {
    DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).map_err(|_| NO_MOMENT)
}

fn future(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, &'static str> {
    let at = moment(text)?;
    if at <= now { Err("must be in the future") } else { Ok(at) }
}

fn flag(text: &str) -> Result<bool, &'static str> {
    text.parse().map_err(|_| "must be true or false")
}

fn zone(text: &str) -> Result<String, &'static str> {
    const UNKNOWN: &str = "must be the name of a zone in the IANA database, such as Europe/Berlin";
    if is_time_zone(text) { Ok(text.to_owned()) } else { Err(UNKNOWN) }
}

fn seconds(text: &str) -> Result<u32, &'static str> {
    let whole = text.bytes().all(|b| b.is_ascii_digit());
    let seconds = text.parse().ok().filter(|seconds| whole && *seconds <= PAYMENT_WINDOW_S_MAX);
    seconds.ok_or("must be whole seconds from 0 to 604800")
}
