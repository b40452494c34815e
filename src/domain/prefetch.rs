//! Prefetch: a job that buys voucher codes from vendors ahead of orders, batch by batch.
//!
//! Units are counted so that at every moment `bought + failed + under way + unresolved` is what was ordered in all batches
//! (or more, if a vendor has delivered more than was ordered).

use chrono::{DateTime, Utc};

use super::ids::{ClientId, PrefetchJobId, UserId, VendorId, VoucherProductId};
use super::money::Money;

/// Units that one job may buy.
pub const UNITS_MAX: u32 = 100_000;
/// Batches that a job may need: they are all in its record.
pub const BATCHES_MAX: u32 = 1_000;
/// Vendors that one job may choose among.
pub const CANDIDATES_MAX: usize = 20;
/// A discount of everything, in basis points.
pub const DISCOUNT_BP_MAX: u32 = 10_000;

macro_rules! texts {
    ($state:ident: $($name:ident = $text:literal),+ $(,)?) => {
        impl $state {
            /// Every state.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The text in the database and on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The state of that name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|state| state.as_str() == text)
            }

            /// The states that may become this one.
            pub fn before(self) -> impl Iterator<Item = Self> {
                Self::ALL.iter().copied().filter(move |state| state.next().contains(&self))
            }
        }
    };
}

/// How far a job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefetchState {
    /// Nobody has begun.
    Queued,
    /// Batches are bought, or one is waited for.
    Running,
    /// Every unit is in stock.
    Completed,
    /// Nothing more is bought, and units are missing; those that were bought are in stock.
    Failed,
    /// An administrator has stopped it; what was bought by then is in stock.
    Killed,
}

texts! { PrefetchState:
    Queued = "QUEUED", Running = "RUNNING", Completed = "COMPLETED", Failed = "FAILED", Killed = "KILLED",
}

impl PrefetchState {
    /// The transition table.
    #[must_use]
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Queued => &[Self::Running, Self::Killed],
            Self::Running => &[Self::Completed, Self::Failed, Self::Killed],
            Self::Completed | Self::Failed | Self::Killed => &[],
        }
    }

    /// Whether nothing follows.
    #[must_use]
    pub const fn ended(self) -> bool {
        self.next().is_empty()
    }
}

/// What is known of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    /// The vendor may have been asked, and what it did is not known yet.
    Ordered,
    /// What the vendor delivered is in stock.
    Stocked,
    /// The vendor has not sold it, and will not.
    Refused,
    /// The vendor could not be brought to say. A person must ask, under the batch's external id.
    Unresolved,
}

texts! { BatchState:
    Ordered = "ORDERED", Stocked = "STOCKED", Refused = "REFUSED", Unresolved = "UNRESOLVED",
}

impl BatchState {
    /// The transition table.
    #[must_use]
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Ordered => &[Self::Stocked, Self::Refused, Self::Unresolved],
            // By a person.
            Self::Unresolved => &[Self::Stocked, Self::Refused],
            Self::Stocked | Self::Refused => &[],
        }
    }
}

/// How the outcome of an unresolved batch was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The administrator who saw to it.
    pub by: UserId,
    /// When.
    pub at: DateTime<Utc>,
    /// Who said what it was.
    pub said_by: SaidBy,
    /// What the administrator has noted.
    pub note: Option<String>,
}

/// Who said what became of an unresolved batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    /// The vendor's API, asked once more.
    Vendor,
    /// The administrator, who has asked the vendor.
    Administrator,
}

impl SaidBy {
    /// The text in the database and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vendor => "VENDOR",
            Self::Administrator => "ADMINISTRATOR",
        }
    }

    /// Who has this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Vendor, Self::Administrator].into_iter().find(|one| one.as_str() == text)
    }
}

/// A vendor that a job may buy from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Who.
    pub vendor: VendorId,
    /// The vendor's own name for the product.
    pub product_ref: String,
    /// The discount that was agreed on, in basis points; what the vendor says when it is asked counts more.
    pub discount_bp: u32,
    /// Why this job does not buy from it any more, if so.
    pub passed_over: Option<String>,
}

/// One order of a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// From 1, in the order in which they were begun.
    pub number: u32,
    /// Of whom.
    pub vendor: VendorId,
    /// Units ordered.
    pub units: u32,
    /// What is known of it.
    pub state: BatchState,
    /// Units of it that are in stock.
    pub bought: u32,
    /// How often the vendor was asked to sell it, always under the same external id.
    pub orders: u32,
    /// When it was last asked to.
    pub ordered_at: DateTime<Utc>,
    /// Why fewer units were bought than ordered.
    pub reason: Option<String>,
    /// How its outcome was found out, if it was unresolved.
    pub resolution: Option<Resolution>,
}

