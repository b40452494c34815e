//! What is to be played.

use std::time::Duration;

use super::error::{LoadError, Result};

/// How the buyers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scenario {
    /// All at once: each buyer tries one random product, and there is far less stock than buyers.
    #[default]
    Rush,
    /// At a constant rate, whatever the service answers (an open loop), with stock for everyone.
    Steady,
    /// At a constant rate, with nothing left: every answer is a refusal.
    SoldOut,
    /// All at once, and what is reserved is to be paid: buyers pay, cancel, pay too late, or walk away, and what comes back
    /// is sold again.
    Payment,
    /// All at once, and the units are codes that were imported from a spreadsheet: buyers read theirs.
    Voucher,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 5] = [Self::Rush, Self::Steady, Self::SoldOut, Self::Payment, Self::Voucher];

    /// The name on the command line and in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rush => "rush",
            Self::Steady => "steady",
            Self::SoldOut => "sold-out",
            Self::Payment => "payment",
            Self::Voucher => "voucher",
        }
    }
}

impl std::fmt::Display for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let names = Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|scenario| scenario.as_str() == text)
            .ok_or_else(|| format!("there is no scenario \"{text}\"; there are {names}"))
    }
}

/// Everything that a run depends on, besides the service.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How the buyers come.
    pub scenario: Scenario,
    /// Accounts that buy.
    pub buyers: usize,
    /// Products on sale.
    pub products: usize,
    /// Units of each product. [`Scenario::Steady`] sets it so that stock lasts.
    pub units: u32,
    /// Decides who tries what.
    pub seed: u64,
    /// Sign-ups and other preparations under way at once.
    pub workers: usize,
    /// Purchases under way at once; the rest waits. Only the limit of open files should ever make this less than the
    /// buyers.
    pub connections_max: usize,
    /// Arrivals per second, for the open-loop scenarios.
    pub rate_per_s: u32,
    /// How long they last.
    pub duration: Duration,
    /// Purchases that may stay without an answer before the run counts as failed.
    pub errors_max: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            scenario: Scenario::Rush,
            buyers: 5_000,
            products: 100,
            units: 1,
            seed: 1,
            workers: 64,
            connections_max: 5_000,
            rate_per_s: 500,
            duration: Duration::from_secs(10),
            errors_max: 0,
        }
    }
}

impl Plan {
    /// Purchases that will be tried and measured.
    #[must_use]
    pub fn attempts(&self) -> usize {
        match self.scenario {
            Scenario::Rush | Scenario::Payment | Scenario::Voucher => self.buyers,
            Scenario::Steady | Scenario::SoldOut => {
                let millis = u128::from(self.rate_per_s) * self.duration.as_millis();
                usize::try_from(millis / 1000).unwrap_or(usize::MAX)
            }
        }
    }

    /// Units of each product.
    #[must_use]
    pub fn units_each(&self) -> u32 {
        match self.scenario {
            Scenario::Rush | Scenario::SoldOut | Scenario::Payment | Scenario::Voucher => self.units,
            // A buyer may have one: this lasts, whoever tries what.
            Scenario::Steady => u32::try_from(self.buyers).unwrap_or(u32::MAX),
        }
    }

    /// Checks that it can be played.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn validate(&self) -> Result<()> {
        let refuse = |text: String| Err(LoadError::Plan(text));
        if self.buyers == 0 || self.products == 0 || self.units == 0 || self.workers == 0 || self.connections_max == 0 {
            return refuse("there must be at least one buyer, product, unit, worker and connection".to_owned());
        }
        let attempts = self.attempts();
        match self.scenario {
            Scenario::Rush | Scenario::Payment | Scenario::Voucher => Ok(()),
            _ if attempts == 0 => refuse("the rate and the time make no purchase; raise one of them".to_owned()),
            // A buyer may have a product once, so every purchase needs a pair of its own.
            Scenario::Steady if attempts > self.buyers.saturating_mul(self.products) => refuse(format!(
                "{attempts} purchases need as many pairs of buyer and product, and {} buyers with {} products make only \
                 {}; take more buyers, more products, or less time",
                self.buyers,
                self.products,
                self.buyers * self.products
            )),
            Scenario::SoldOut if self.buyers <= self.units as usize => {
                refuse(format!("{} units of each product need more buyers than that to sell out", self.units))
            }
            Scenario::Steady | Scenario::SoldOut => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(buyers: usize, products: usize) -> Plan {
        Plan { scenario: Scenario::Steady, buyers, products, rate_per_s: 100, ..Plan::default() }
    }

    #[test]
    fn a_steady_sale_has_a_unit_and_a_pair_for_every_arrival() {
        assert_eq!(steady(100, 7).attempts(), 1_000);
        assert_eq!(steady(100, 7).units_each(), 100);
        assert!(steady(100, 10).validate().is_ok());
        assert!(steady(99, 10).validate().is_err());
    }

    #[test]
    fn refuses_what_cannot_be_played() {
        assert!(Plan { buyers: 0, ..Plan::default() }.validate().is_err());
        assert!(Plan { scenario: Scenario::SoldOut, buyers: 3, units: 3, ..Plan::default() }.validate().is_err());
        assert!(Plan { duration: Duration::ZERO, ..steady(10, 10) }.validate().is_err());
    }

    #[test]
    fn names_round_trip() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }
        assert!("storm".parse::<Scenario>().unwrap_err().contains("rush, steady, sold-out"));
    }
}
