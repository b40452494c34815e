//! A payment: the money for one reservation, and the one rule about it: money kept is price x units held.

use chrono::{DateTime, Utc};

use super::ids::{EventId, ProductId, UserId};
use super::money::Money;
use super::order::Order;

/// What the gateway has said of the money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentState {
    /// The buyer was asked to pay.
    Created,
    /// The money is there. Nothing that is heard later changes that.
    Succeeded,
    /// An attempt failed. The buyer may try again, and succeed.
    Failed,
}

impl PaymentState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Created, Self::Succeeded, Self::Failed];

    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// What the money did to its reservation. Decided once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentOutcome {
    /// The reservation is confirmed.
    Confirmed,
    /// Its hold had run out, there were units, and it is confirmed.
    ConfirmedLate,
    /// Its hold had run out, and its units are gone.
    PaidWithoutStock,
    /// It had been cancelled.
    PaidAfterCancel,
    /// It is another amount or currency than was asked for: it confirms nothing.
    Mismatch,
    /// Its sale is settled, and no order tells of the reservation.
    NoReservation,
}

impl PaymentOutcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Confirmed,
        Self::ConfirmedLate,
        Self::PaidWithoutStock,
        Self::PaidAfterCancel,
        Self::Mismatch,
        Self::NoReservation,
    ];

    /// The text in the database and in the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "CONFIRMED",
            Self::ConfirmedLate => "CONFIRMED_LATE",
            Self::PaidWithoutStock => "PAID_WITHOUT_STOCK",
            Self::PaidAfterCancel => "PAID_AFTER_CANCEL",
            Self::Mismatch => "MISMATCH",
            Self::NoReservation => "NO_RESERVATION",
        }
    }

    /// The outcome of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }

    /// Whether the units are the buyer's.
    #[must_use]
    pub const fn confirmed(self) -> bool {
        matches!(self, Self::Confirmed | Self::ConfirmedLate)
    }
}

/// An outcome, and how far the reservation had come then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// What the money did.
    pub outcome: PaymentOutcome,
    /// The reservation's revision; 0 if it was not looked at.
    pub revision: u32,
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The reservation that it is for; there is one payment for each.
    pub reservation: String,
    /// Whose.
    pub user: UserId,
    /// Of what.
    pub product: ProductId,
    /// Where.
    pub event: EventId,
    /// Units that were reserved.
    pub quantity: u32,
    /// Of one unit.
    pub price: Money,
    /// What the buyer is asked to pay, in minor units of the price's currency.
    pub amount_minor: i64,
    /// When the hold runs out.
    pub expires_at: DateTime<Utc>,
    /// The gateway's name for it; `None` until the gateway has answered.
    pub intent: Option<String>,
    /// What the gateway has said.
    pub state: PaymentState,
    /// What was paid, once it is.
    pub paid: Option<Paid>,
    /// What it did to its reservation, once it did.
    pub applied: Option<Applied>,
    /// What went back, in minor units.
    pub refunded_minor: i64,
    /// What is to have gone back when the refund that is under way is made, in minor units.
    pub refunding_minor: Option<i64>,
    /// How often the gateway has refused the refund that is under way.
    pub refusals: u32,
    /// Attempts at its next step that have failed.
    pub attempts: u32,
    /// When there is something to be done about it; `None` if nothing is.
    pub due_at: Option<DateTime<Utc>>,
    /// When the buyer first asked to pay.
    pub created_at: DateTime<Utc>,
}

/// An amount as the gateway tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paid {
    /// In minor units.
    pub minor: i64,
    /// Upper-case ISO 4217, if it is that: it is compared, and nothing is reckoned in it.
    pub currency: String,
}

impl Payment {
    /// Units that were paid for; `None` if what was paid is not what was asked for, or not a price of whole units.
    #[must_use]
    pub fn units_paid(&self) -> Option<u32> {
        let paid = self.paid.as_ref()?;
        if paid.minor != self.amount_minor || paid.currency != self.price.currency.code() || self.price.minor < 1 {
            return None;
        }
        let units = u32::try_from(paid.minor / self.price.minor).ok()?;
        (paid.minor % self.price.minor == 0 && (1..=self.quantity).contains(&units)).then_some(units)
    }

    /// Whether this order, or that there is none, tells what became of the units. An order is written some time after the
    /// live store has decided, and one from before the payment would have a confirmed buyer refunded.
    #[must_use]
    pub fn told_by(&self, order: Option<&Order>) -> bool {
        self.applied.is_some_and(|applied| {
            !applied.outcome.confirmed() || order.is_some_and(|order| order.revision >= applied.revision)
        })
    }

    /// What should have gone back in all, in minor units, by an order that [tells](Self::told_by) of the payment, or that is
    /// all that is left of a settled sale: money kept is price x units held.
    #[must_use]
    pub fn refund_target(&self, order: Option<&Order>) -> i64 {
        (self.paid_minor() - self.worth(order)).max(0)
    }

    /// Whether what is kept is the price of what is held, by this order.
    #[must_use]
    pub fn balanced(&self, order: Option<&Order>) -> bool {
        self.paid_minor() - self.refunded_minor == self.worth(order)
    }

    fn paid_minor(&self) -> i64 {
        self.paid.as_ref().map_or(0, |paid| paid.minor)
    }

