//! The proof that the Redis in memory is honest: random commands and scripts run on it and on a real server, and answers
//! and contents are compared. Prints the seed and what was run when they differ.

mod compare;
mod oddities;
mod pair;
mod plain;
mod production;

use rand::SeedableRng;
use rand::rngs::StdRng;

use pair::Pair;

/// Seeds of each kind of sequence, and steps in each of them.
const SEEDS: u64 = 50;
const STEPS: usize = 150;

#[tokio::test]
async fn plain_commands_do_what_they_do_in_redis() {
    let mut pair = Pair::start().await;
    for seed in 0..SEEDS {
        pair.begin(format!("plain commands, seed {seed}")).await;
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..STEPS {
            pair.agree(plain::command(&mut random)).await;
        }
        pair.agree_on_contents().await;
    }
}

#[tokio::test]
async fn production_scripts_do_what_they_do_in_redis() {
    let mut pair = Pair::start().await;
    for seed in 0..SEEDS {
        pair.begin(format!("production scripts, seed {seed}")).await;
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..STEPS {
            pair.agree(production::command(&mut random)).await;
        }
        pair.agree_on_contents().await;
    }
}
