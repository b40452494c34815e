//! The rush: every buyer tries one random product, all at the same moment.
//!
//! Two times are taken of each purchase. *From sending to answer* is what the report calls latency: a task notes the
//! time when it gets to send. *From the common start to the answer* also has the wait of a task for its turn in this
//! very process, which thousands of tasks on a few cores do have, and is reported beside it.

use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{Barrier, Semaphore, watch};
use tokio::task::JoinSet;

use super::attempt::Attempt;
use super::crowd::finish;
use super::error::Result;
use super::plan::Plan;
use super::progress::Progress;
use super::scene::Scene;

/// Which product each buyer tries: the same for the same seed.
fn choices(plan: &Plan) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(plan.seed);
    (0..plan.buyers).map(|_| random.random_range(0..plan.products)).collect()
}

/// Plays the rush.
///
/// # Errors
/// When a task breaks off; a purchase that fails is an outcome.
pub async fn rush(scene: &Scene, plan: &Plan, progress: &Progress) -> Result<Vec<Attempt>> {
    let step = Arc::new(progress.step("the rush", plan.buyers));
    let slots = Arc::new(Semaphore::new(plan.connections_max));
    let ready = Arc::new(Barrier::new(plan.buyers + 1));
    let (start, started) = watch::channel(None::<Instant>);
    let mut tasks = JoinSet::new();
    for (number, product) in choices(plan).into_iter().enumerate() {
        let buyer = scene.buyers[number].clone();
        let key = format!("{}-{number}", scene.run);
        let request = buyer.purchase_request(&scene.event, &scene.products[product].product_id, &key)?;
        let (step, slots, ready) = (Arc::clone(&step), Arc::clone(&slots), Arc::clone(&ready));
        let mut started = started.clone();
        tasks.spawn(async move {
            ready.wait().await;
            let start = started.wait_for(Option::is_some).await.ok().and_then(|time| *time)?;
            // Closed by nobody; and without a slot there would only be one connection too many.
            let _slot = slots.acquire().await;
            let sent = start.elapsed();
            let outcome = buyer.purchase(request).await.into();
            let answered = start.elapsed();
            step.inc();
            let arrived = std::time::Duration::ZERO;
            Some(Attempt {
                buyer: number,
                product,
                key,
                outcome,
                arrived,
                sent,
                answered,
                measured: true,
                asked_again: false,
            })
        });
    }
    ready.wait().await;
    // The receivers are alive: each task holds one.
    let _ = start.send(Some(Instant::now()));
    let mut attempts = Vec::with_capacity(plan.buyers);
    while let Some(attempt) = tasks.join_next().await {
        attempts.extend(attempt?);
    }
    attempts.sort_unstable_by_key(|attempt| attempt.buyer);
    finish(step, "");
    Ok(attempts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_who_tries_what() {
        let plan = |seed| Plan { seed, ..Plan::default() };
        let of_seven = choices(&plan(7));
        assert_eq!(of_seven.len(), 5_000);
        assert!(of_seven.iter().all(|product| *product < 100));
        assert_eq!(of_seven, choices(&plan(7)));
        assert_ne!(of_seven, choices(&plan(8)));
    }
}
