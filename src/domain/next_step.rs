//! What a buyer can do about a reservation now.

use chrono::{DateTime, Utc};

use super::order::OrderStatus;

/// What a buyer can do about a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Pay for it until this moment.
    Pay(DateTime<Utc>),
    /// Its units are given back; while the sale runs, reserve again.
    ReserveAgain,
    /// Nothing: it is confirmed.
    Nothing,
    /// Nothing: it was cancelled, and the place is used up.
    Over,
}

impl NextStep {
    /// The step for a reservation in this state. Without a `now` a hold is taken to be running: the store that has it would
    /// have said otherwise.
    #[must_use]
    pub fn of(
        status: OrderStatus,
        expires_at: Option<DateTime<Utc>>,
        slot_kept: bool,
        now: Option<DateTime<Utc>>,
    ) -> Self {
        match (status, expires_at) {
            (OrderStatus::Confirmed, _) => Self::Nothing,
            (OrderStatus::PendingPayment, Some(until)) if now.is_none_or(|now| now < until) => Self::Pay(until),
            (OrderStatus::Cancelled | OrderStatus::Expired, _) if slot_kept => Self::Over,
            // A hold that has run out is as good as expired, even if nobody has swept it yet.
            _ => Self::ReserveAgain,
        }
    }

    /// The word for programs.
    #[must_use]
    pub const fn action(self) -> &'static str {
        match self {
            Self::Pay(_) => "pay",
            Self::ReserveAgain => "reserve_again",
            Self::Nothing | Self::Over => "none",
        }
    }

    /// Until when.
    #[must_use]
    pub const fn until(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Pay(until) => Some(until),
            Self::ReserveAgain | Self::Nothing | Self::Over => None,
        }
    }

    /// The sentence for people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Pay(_) => "Pay before the time runs out, or the units go back on sale.",
            Self::ReserveAgain => {
                "The reservation is over and its units were given back; while the sale runs, you may reserve again."
            }
            Self::Nothing => "The reservation is confirmed; there is nothing left to do.",
            Self::Over => "The reservation was cancelled, and this product cannot be reserved again.",
        }
    }
}

/// Whole seconds until a moment, never negative. A second that has begun counts: a buyer who is told 1 has some of it.
#[must_use]
pub fn seconds_until(moment: DateTime<Utc>, now: DateTime<Utc>) -> u64 {
    let ms = (moment - now).num_milliseconds();
    u64::try_from(ms).map_or(0, |ms| ms.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).unwrap()
    }

    #[test]
    fn a_hold_is_to_be_paid_until_its_very_end() {
        let step = |now| NextStep::of(OrderStatus::PendingPayment, Some(at(1_000)), false, Some(at(now)));
        assert_eq!(step(999), NextStep::Pay(at(1_000)));
        assert_eq!(step(1_000), NextStep::ReserveAgain);
        assert_eq!(seconds_until(at(1_000), at(999)), 1);
        assert_eq!(seconds_until(at(1_000), at(1_000)), 0);
        assert_eq!(seconds_until(at(1_000), at(5_000)), 0);
    }

    #[test]
    fn what_is_over_can_be_had_again_unless_the_place_is_used_up() {
        let step = |status, kept| NextStep::of(status, None, kept, None);
        assert_eq!(step(OrderStatus::Confirmed, false), NextStep::Nothing);
        assert_eq!(step(OrderStatus::Expired, false), NextStep::ReserveAgain);
        assert_eq!(step(OrderStatus::Cancelled, false), NextStep::ReserveAgain);
        assert_eq!(step(OrderStatus::Cancelled, true).action(), "none");
    }
}