/// Units of a job, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// In stock.
    pub bought: u32,
    /// Ordered and not delivered: refused, missing in a delivery, or codes that were in stock already. They are ordered
    /// again elsewhere if there is somebody.
    pub failed: u32,
    /// In batches whose outcome is not known yet.
    pub under_way: u32,
    /// In batches whose outcome a person must find out.
    pub unresolved: u32,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefetchJob {
    /// Its id.
    pub id: PrefetchJobId,
    /// What whoever made it calls it: no two jobs have one.
    pub reference: String,
    /// What is bought.
    pub product: VoucherProductId,
    /// Of which face value.
    pub denomination: Money,
    /// How many.
    pub units: u32,
    /// For whom it is reserved, if for somebody.
    pub client: Option<ClientId>,
    /// From whom.
    pub candidates: Vec<Candidate>,
    /// Units of one order, as the configuration had it when the job was made.
    pub batch_size: u32,
    /// How far it has come.
    pub state: PrefetchState,
    /// When an administrator asked for its end; from then on no batch begins.
    pub kill_asked_at: Option<DateTime<Utc>>,
    /// What became of its units.
    pub progress: Progress,
    /// The number of the next batch.
    pub next_batch: u32,
    /// Its batches in order; not in lists.
    pub batches: Vec<Batch>,
    /// Why it failed.
    pub reason: Option<String>,
    /// Rounds since anything was achieved.
    pub idle_rounds: u32,
    /// When it is to be worked on; while somebody does, when somebody else may.
    pub due_at: Option<DateTime<Utc>>,
    /// The administrator who made it.
    pub created_by: UserId,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When the first batch could begin.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

impl PrefetchJob {
    /// Units that are not in stock yet.
    #[must_use]
    pub const fn missing(&self) -> u32 {
        self.units.saturating_sub(self.progress.bought)
    }

    /// Units that are in no batch whose outcome is good, or unknown.
    #[must_use]
    pub const fn to_order(&self) -> u32 {
        self.missing().saturating_sub(self.progress.under_way).saturating_sub(self.progress.unresolved)
    }

    /// Whether it has ended with a part of what was wanted.
    #[must_use]
    pub const fn partial(&self) -> bool {
        self.state.ended() && self.progress.bought > 0 && self.missing() > 0
    }

    /// Vendors that it may still buy from.
    pub fn willing(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| candidate.passed_over.is_none())
    }

    /// Whether another job is for the same.
    #[must_use]
    pub fn is_for_the_same(&self, other: &Self) -> bool {
        let wanted = |job: &Self| (job.product, job.denomination, job.units, job.client);
        let agreed = |candidate: &Candidate| (candidate.vendor, candidate.product_ref.clone(), candidate.discount_bp);
        wanted(self) == wanted(other) && self.candidates.iter().map(agreed).eq(other.candidates.iter().map(agreed))
    }

    /// The batch of this number.
    #[must_use]
    pub fn batch(&self, number: u32) -> Option<&Batch> {
        self.batches.iter().find(|batch| batch.number == number)
    }

    /// Batches whose outcome is not known.
    pub fn open_batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter().filter(|batch| batch.state == BatchState::Ordered)
    }
}

/// The name of a batch at its vendor. It follows from the job and the number, so whoever asks, asks about the same order.
#[must_use]
pub fn external_id(job: PrefetchJobId, number: u32) -> String {
    format!("{job}-{number}")
}

/// What a vendor says that it can sell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Who.
    pub vendor: VendorId,
    /// How many units.
    pub units: u32,
    /// At which discount, in basis points.
    pub discount_bp: u32,
}

/// The offer with the highest discount among those of enough units. Between equal ones the vendor's id decides, so that
/// every process decides alike.
#[must_use]
pub fn best_offer(offers: &[Offer], units: u32) -> Option<Offer> {
    let enough = offers.iter().copied().filter(|offer| offer.units >= units);
    enough.max_by_key(|offer| (offer.discount_bp, std::cmp::Reverse(offer.vendor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(vendor: u8, units: u32, discount_bp: u32) -> Offer {
        Offer { vendor: VendorId::from_bytes([vendor; 12]), units, discount_bp }
    }

    #[test]
    fn the_highest_discount_wins_among_vendors_with_enough_units() {
        let offers = [offer(1, 100, 300), offer(2, 99, 900), offer(4, 500, 450), offer(3, 100, 450)];
        assert_eq!(best_offer(&offers, 100), Some(offers[3]));
        assert_eq!(best_offer(&offers, 99), Some(offers[1]));
        assert_eq!(best_offer(&offers, 501), None);
        assert_eq!(best_offer(&[], 0), None);
    }

    #[test]
    fn nothing_follows_an_end() {
        for state in PrefetchState::ALL {
            assert_eq!(PrefetchState::parse(state.as_str()), Some(*state));
            assert!(state.next().iter().all(|next| next.before().any(|before| before == *state)));
        }
        let ended: Vec<_> = PrefetchState::ALL.iter().filter(|state| state.ended()).collect();
        assert_eq!(ended, [&PrefetchState::Completed, &PrefetchState::Failed, &PrefetchState::Killed]);
        assert_eq!(PrefetchState::Killed.before().collect::<Vec<_>>(), [PrefetchState::Queued, PrefetchState::Running]);
        assert_eq!(PrefetchState::Running.before().collect::<Vec<_>>(), [PrefetchState::Queued]);
    }

    #[test]
    fn a_batch_is_decided_once() {
        for state in BatchState::ALL {
            assert_eq!(BatchState::parse(state.as_str()), Some(*state));
            assert_eq!(state.next().is_empty(), matches!(state, BatchState::Stocked | BatchState::Refused));
        }
        assert_eq!(BatchState::Unresolved.next(), [BatchState::Stocked, BatchState::Refused], "never ordered again");
    }

    #[test]
    fn an_external_id_names_job_and_batch() {
        let job = PrefetchJobId::from_bytes([0xab; 12]);
        assert_eq!(external_id(job, 7), "abababababababababababab-7");
    }
}
