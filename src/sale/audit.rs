//! The invariants of one sale, checked against what both stores hold now.
//!
//! Reads page by page. While a sale is live the counts move between two reads; pause it for an exact answer.

use std::collections::HashMap;

use super::Sale;
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, ProductId};
use crate::error::Result;
use crate::store::live::BookingRead;

/// One invariant, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What must hold.
    pub name: &'static str,
    /// Whether it does.
    pub holds: bool,
    /// What was counted.
    pub detail: String,
}

#[derive(Default)]
struct Bookings {
    listed: u64,
    whole: u64,
    units: HashMap<ProductId, u64>,
    mispriced: u64,
    over_limit: u64,
}

impl Sale {
    /// Checks every invariant that the stores can show.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn audit(&self, event: &Event) -> Result<Vec<Check>> {
        if event.phase == SalePhase::Settled {
            return self.audit_settled(event.id).await;
        }
        self.audit_running(event.id).await
    }

    async fn audit_running(&self, event: EventId) -> Result<Vec<Check>> {
        let products = self.live_products(event).await?;
        let bookings = self.read_all(event, &products).await?;
        let unbalanced: Vec<String> = products
            .iter()
            .filter(|(id, product)| product.stock + bookings.units.get(*id).copied().unwrap_or(0) != product.initial)
            .map(|(id, _)| id.to_string())
            .collect();
        let journal = self.live.journal_len(event).await?;
        Ok(vec![
            Check {
                name: "stock + reserved units = units at the start, for each product",
                holds: unbalanced.is_empty(),
                detail: format!("{} products, unbalanced: {}", products.len(), unbalanced.join(" ")),
            },
            Check {
                name: "every listed booking is whole",
                holds: bookings.listed == bookings.whole,
                detail: format!("{} listed, {} whole", bookings.listed, bookings.whole),
            },
            Check {
                name: "every booking has its journal entry",
                holds: bookings.listed == journal,
                detail: format!("{} bookings, {journal} journal entries", bookings.listed),
            },
            Check {
                name: "no booking is above its product's limit",
                holds: bookings.over_limit == 0,
                detail: format!("{} above", bookings.over_limit),
            },
            Check {
                name: "every booking has its product's price",
                holds: bookings.mispriced == 0,
                detail: format!("{} of another price", bookings.mispriced),
            },
        ])
    }

    async fn audit_settled(&self, event: EventId) -> Result<Vec<Check>> {
        let left = self.live.scan_event_keys(event).await?;
        let status = self.live.keys().status(event);
        let strays: Vec<&String> = left.iter().filter(|key| **key != status).collect();
        let oversold = self.oversold(event).await?;
        Ok(vec![
            Check {
                name: "no key of the event remains but the stopped status",
                holds: strays.is_empty(),
                detail: format!("{} other keys", strays.len()),
            },
            Check {
                name: "no product has more ordered units than it had",
                holds: oversold.is_empty(),
                detail: format!("oversold: {}", oversold.join(" ")),
            },
        ])
    }

    async fn oversold(&self, event: EventId) -> Result<Vec<String>> {
        let mut oversold = Vec::new();
        for (id, units) in self.mongo.orders.units_per_product(event).await? {
            // A deleted product has no units to compare with.
            if let Some(product) = self.mongo.products.by_id(event, id).await?
                && units > u64::from(product.units)
            {
                oversold.push(id.to_string());
            }
        }
        Ok(oversold)
    }

    async fn live_products(&self, event: EventId) -> Result<HashMap<ProductId, Figures>> {
        let mut figures = HashMap::new();
        let mut after = None;
        loop {
            let ids = self.live.product_ids(event, after, self.config.settle_page_size_max).await?;
            let Some(last) = ids.last() else { return Ok(figures) };
            after = Some(*last);
            for product in self.live.products(event, &ids).await? {
                let value = Figures {
                    stock: product.available_units,
                    initial: product.initial_units,
                    minor: product.price.minor,
                    limit: product.per_buyer_limit,
                };
                figures.insert(product.id, value);
            }
        }
    }

    async fn read_all(&self, event: EventId, products: &HashMap<ProductId, Figures>) -> Result<Bookings> {
        let mut all = Bookings { listed: self.live.booking_count(event).await?, ..Bookings::default() };
        let mut seen = std::collections::HashSet::new();
        let mut cursor = 0;
        loop {
            let (next, mut keys) = self.live.booking_keys_page(event, cursor, self.config.settle_page_size_max).await?;
            keys.retain(|key| seen.insert(key.clone()));
            for booking in self.live.read_bookings(event, keys).await? {
                let BookingRead::Whole(reservation) = booking.read else { continue };
                all.whole += 1;
                *all.units.entry(reservation.product).or_default() += u64::from(reservation.quantity);
                if let Some(product) = products.get(&reservation.product) {
                    all.mispriced += u64::from(product.minor != reservation.price.minor);
                    all.over_limit += u64::from(reservation.quantity > product.limit);
                }
            }
            if next == 0 {
                return Ok(all);
            }
            cursor = next;
        }
    }
}

struct Figures {
    stock: u64,
    initial: u64,
    minor: i64,
    limit: u32,
}
