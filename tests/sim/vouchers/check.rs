//! What must hold of vouchers: always, and when everything has come to its end.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use orbit::domain::ids::{ClientId, VoucherProductId};
use orbit::domain::voucher::{Pool, Unit, UnitStatus, VoucherOrderStatus};

use super::world::{CLIENTS, World, id, worth};
use crate::redis::{Redis, Reply};

/// Members of a pool with their scores.
fn members(redis: &mut Redis, pool: &str) -> Vec<(String, String)> {
    let words = ["ZRANGEBYSCORE", pool, "-inf", "+inf", "WITHSCORES"].map(|word| word.as_bytes().to_vec());
    let Reply::Array(items) = redis.execute(&words) else { return Vec::new() };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    items.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

/// Every pool that there can be, and what is in it.
fn pools(world: &World) -> BTreeMap<String, Vec<(String, String)>> {
    let vendors = world.books.lock().unwrap().product.vendors.clone();
    let mut redis = world.redis.lock().unwrap();
    let mut pools = BTreeMap::new();
    for vendor in vendors {
        let clients = (0..CLIENTS).map(|number| Some(ClientId::from_bytes(id(10 + u8::try_from(number).unwrap()))));
        for client in clients.chain([None]) {
            let pool = Pool { product: VoucherProductId::from_bytes(id(1)), denomination: worth(), vendor, client };
            let key = world.live.keys().pool(&pool);
            let found = members(&mut redis, &key);
            pools.insert(key, found);
        }
    }
    pools
}

/// No unit is in two pools.
pub fn always(world: &World) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (pool, members) in pools(world) {
        for (member, _) in members {
            if !seen.insert(member.clone()) {
                return Err(format!("{member} is in {pool} and in another pool"));
            }
        }
    }
    Ok(())
}

/// Pools, claims, units and orders are one story.
pub async fn in_the_end(world: &World, now: DateTime<Utc>) -> Result<(), String> {
    let product = VoucherProductId::from_bytes(id(1));
    let (claims, _) = world.live.open_claims(product).await.map_err(|error| error.to_string())?;
    if let Some(claim) = claims.first() {
        return Err(format!("the claim of {} on unit {} is open still", claim.item, claim.unit));
    }
    let pools = pools(world);
    let books = world.books.lock().unwrap();
    let units: Vec<&Unit> = books.units.values().map(|stored| &stored.unit).collect();
    let from = now + TimeDelta::days(30);
    let mut wanted: BTreeMap<String, Vec<(String, String)>> =
        pools.keys().map(|key| (key.clone(), Vec::new())).collect();
    for unit in &units {
        if let Some(pool) = unit.pool(from) {
            let entry = (unit.id.member(), unit.score().to_string());
            wanted.entry(world.live.keys().pool(&pool)).or_default().push(entry);
        }
    }
    for (pool, members) in &mut wanted {
        let mut found = pools.get(pool).cloned().unwrap_or_default();
        members.sort();
        found.sort();
        // What has become too old to be sold while this was played goes with the next pump.
        found.retain(|entry| members.contains(entry) || !too_old(&units, &entry.0, now));
        if found != *members {
            return Err(format!("{pool} has {found:?} and should have {members:?}"));
        }
    }
    owners(&units, books.orders.iter().map(|kept| &kept.order))
}

fn too_old(units: &[&Unit], member: &str, now: DateTime<Utc>) -> bool {
    let unit = units.iter().find(|unit| unit.id.member() == member);
    unit.is_some_and(|unit| unit.status == UnitStatus::Available && unit.pool(now + TimeDelta::days(30)).is_none())
}

fn owners<'a>(
    units: &[&Unit],
    orders: impl Iterator<Item = &'a orbit::domain::voucher::VoucherOrder>,
) -> Result<(), String> {
    let mut items = BTreeSet::new();
    for order in orders {
        if order.status == VoucherOrderStatus::Pending {
            return Err(format!("order {} is pending still", order.reference));
        }
        if order.status != VoucherOrderStatus::Cancelled {
            items.extend(order.all_items());
        }
    }
    let mut had: BTreeMap<&str, usize> = BTreeMap::new();
    for unit in units {
        let Some(item) = unit.item.as_deref() else { continue };
        if unit.status == UnitStatus::Revoked {
            continue;
        }
        if !items.contains(item) {
            return Err(format!("unit {} is {} for {item}, which no order wants", unit.id, unit.status.as_str()));
        }
        *had.entry(item).or_default() += 1;
    }
    match items.iter().find(|item| had.get(item.as_str()) != Some(&1)) {
        Some(item) => Err(format!("item {item} has {:?} units", had.get(item.as_str()))),
        None => Ok(()),
    }
}
