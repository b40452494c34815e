//! Vouchers: codes that were bought before they are sold.
//!
//! A *unit* is one code. The database has its state; the pools of the live store are where the next one is taken from.

use chrono::{DateTime, Utc};
use iso_currency::Currency;
use secrecy::SecretString;

use super::ids::{ClientId, EventId, ProductId, UserId, VendorId, VoucherOrderId, VoucherProductId};
use super::money::Money;

/// A unit's number, counted up as units come in: of two that expire together, the smaller one is sold first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(u64);

impl UnitId {
    /// Wraps a number that the database gave out.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Its name in a pool. Members of equal score are ordered by their text, hence the zeros.
    #[must_use]
    pub fn member(self) -> String {
        format!("inv-{:012}", self.0)
    }

    /// Reads [`Self::member`].
    #[must_use]
    pub fn from_member(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("inv-")?;
        (digits.len() == 12).then(|| digits.parse().ok().map(Self)).flatten()
    }
}

impl std::fmt::Display for UnitId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What has become of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitStatus {
    /// To be had.
    Available,
    /// An order item has it, and nobody has seen its code.
    Allocated,
    /// Its code was shown to whom it belongs.
    Delivered,
    /// Its owner has confirmed that it is theirs.
    Completed,
    /// An administrator has stopped it.
    Blocked,
    /// Refunded after its code was shown: never sold again.
    Revoked,
}

impl UnitStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Available, Self::Allocated, Self::Delivered, Self::Completed, Self::Blocked, Self::Revoked];

    /// As it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Allocated => "ALLOCATED",
            Self::Delivered => "DELIVERED",
            Self::Completed => "COMPLETED",
            Self::Blocked => "BLOCKED",
            Self::Revoked => "REVOKED",
        }
    }

    /// Reads [`Self::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// What a unit of this status may become. Every write of a status has its source states from here.
    #[must_use]
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Available => &[Self::Allocated, Self::Blocked],
            // Released: never shown, so it can be sold again.
            Self::Allocated => &[Self::Delivered, Self::Available, Self::Blocked],
            Self::Delivered => &[Self::Completed, Self::Revoked],
            Self::Blocked => &[Self::Available, Self::Allocated],
            Self::Completed | Self::Revoked => &[],
        }
    }

    /// From which states a unit may become this.
    #[must_use]
    pub fn sources(self) -> Vec<Self> {
        Self::ALL.into_iter().filter(|status| status.next().contains(&self)).collect()
    }
}

/// A unit, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its number.
    pub id: UnitId,
    /// What it is a voucher of.
    pub product: VoucherProductId,
    /// What it is worth.
    pub denomination: Money,
    /// Who issued it.
    pub vendor: VendorId,
    /// For whom it is kept; nobody: for whoever comes.
    pub client: Option<ClientId>,
    /// Until when it can be used.
    pub expires_at: DateTime<Utc>,
    /// What has become of it.
    pub status: UnitStatus,
    /// The order item that has it.
    pub item: Option<String>,
    /// Counts its changes.
    pub revision: u64,
}

impl Unit {
    /// The second at which it expires: its score in a pool.
    #[must_use]
    pub const fn score(&self) -> i64 {
        self.expires_at.timestamp()
    }

    /// The pool that it belongs in, if it belongs in one.
    #[must_use]
    pub fn pool(&self, expires_from: DateTime<Utc>) -> Option<Pool> {
        let pooled = self.status == UnitStatus::Available && self.expires_at >= expires_from;
        pooled.then_some(Pool {
            product: self.product,
            denomination: self.denomination,
            vendor: self.vendor,
            client: self.client,
        })
    }
}

/// An issuer of vouchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vendor {
    /// Its id.
    pub id: VendorId,
    /// Its name; no two differ only in case.
    pub name: String,
    /// When it was entered.
    pub created_at: DateTime<Utc>,
}

/// A customer for whom vouchers are kept and ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id.
    pub id: ClientId,
    /// Its name; no two differ only in case.
    pub name: String,
    /// Accounts that may order for it and see its codes.
    pub members: Vec<UserId>,
    /// Vendors whose vouchers it does not take.
    pub refuses: Vec<VendorId>,
    /// It takes no voucher that expires in fewer days; nothing: as is configured.
    pub validity_days_min: Option<u32>,
    /// When it was entered.
    pub created_at: DateTime<Utc>,
}

/// What vouchers are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherProduct {
    /// Its id.
    pub id: VoucherProductId,
    /// Its name; no two differ only in case.
    pub name: String,
    /// The currency of its denominations.
    pub currency: Currency,
    /// What its vouchers can be worth, in minor units.
    pub denominations: Vec<i64>,
    /// Who issues it.
    pub vendors: Vec<VendorId>,
    /// When it was entered.
    pub created_at: DateTime<Utc>,
}

/// What has become of an order of vouchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoucherOrderStatus {
    /// Its items are being given units.
    Pending,
    /// Every item has a unit.
    Allocated,
    /// Its codes were shown.
    Delivered,
    /// It has no units, or only revoked ones.
    Cancelled,
}

impl VoucherOrderStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Allocated, Self::Delivered, Self::Cancelled];

    /// As it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Allocated => "ALLOCATED",
            Self::Delivered => "DELIVERED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Reads [`Self::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Vouchers of one kind in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherLine {
    /// Of what.
    pub product: VoucherProductId,
    /// Worth what.
    pub denomination: Money,
    /// How many.
    pub quantity: u32,
}

