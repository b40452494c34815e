//! The proof that the simulator sees: eleven mistakes that systems of this kind have made, each of them planted, and each
//! of them found.

use orbit::store::live::scripts::SOURCES;

use crate::seeds::{Found, SEEDS, play_seeds};
use crate::world::Bug;

fn found(bug: Bug) -> Found {
    if let Bug::Script(changes) = bug {
        for (from, _) in changes {
            let places: usize = SOURCES.iter().map(|(_, text)| text.matches(from).count()).sum();
            assert_eq!(places, 1, "the scripts have changed: this is not in one place any more:\n{from}");
        }
    }
    match play_seeds(0..SEEDS, Some(bug)) {
        Ok(_) => panic!("{bug:?} was not found"),
        Err(found) => found,
    }
}

#[test]
fn stock_that_is_taken_before_the_duplicate_check_is_found() {
    const TAKE: &str = "redis.call('HINCRBY', KEYS[2], 'stock', text(-quantity))\n";
    let found = found(Bug::Script(&[
        (TAKE, ""),
        (
            "local over = booking[5] ==",
            "redis.call('HINCRBY', KEYS[2], 'stock', '-' .. ARGV[5])\nlocal over = booking[5] ==",
        ),
    ]));
    // Stock below zero is no number that a script would take, and that may be seen first.
    assert!(["invariant 4", "invariant 9"].iter().any(|seen| found.what().starts_with(seen)), "{}", found.what());
}

#[test]
fn a_removal_that_does_not_compare_the_status_is_found() {
    found(Bug::Script(&[("if status ~= ARGV[1] then\n  return {'REFUSED', status}\nend\nif ARGV[2]", "if ARGV[2]")]));
}

#[test]
fn a_journal_that_is_trimmed_before_its_orders_are_confirmed_is_found() {
    let found = found(Bug::Script(&[("if pending[1] > 0 then", "if false then")]));
    assert!(found.what().starts_with("invariant 8"), "{}", found.what());
}

#[test]
fn upserts_without_a_unique_index_are_found() {
    let found = found(Bug::NoUniqueIndex);
    assert!(found.what().starts_with("invariant 7"), "{}", found.what());
}

#[test]
fn a_status_that_is_flipped_before_the_inventory_is_there_is_found() {
    const REGISTERED: &str = "redis.call('SADD', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8])";
    const FLIPPED: &str =
        "redis.call('SADD', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]) redis.call('SET', KEYS[1], 'LIVE')";
    let found = found(Bug::Script(&[(REGISTERED, FLIPPED)]));
    assert!(found.what().starts_with("invariant 1"), "{}", found.what());
}

#[test]
fn a_release_that_does_not_compare_the_state_is_found() {
    let found = found(Bug::Script(&[
        ("elseif has[5] == 'CANCELLED' or has[5] == 'EXPIRED' then", "elseif false then"),
        ("local units = quantity - returned\n", "local units = quantity\n"),
        ("or units > quantity - returned then", "then"),
        ("text(returned + units)", "text(units)"),
    ]));
    assert!(found.what().starts_with("invariant 4"), "{}", found.what());
}

#[test]
fn a_sweep_that_does_not_look_whether_it_was_paid_meanwhile_is_found() {
    const DUE: &str = "elseif only_due and not (unpaid and expires and expires <= now) then";
    let found = found(Bug::Script(&[(DUE, "elseif false then")]));
    assert!(found.what().starts_with("invariant 6"), "{}", found.what());
}

#[test]
fn a_late_payment_that_is_confirmed_without_taking_units_is_found() {
    let found = found(Bug::Script(&[("  redis.call('HINCRBY', KEYS[2], 'stock', text(-paid))\n", "")]));
    assert!(found.what().starts_with("invariant 4"), "{}", found.what());
}

#[test]
fn a_refund_that_is_repeated_as_another_one_is_found() {
    let found = found(Bug::RefundsRepeated);
    assert!(found.what().starts_with("invariant 11"), "{}", found.what());
}

#[test]
fn a_failure_that_is_honoured_after_a_success_is_found() {
    let found = found(Bug::FailureAfterSuccess);
    assert!(found.what().starts_with("invariant 12"), "{}", found.what());
}

#[test]
fn a_lost_callback_that_nobody_asks_about_is_found() {
    let found = found(Bug::NeverAsked);
    assert!(found.what().starts_with("invariant 11"), "{}", found.what());
}
