//! The products that listeners ask for, each once, however many ask.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::ids::ProductId;

/// Products that all listeners of a sale together may ask for.
const ASKED_MAX: usize = 10_000;

/// How many listeners ask for each product.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<BTreeMap<ProductId, usize>>);

impl Asked {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<ProductId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for these products; false, and nothing is asked for, if they would be too many.
    pub fn ask(&self, ids: &[ProductId]) -> bool {
        let mut counts = self.counts();
        let new = ids.iter().filter(|id| !counts.contains_key(id)).count();
        if counts.len() + new > ASKED_MAX {
            return false;
        }
        for id in ids {
            *counts.entry(*id).or_default() += 1;
        }
        true
    }

    /// Asks for them no longer.
    pub fn take_back(&self, ids: &[ProductId]) {
        let mut counts = self.counts();
        for id in ids {
            if let Some(count) = counts.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(id);
                }
            }
        }
    }

    /// At most `limit` products in order, after the given one and from the start again.
    pub fn some_after(&self, after: Option<ProductId>, limit: usize) -> Vec<ProductId> {
        let counts = self.counts();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = counts.range((from, Bound::Unbounded)).map(|(id, _)| *id);
        let before = counts.keys().copied().take_while(|id| after.is_some_and(|after| *id <= after));
        behind.chain(before).take(limit).collect()
    }

    /// Whether somebody asks for it.
    pub fn has(&self, id: ProductId) -> bool {
        self.counts().contains_key(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u16) -> ProductId {
        let [high, low] = number.to_be_bytes();
        ProductId::from_bytes([high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn a_product_is_asked_for_until_the_last_listener_has_gone() {
        let asked = Asked::default();
        assert!(asked.ask(&[id(1), id(2)]) && asked.ask(&[id(2)]));
        asked.take_back(&[id(1), id(2)]);
        assert!(!asked.has(id(1)) && asked.has(id(2)));
        asked.take_back(&[id(2)]);
        assert!(asked.some_after(None, 10).is_empty());
    }

    #[test]
    fn every_product_has_its_turn() {
        let asked = Asked::default();
        asked.ask(&[id(1), id(2), id(3)]);
        assert_eq!(asked.some_after(None, 2), [id(1), id(2)]);
        assert_eq!(asked.some_after(Some(id(2)), 2), [id(3), id(1)]);
        assert_eq!(asked.some_after(Some(id(3)), 10), [id(1), id(2), id(3)]);
        assert_eq!(asked.some_after(Some(id(9)), 10), [id(1), id(2), id(3)]);
    }

    #[test]
    fn listeners_together_ask_for_so_many_and_no_more() {
        let asked = Asked::default();
        let many: Vec<ProductId> = (0..10_000).map(id).collect();
        assert!(asked.ask(&many));
        assert!(!asked.ask(&[id(0), id(10_000)]), "one too many");
        assert!(asked.ask(&[id(0)]), "one that is watched already");
    }
}