/// The reservation of a sale that an order of vouchers serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sold {
    /// Where it was reserved.
    pub event: EventId,
    /// What: its vouchers are kept for this product as others are for a client.
    pub product: ProductId,
    /// By whom.
    pub buyer: UserId,
}

/// Whom the vouchers of a sale's product are kept for while it is on sale: the product itself.
#[must_use]
pub const fn kept_for(product: ProductId) -> ClientId {
    ClientId::from_bytes(product.bytes())
}

/// Resets that an order remembers. A late write is a matter of seconds.
const ROUNDS_REMEMBERED: u32 = 8;

/// An order of vouchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherOrder {
    /// Its id.
    pub id: VoucherOrderId,
    /// For whom.
    pub client: ClientId,
    /// The client's own name for it, or the reservation's id; a client has no two orders of one name.
    pub reference: String,
    /// The reservation that it serves, if it was not made for a client.
    pub sold: Option<Sold>,
    /// What was ordered.
    pub lines: Vec<VoucherLine>,
    /// What has become of it.
    pub status: VoucherOrderStatus,
    /// Why it was cancelled.
    pub reason: Option<String>,
    /// Counts how often its items were given units anew.
    pub round: u32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl VoucherOrder {
    /// The items of one of its lines, by position. After a reset they are others, so that a late write of before finds none.
    #[must_use]
    pub fn items(&self, line: usize) -> Vec<String> {
        let before: u32 = self.lines.iter().take(line).map(|line| line.quantity).sum();
        let count = self.lines.get(line).map_or(0, |line| line.quantity);
        (before..before + count).map(|position| format!("{}-{}-{position:04}", self.id, self.round)).collect()
    }

    /// The items that it had before it was reset: whoever was about to fill those may do so late.
    #[must_use]
    pub fn items_before(&self) -> Vec<String> {
        let rounds = self.round.saturating_sub(ROUNDS_REMEMBERED).max(1)..self.round;
        rounds.flat_map(|round| Self { round, ..self.clone() }.all_items()).collect()
    }

    /// Its items, and those that it had before.
    #[must_use]
    pub fn items_ever(&self) -> Vec<String> {
        let mut items = self.items_before();
        items.extend(self.all_items());
        items
    }

    /// All of its items, in the order of its lines.
    #[must_use]
    pub fn all_items(&self) -> Vec<String> {
        (0..self.lines.len()).flat_map(|line| self.items(line)).collect()
    }
}

/// What a unit is about: whoever has it can spend it.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// The code.
    pub code: Option<SecretString>,
    /// The PIN that goes with it.
    pub pin: Option<SecretString>,
    /// Where it is claimed.
    pub claim_url: Option<SecretString>,
    /// The issuer's reference.
    pub reference: Option<SecretString>,
}

/// A pool of units that are alike but for when they expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Of what.
    pub product: VoucherProductId,
    /// Worth what.
    pub denomination: Money,
    /// Issued by whom.
    pub vendor: VendorId,
    /// Kept for whom; nobody: the general pool.
    pub client: Option<ClientId>,
}

/// A denomination as it stands in a key: with two decimals, or as many as its currency has.
#[must_use]
pub fn denomination_text(denomination: Money) -> String {
    let digits = denomination.currency.exponent().map_or(0, u32::from);
    let one = 10_i64.pow(digits);
    let (whole, rest) = (denomination.minor / one, denomination.minor % one);
    let width = digits as usize;
    if digits == 0 { format!("{whole}.00") } else { format!("{whole}.{rest:0width$}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::currency;

    #[test]
    fn members_sort_as_units_were_imported() {
        let (early, late) = (UnitId::new(9), UnitId::new(10));
        assert!(early.member() < late.member());
        assert_eq!(UnitId::from_member(&late.member()), Some(late));
        for text in ["inv-", "inv-10", "inv--00000000010", "pool-000000000010", ""] {
            assert_eq!(UnitId::from_member(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_shown_is_never_for_sale_again() {
        for shown in [UnitStatus::Delivered, UnitStatus::Completed, UnitStatus::Revoked] {
            let mut reachable = vec![shown];
            let mut looked_at = 0;
            while looked_at < reachable.len() {
                reachable.extend(
                    reachable[looked_at]
                        .next()
                        .iter()
                        .filter(|next| !reachable.contains(next))
                        .copied()
                        .collect::<Vec<_>>(),
                );
                looked_at += 1;
            }
            assert!(!reachable.contains(&UnitStatus::Available), "{shown:?}");
            assert!(!reachable.contains(&UnitStatus::Allocated), "{shown:?}");
        }
    }

    #[test]
    fn statuses_are_read_as_they_are_written() {
        for status in UnitStatus::ALL {
            assert_eq!(UnitStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(UnitStatus::Available.sources(), [UnitStatus::Allocated, UnitStatus::Blocked]);
    }

    #[test]
    fn denominations_have_two_decimals_or_their_currencys() {
        let text = |minor, code| denomination_text(Money { minor, currency: currency(code).unwrap() });
        assert_eq!(text(2_500, "USD"), "25.00");
        assert_eq!(text(5, "USD"), "0.05");
        assert_eq!(text(500, "JPY"), "500.00");
        assert_eq!(text(1_234, "KWD"), "1.234");
    }
}
