//! Schedules that have broken an invariant once, as short as they came out.

use crate::world::Action::{Buy, ClockSet, Control, Kill, RedisRestarts};
use crate::world::{Action, Control::Open, Machine, Step, play};

fn buy(buyers: usize, product: usize, quantity: u32, keyed: bool, seed: u64) -> Action {
    Buy { buyers, product, quantity, keyed, seed }
}

fn holds(seed: u64, schedule: Vec<(Action, u64)>) {
    let steps: Vec<Step> = schedule.into_iter().map(|(action, then_ms)| Step { action, then_ms }).collect();
    play(seed, 2, &steps, None).unwrap_or_else(|failure| panic!("{}\n{}", failure.what, failure.history.join("\n")));
}

#[test]
fn a_late_payment_that_is_told_again_while_the_sale_is_settled_was_not_in_vain() {
    holds(
        1_629,
        vec![
            (Control { process: 0, control: Open }, 4),
            (Kill { process: 1, for_ms: 2_543 }, 136),
            (buy(5, 0, 1, true, 5_081_192_917_868_995_003), 113),
            (RedisRestarts { lost_ms: 1_945 }, 2),
            (buy(3, 0, 1, false, 16_486_721_500_910_293_082), 110),
            (Kill { process: 0, for_ms: 2_286 }, 157),
            (ClockSet { machine: Machine::Database, by_ms: -7_933 }, 193),
            (buy(5, 2, 1, false, 10_102_139_631_069_362_927), 755),
            (buy(6, 0, 1, true, 3_730_843_441_593_154_202), 129),
            (buy(3, 2, 1, true, 11_970_271_909_609_448_058), 45),
        ],
    );
}

#[test]
fn orders_that_are_given_back_find_the_units_that_older_ones_have_returned() {
    holds(
        1_912,
        vec![
            (Control { process: 1, control: Open }, 234),
            (buy(2, 1, 2, true, 13_232_585_180_478_459_273), 177),
            (Kill { process: 1, for_ms: 2_989 }, 657),
            (buy(4, 2, 1, false, 12_545_333_114_391_373_405), 3),
            (buy(1, 1, 2, true, 16_379_743_259_722_418_170), 83),
            (buy(2, 1, 1, true, 2_356_427_756_007_290_013), 101),
            (buy(4, 0, 2, false, 8_165_120_947_395_127_123), 138),
            (buy(5, 2, 1, true, 6_555_775_104_378_651_934), 64),
            (RedisRestarts { lost_ms: 694 }, 88),
        ],
    );
}
