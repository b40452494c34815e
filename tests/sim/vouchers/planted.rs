//! The proof that this simulator sees: mistakes that systems of this kind have made, each planted, and each found.

use super::{Bug, play_seeds};
use crate::seeds::SEEDS;

fn found(bug: Bug) -> String {
    play_seeds(0..SEEDS, Some(bug)).expect_err("it was not found").what
}

#[test]
fn a_placement_that_ignores_revisions_is_found() {
    found(Bug::Script(&[("if placed and revision < placed then", "if false then")]));
}

#[test]
fn a_placement_that_leaves_a_unit_in_the_pool_before_is_found() {
    const MOVED: &str =
        "local moved = before ~= '' and (not belongs or before ~= pool) and redis.call('ZREM', before, member) == 1";
    let what = found(Bug::Script(&[(MOVED, "local moved = false")]));
    assert!(what.contains("pool"), "{what}");
}

#[test]
fn an_assignment_that_does_not_look_whether_the_unit_is_to_be_had_is_found() {
    found(Bug::AssignmentIsNotGuarded);
}

#[test]
fn a_release_that_does_not_compare_the_status_sells_a_code_that_was_seen_and_is_found() {
    let what = found(Bug::ReleaseDoesNotCompare);
    assert!(what.contains("was shown"), "{what}");
}

#[test]
fn a_release_that_nobody_places_after_a_crash_is_found() {
    let what = found(Bug::ReleaseIsNotMarked);
    assert!(what.contains("should have"), "{what}");
}

#[test]
fn a_unit_that_is_taken_without_a_claim_is_found() {
    const CLAIM: &str =
        "redis.call('HSET', KEYS[1], ARGV[2 + item], unit.member .. ' ' .. score .. ' ' .. now .. ' ' .. unit.phase)";
    let what = found(Bug::Script(&[(CLAIM, "")]));
    assert!(what.contains("should have"), "{what}");
}
