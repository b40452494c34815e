//! The proof that the simulator sees: five mistakes that systems of this kind have made, each of them planted, and each
//! of them found.

use orbit::store::live::scripts::SOURCES;

use crate::seeds::{Found, SEEDS, play_seeds};
use crate::world::Bug;

fn found(bug: Bug) -> Found {
    if let Bug::Script { from, .. } = bug {
        let places: usize = SOURCES.iter().map(|(_, text)| text.matches(from).count()).sum();
        assert_eq!(places, 1, "the scripts have changed: this is not in one place any more:\n{from}");
    }
    match play_seeds(0..SEEDS, Some(bug)) {
        Ok(_) => panic!("{bug:?} was not found"),
        Err(found) => {
            eprintln!("{bug:?}: seed {} {}", found.seed, found.what());
            found
        }
    }
}

#[test]
fn stock_that_is_taken_before_the_duplicate_check_is_found() {
    let found = found(Bug::Script {
        from: "if booking[1] then\n  return {'ALREADY_RESERVED'",
        to: "redis.call('HINCRBY', KEYS[2], 'stock', '-' .. ARGV[5])\nif booking[1] then\n  return {'ALREADY_RESERVED'",
    });
    assert!(found.what().starts_with("invariant 4"), "{}", found.what());
}

#[test]
fn a_removal_that_does_not_compare_the_status_is_found() {
    found(Bug::Script {
        from: "if status ~= ARGV[1] then\n  return {'REFUSED', status}\nend\nif ARGV[2]",
        to: "if ARGV[2]",
    });
}

#[test]
fn a_journal_that_is_trimmed_before_its_orders_are_confirmed_is_found() {
    let found = found(Bug::Script { from: "if pending[1] > 0 then", to: "if false then" });
    assert!(found.what().starts_with("invariant 8"), "{}", found.what());
}

#[test]
fn upserts_without_a_unique_index_are_found() {
    let found = found(Bug::NoUniqueIndex);
    assert!(found.what().starts_with("invariant 7"), "{}", found.what());
}

#[test]
fn a_status_that_is_flipped_before_the_inventory_is_there_is_found() {
    let found = found(Bug::Script {
        from: "redis.call('SADD', KEYS[3], KEYS[4], KEYS[5], KEYS[6])",
        to: "redis.call('SADD', KEYS[3], KEYS[4], KEYS[5], KEYS[6]) redis.call('SET', KEYS[1], 'LIVE')",
    });
    assert!(found.what().starts_with("invariant 1"), "{}", found.what());
}
