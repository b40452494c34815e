//! The proof that the Redis in memory is honest: random commands and scripts run on it and on a real server, and answers
//! and contents are compared. Prints the seed and what was run when they differ.

mod compare;
mod oddities;
mod pair;
mod plain;
mod production;
mod vouchers;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::redis::Bytes;
use pair::Pair;

/// Seeds of each kind of sequence, and steps in each of them.
const SEEDS: u64 = 50;
const STEPS: usize = 150;

/// Runs random commands on both, and compares what is there afterwards.
async fn compared(what: &str, command: fn(&mut StdRng) -> Vec<Bytes>) {
    let mut pair = Pair::start().await;
    for seed in 0..SEEDS {
        pair.begin(format!("{what}, seed {seed}")).await;
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..STEPS {
            pair.agree(command(&mut random)).await;
        }
        pair.agree_on_contents().await;
    }
}

#[tokio::test]
async fn plain_commands_do_what_they_do_in_redis() {
    compared("plain commands", plain::command).await;
}

#[tokio::test]
async fn production_scripts_do_what_they_do_in_redis() {
    compared("production scripts", production::command).await;
}

#[tokio::test]
async fn scripts_of_vouchers_do_what_they_do_in_redis() {
    compared("scripts of vouchers", vouchers::command).await;
}
