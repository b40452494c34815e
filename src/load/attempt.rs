//! One buyer's try to buy one product, and what came of it.

use std::time::Duration;

use super::amount::Amount;
use super::answers::Purchased;
use super::error::ApiError;

/// What a buyer was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The unit is the buyer's.
    Accepted {
        /// To be found again among the orders.
        reservation_id: String,
        /// Of the unit.
        price: Amount,
    },
    /// Nothing is left.
    SoldOut,
    /// The buyer has one already.
    AlreadyBooked,
    /// The sale does not run.
    NotActive,
    /// Anything else.
    Failed {
        /// The stable code of the error.
        code: String,
        /// Whether the purchase may have been made all the same.
        unknown: bool,
    },
}

impl From<Result<Purchased, ApiError>> for Outcome {
    fn from(answer: Result<Purchased, ApiError>) -> Self {
        match answer {
            Ok(purchased) => Self::Accepted { reservation_id: purchased.reservation_id, price: purchased.price },
            Err(error) => match (error.status, error.code.as_str()) {
                (409, "sold_out") => Self::SoldOut,
                (409, "already_booked") => Self::AlreadyBooked,
                (409, "sale_not_active") => Self::NotActive,
                _ => Self::Failed { unknown: error.outcome_unknown(), code: error.code },
            },
        }
    }
}

impl Outcome {
    /// Whether a unit was promised.
    #[must_use]
    pub const fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted { .. })
    }

    /// Whether it is not known if a unit was taken.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Failed { unknown: true, .. })
    }
}

/// A try, with its times. All of them count from the common start.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Which buyer of the scene.
    pub buyer: usize,
    /// Which product of the scene.
    pub product: usize,
    /// The idempotency key that was sent along.
    pub key: String,
    /// What came of it.
    pub outcome: Outcome,
    /// When the buyer came: at the start in a rush, at the planned moment in an open loop.
    pub arrived: Duration,
    /// When the request was sent.
    pub sent: Duration,
    /// When the answer was there.
    pub answered: Duration,
    /// False for what only sets the stage and is in no statistics.
    pub measured: bool,
    /// Whether the buyer had to ask again to learn the outcome. The times are those of the first asking.
    pub asked_again: bool,
}

impl Attempt {
    /// From the arrival to the answer.
    #[must_use]
    pub fn since_arrival(&self) -> Duration {
        self.answered.saturating_sub(self.arrived)
    }

    /// From the sending to the answer.
    #[must_use]
    pub fn since_sent(&self) -> Duration {
        self.answered.saturating_sub(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, code: &str) -> Outcome {
        let (code, message) = (code.to_owned(), String::new());
        Outcome::from(Err(ApiError { doing: "buying", status, code, message, retry_after: None }))
    }

    #[test]
    fn refusals_are_told_apart() {
        assert_eq!(told(409, "sold_out"), Outcome::SoldOut);
        assert_eq!(told(409, "already_booked"), Outcome::AlreadyBooked);
        assert_eq!(told(409, "sale_not_active"), Outcome::NotActive);
        // A code under another status is not the refusal that it says it is.
        assert_eq!(told(500, "sold_out"), Outcome::Failed { code: "sold_out".to_owned(), unknown: true });
        assert_eq!(
            told(404, "product_not_found"),
            Outcome::Failed { code: "product_not_found".to_owned(), unknown: false }
        );
    }
}