    /// The price of the units that this money bought and that its buyer still has.
    fn worth(&self, order: Option<&Order>) -> i64 {
        let held = match (self.applied, order) {
            (Some(applied), Some(order)) if applied.outcome.confirmed() => order.units_held(),
            _ => 0,
        };
        self.price.minor.saturating_mul(i64::from(held))
    }
}

#[cfg(test)]
mod tests {
    use iso_currency::Currency;

    use super::super::ids::OrderId;
    use super::super::order::OrderStatus;
    use super::*;

    fn payment(paid_minor: i64, outcome: PaymentOutcome) -> Payment {
        Payment {
            reservation: "r".to_owned(),
            user: UserId::from_bytes([1; 12]),
            product: ProductId::from_bytes([2; 12]),
            event: EventId::from_bytes([3; 12]),
            quantity: 3,
            price: Money { minor: 100, currency: Currency::INR },
            amount_minor: 300,
            expires_at: DateTime::UNIX_EPOCH,
            intent: Some("pi".to_owned()),
            state: PaymentState::Succeeded,
            paid: Some(Paid { minor: paid_minor, currency: "INR".to_owned() }),
            applied: Some(Applied { outcome, revision: 2 }),
            refunded_minor: 0,
            refunding_minor: None,
            refusals: 0,
            attempts: 0,
            due_at: None,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    fn order(status: OrderStatus, revision: u32, returned: u32) -> Order {
        Order {
            id: OrderId::from_bytes([4; 12]),
            reservation_id: "r".to_owned(),
            user: UserId::from_bytes([1; 12]),
            product: ProductId::from_bytes([2; 12]),
            event: EventId::from_bytes([3; 12]),
            quantity: 3,
            price: Money { minor: 100, currency: Currency::INR },
            status,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
            expires_at: None,
            returned,
            slot_kept: false,
            revision,
            idempotency_key: String::new(),
            operation: String::new(),
        }
    }

    #[test]
    fn only_the_amount_and_the_currency_that_were_asked_for_buy_units() {
        let mut payment = payment(300, PaymentOutcome::Confirmed);
        assert_eq!(payment.units_paid(), Some(3));
        for (minor, currency) in [(299, "INR"), (301, "INR"), (300, "USD"), (300, "inr"), (0, "INR"), (-300, "INR")] {
            payment.paid = Some(Paid { minor, currency: currency.to_owned() });
            assert_eq!(payment.units_paid(), None, "{minor} {currency}");
        }
    }

    #[test]
    fn what_was_asked_for_must_be_a_price_of_whole_units_that_were_reserved() {
        for (asked, units) in [(100, Some(1)), (200, Some(2)), (250, None), (400, None), (0, None)] {
            let mut payment = payment(asked, PaymentOutcome::Confirmed);
            payment.amount_minor = asked;
            assert_eq!(payment.units_paid(), units, "{asked}");
        }
    }

    #[test]
    fn money_kept_is_price_times_units_held() {
        let paid = payment(300, PaymentOutcome::Confirmed);
        let target = |order: &Order| paid.refund_target(Some(order));
        assert_eq!(target(&order(OrderStatus::Confirmed, 2, 0)), 0);
        assert_eq!(target(&order(OrderStatus::Confirmed, 3, 1)), 100);
        assert_eq!(target(&order(OrderStatus::Cancelled, 4, 3)), 300);
        assert_eq!(paid.refund_target(None), 300, "a settled sale that knows nothing of the reservation");
        for outcome in PaymentOutcome::ALL.into_iter().filter(|outcome| !outcome.confirmed()) {
            let paid = payment(300, outcome);
            assert!(paid.told_by(None));
            assert_eq!(paid.refund_target(Some(&order(OrderStatus::PendingPayment, 9, 0))), 300, "{outcome:?}");
        }
    }

    #[test]
    fn too_little_kept_is_as_wrong_as_too_much() {
        let kept = |refunded_minor, returned| {
            let paid = Payment { refunded_minor, ..payment(300, PaymentOutcome::Confirmed) };
            paid.balanced(Some(&order(OrderStatus::Confirmed, 3, returned)))
        };
        assert!(kept(0, 0) && kept(100, 1) && kept(300, 3));
        assert!(!kept(0, 1) && !kept(100, 0) && !kept(200, 1));
        for outcome in PaymentOutcome::ALL.into_iter().filter(|outcome| !outcome.confirmed()) {
            let back = Payment { refunded_minor: 300, ..payment(300, outcome) };
            assert!(back.balanced(None) && !payment(300, outcome).balanced(None), "{outcome:?}");
        }
    }

    #[test]
    fn an_order_from_before_the_payment_says_nothing_of_it() {
        let late = payment(300, PaymentOutcome::ConfirmedLate);
        // It had expired in revision 1, and was taken again in revision 2, which is not written yet.
        assert!(!late.told_by(Some(&order(OrderStatus::Expired, 1, 3))));
        assert!(late.told_by(Some(&order(OrderStatus::Confirmed, 2, 0))));
        assert!(!late.told_by(None));
        let mut open = payment(300, PaymentOutcome::Confirmed);
        open.applied = None;
        assert!(!open.told_by(Some(&order(OrderStatus::Confirmed, 9, 0))));
    }
}
