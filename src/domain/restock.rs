//! Restocking: units added to a running sale, or withdrawn from it.

use chrono::{DateTime, Utc};

use super::ids::{EventId, ProductId};
use super::sale::SaleStatus;

/// How far a restocking has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestockState {
    /// Recorded; the live store may or may not have it.
    Pending,
    /// The live store has it: it counts.
    Applied,
}

impl RestockState {
    /// Every state.
    pub const ALL: [Self; 2] = [Self::Pending, Self::Applied];

    /// The text in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Applied => "APPLIED",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Units added or withdrawn, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restock {
    /// The caller's name for it, unique within the event.
    pub operation: String,
    /// In which sale.
    pub event: EventId,
    /// Of what.
    pub product: ProductId,
    /// Units added; negative for units withdrawn.
    pub units: i64,
    /// How far it has come.
    pub state: RestockState,
    /// When it was asked for.
    pub at: DateTime<Utc>,
}

/// What the live store decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restocking {
    /// Done now.
    Done {
        /// Units that can be reserved.
        stock: u64,
        /// Units added since the start, less those withdrawn.
        restocked: i64,
    },
    /// Done before, under the same id.
    Before {
        /// Units that can be reserved.
        stock: u64,
        /// Units added since the start, less those withdrawn.
        restocked: i64,
    },
    /// Fewer units are unsold than are to be withdrawn.
    Short {
        /// Units that can be reserved.
        stock: u64,
    },
    /// The product would have more units than a product may.
    Full,
    /// The sale has no such product.
    UnknownProduct,
    /// The sale does not run.
    NotRunning(SaleStatus),
}
