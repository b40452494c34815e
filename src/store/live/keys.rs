//! The only place where a live key is spelled.
//!
//! The braces are a Redis Cluster hash tag around the event id: all keys of one event live in one slot, so every script
//! may touch them together, and events spread over shards.

use crate::domain::ids::{EventId, ProductId, UserId, VoucherProductId};
use crate::domain::voucher::{Pool, UnitId, denomination_text};

/// Makes every key of one installation.
#[derive(Debug, Clone)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// Keys that start with this text.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// String: the sale's status; absent means `NOT_STARTED`.
    #[must_use]
    pub fn status(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:saleStatus", self.prefix)
    }

    /// String with a time to live: the token of the one opener.
    #[must_use]
    pub fn opening(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:opening", self.prefix)
    }

    /// Hash: stock, price (minor units), currency, limit, initial, restocked, held (units unpaid), window (milliseconds to
    /// pay in), endsAt (milliseconds since 1970, or empty).
    #[must_use]
    pub fn product(&self, product: ProductId, event: EventId) -> String {
        format!("{}product:{product}:{{{event}}}", self.prefix)
    }

    /// Hash: the product as buyers see it.
    #[must_use]
    pub fn product_meta(&self, product: ProductId, event: EventId) -> String {
        format!("{}productmeta:{product}:{{{event}}}", self.prefix)
    }

    /// Hash: one buyer's reservation of one product.
    #[must_use]
    pub fn booking(&self, user: UserId, product: ProductId, event: EventId) -> String {
        format!("{}booking:{user}:{product}:{{{event}}}", self.prefix)
    }

    /// Whose booking a key is: the user and the product. `None` if it is not a booking of this event.
    #[must_use]
    pub fn booking_owner(&self, key: &str, event: EventId) -> Option<(UserId, ProductId)> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix("booking:")?;
        let (user, rest) = rest.split_once(':')?;
        let product = rest.strip_suffix(&format!(":{{{event}}}"))?;
        Some((user.parse().ok()?, product.parse().ok()?))
    }

    /// Set: the buyers who reserved a product.
    #[must_use]
    pub fn winners(&self, event: EventId, product: ProductId) -> String {
        format!("{}event:{{{event}}}:product:{product}:winners", self.prefix)
    }

    /// Set: the booking keys of the event.
    #[must_use]
    pub fn bookings(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:bookings", self.prefix)
    }

    /// Set: every other key that the sale owns, for removal.
    #[must_use]
    pub fn product_keys(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:productKeys", self.prefix)
    }

    /// Sorted set: product ids in order, for paging.
    #[must_use]
    pub fn catalogue(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:catalogue", self.prefix)
    }

    /// Stream: one entry for each accepted change.
    #[must_use]
    pub fn journal(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:journal", self.prefix)
    }

    /// Sorted set: unpaid reservations as `product:user`, scored by the end of their payment window in milliseconds.
    #[must_use]
    pub fn holds(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:holds", self.prefix)
    }

    /// Hash: operations that are done once, by their ids.
    #[must_use]
    pub fn operations(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:operations", self.prefix)
    }

    /// Hash: why the sale is held, and whether the seller may resume it.
    #[must_use]
    pub fn held(&self, event: EventId) -> String {
        format!("{}event:{{{event}}}:held", self.prefix)
    }

    /// A pattern that matches every key of an event, for checks that may scan.
    #[must_use]
    pub fn pattern(&self, event: EventId) -> String {
        format!("{}*{{{event}}}*", self.prefix)
    }

    /// Sorted set: voucher units (`inv-<id>`) by the second at which they expire. The tag is around the product: all of its
    /// pools are in one slot.
    #[must_use]
    pub fn pool(&self, pool: &Pool) -> String {
        let Pool { product, denomination, vendor, client } = pool;
        let (prefix, worth) = (&self.prefix, denomination_text(*denomination));
        client.map_or_else(
            || format!("{prefix}pool:{{{product}}}:{worth}:{vendor}"),
            |client| format!("{prefix}inventory:reserved:{client}:{{{product}}}:{worth}:{vendor}"),
        )
    }

    /// Hash: a unit's vendor, denomination, expiry, client, pool, and the revision that was placed last.
    #[must_use]
    pub fn unit(&self, product: VoucherProductId, unit: UnitId) -> String {
        format!("{}inventory:{{{product}}}:{}", self.prefix, unit.member())
    }

    /// Hash: claims on units that the database has not confirmed yet, by order item.
    #[must_use]
    pub fn claims(&self, product: VoucherProductId) -> String {
        format!("{}inventory:{{{product}}}:claims", self.prefix)
    }

    /// Set: the pools of a product that have had a unit.
    #[must_use]
    pub fn pools(&self, product: VoucherProductId) -> String {
        format!("{}inventory:{{{product}}}:pools", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_spelled_like_this() {
        let keys = Keys::new("t:");
        let e: EventId = "aaaaaaaaaaaaaaaaaaaaaaaa".parse().unwrap();
        let p: ProductId = "bbbbbbbbbbbbbbbbbbbbbbbb".parse().unwrap();
        let u: UserId = "cccccccccccccccccccccccc".parse().unwrap();
        let all = [
            keys.status(e),
            keys.opening(e),
            keys.product(p, e),
            keys.product_meta(p, e),
            keys.booking(u, p, e),
            keys.winners(e, p),
            keys.bookings(e),
            keys.product_keys(e),
            keys.catalogue(e),
            keys.journal(e),
            keys.held(e),
            keys.holds(e),
            keys.operations(e),
        ];
        assert_eq!(all[0], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:saleStatus");
        assert_eq!(all[1], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:opening");
        assert_eq!(all[2], "t:product:bbbbbbbbbbbbbbbbbbbbbbbb:{aaaaaaaaaaaaaaaaaaaaaaaa}");
        assert_eq!(all[3], "t:productmeta:bbbbbbbbbbbbbbbbbbbbbbbb:{aaaaaaaaaaaaaaaaaaaaaaaa}");
        assert_eq!(all[4], "t:booking:cccccccccccccccccccccccc:bbbbbbbbbbbbbbbbbbbbbbbb:{aaaaaaaaaaaaaaaaaaaaaaaa}");
        assert_eq!(all[5], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:product:bbbbbbbbbbbbbbbbbbbbbbbb:winners");
        assert_eq!(all[6], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:bookings");
        assert_eq!(all[7], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:productKeys");
        assert_eq!(all[8], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:catalogue");
        assert_eq!(all[9], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:journal");
        assert_eq!(all[10], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:held");
        assert_eq!(all[11], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:holds");
        assert_eq!(all[12], "t:event:{aaaaaaaaaaaaaaaaaaaaaaaa}:operations");
        assert_eq!(keys.booking_owner(&all[4], e), Some((u, p)));
        assert!(all.iter().filter(|key| keys.booking_owner(key, e).is_some()).eq([&all[4]]));
        for key in all {
            let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
            assert_eq!(tag, Some("aaaaaaaaaaaaaaaaaaaaaaaa"), "{key} would leave the event's slot");
        }
    }
}
