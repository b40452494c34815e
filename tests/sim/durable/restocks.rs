//! Restockings, each under its operation.

use std::collections::HashMap;

use orbit::domain::ids::ProductId;
use orbit::domain::restock::{Restock, RestockState};

use super::Database;

impl Database {
    /// Records it unless its operation is known; returns what is known.
    pub fn record_restock(&mut self, restock: Restock) -> Restock {
        self.restocks.entry(restock.operation.clone()).or_insert(restock).clone()
    }

    pub fn restock_applied(&mut self, restock: Restock) {
        self.changes += 1;
        self.restocks.insert(restock.operation.clone(), restock);
    }

    pub fn discard_restock(&mut self, operation: &str) {
        if self.restocks.get(operation).is_some_and(|restock| restock.state == RestockState::Pending) {
            self.restocks.remove(operation);
        }
    }

    pub fn restocks(&self, state: RestockState) -> Vec<Restock> {
        self.restocks.values().filter(|restock| restock.state == state).cloned().collect()
    }

    pub fn restocked(&self) -> HashMap<ProductId, i64> {
        let mut sums = HashMap::new();
        for restock in self.restocks(RestockState::Applied) {
            *sums.entry(restock.product).or_default() += restock.units;
        }
        sums
    }
}
