//! Purchases at a constant rate, in an open loop: buyers come when they come, whether or not the earlier ones have been
//! served. Latency counts from the moment at which a buyer was to come, so that a service which stalls cannot hide the
//! stall by holding up those who would have measured it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::attempt::Attempt;
use super::crowd::finish;
use super::error::{LoadError, Result};
use super::parallel::in_parallel;
use super::plan::{Plan, Scenario};
use super::progress::Progress;
use super::scene::Scene;

/// Plays so many arrivals a second for so long.
///
/// # Errors
/// When a task breaks off; a purchase that fails is an outcome.
pub async fn steady(scene: &Scene, plan: &Plan, progress: &Progress) -> Result<Vec<Attempt>> {
    let count = plan.attempts();
    let step = Arc::new(progress.step(format!("{} purchases a second", plan.rate_per_s), count));
    let slots = Arc::new(Semaphore::new(plan.connections_max));
    let start = Instant::now();
    let mut due = keep_pace(start, plan.rate_per_s, count)?;
    let (mut tasks, mut attempts) = (JoinSet::new(), Vec::with_capacity(count));
    while let Some(number) = due.recv().await {
        let (buyer_number, product) = pair(plan, number);
        let buyer = scene.buyers[buyer_number].clone();
        let key = format!("{}-{number}", scene.run);
        let request = buyer.purchase_request(&scene.event, &scene.products[product].product_id, &key)?;
        let (step, slots) = (Arc::clone(&step), Arc::clone(&slots));
        let arrived = arrival(number, plan.rate_per_s);
        tasks.spawn(async move {
            let _slot = slots.acquire().await;
            let sent = start.elapsed();
            let outcome = buyer.purchase(request).await.into();
            let answered = start.elapsed();
            step.inc();
            Attempt {
                buyer: buyer_number,
                product,
                key,
                outcome,
                arrived,
                sent,
                answered,
                measured: true,
                asked_again: false,
            }
        });
        while let Some(done) = tasks.try_join_next() {
            attempts.push(done?);
        }
    }
    while let Some(done) = tasks.join_next().await {
        attempts.push(done?);
    }
    finish(step, "");
    Ok(attempts)
}

/// Sells everything before the clock starts: the first buyers take every unit.
///
/// # Errors
/// When a task breaks off.
pub async fn sell_out(scene: &Arc<Scene>, plan: &Plan, progress: &Progress) -> Result<Vec<Attempt>> {
    let (products, count) = (plan.products, plan.products * plan.units as usize);
    let step = Arc::new(progress.step("selling everything first", count));
    let (scene, told) = (Arc::clone(scene), Arc::clone(&step));
    let attempts = in_parallel(count, plan.workers, move |number| {
        let (scene, step) = (Arc::clone(&scene), Arc::clone(&told));
        async move {
            let (buyer, product) = (number / products, number % products);
            let key = format!("{}-first-{number}", scene.run);
            let id = &scene.products[product].product_id;
            let request = scene.buyers[buyer].purchase_request(&scene.event, id, &key)?;
            let outcome = scene.buyers[buyer].purchase(request).await.into();
            step.inc();
            let (arrived, sent, answered) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
            Ok(Attempt { buyer, product, key, outcome, arrived, sent, answered, measured: false, asked_again: false })
        }
    })
    .await?;
    finish(step, "");
    Ok(attempts)
}

/// Who tries what. With stock for everyone no pair comes twice, for a buyer may have a product only once; when all is
/// gone, those try who have nothing.
fn pair(plan: &Plan, number: usize) -> (usize, usize) {
    match plan.scenario {
        Scenario::SoldOut => {
            let owners = plan.units as usize;
            (owners + number % (plan.buyers - owners), number % plan.products)
        }
        // Each round over all buyers moves every one of them on to the next product.
        Scenario::Rush | Scenario::Payment | Scenario::Voucher | Scenario::Steady => {
            let (round, buyer) = (number / plan.buyers, number % plan.buyers);
            (buyer, (buyer + round) % plan.products)
        }
    }
}

fn arrival(number: usize, rate_per_s: u32) -> Duration {
    let nanos = number as u128 * 1_000_000_000 / u128::from(rate_per_s.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Says when each arrival is due. On a thread of its own: the runtime's timer ticks in whole milliseconds, which is as
/// long as a purchase takes.
fn keep_pace(start: Instant, rate_per_s: u32, count: usize) -> Result<mpsc::UnboundedReceiver<usize>> {
    let (tell, due) = mpsc::unbounded_channel();
    let pace = move || {
        for number in 0..count {
            let ahead = arrival(number, rate_per_s).saturating_sub(start.elapsed());
            if !ahead.is_zero() {
                #[expect(clippy::disallowed_methods, reason = "this thread does nothing else")]
                std::thread::sleep(ahead);
            }
            if tell.send(number).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("pace".to_owned()).spawn(pace).map_err(LoadError::Pace)?;
    Ok(due)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_pair_comes_twice_while_stock_lasts() {
        for (buyers, products) in [(100, 10), (10, 100), (40, 40), (99, 101), (1000, 7)] {
            let plan = Plan { scenario: Scenario::Steady, buyers, products, rate_per_s: 100, ..Plan::default() };
            let count = plan.attempts();
            let pairs: HashSet<_> = (0..count).map(|number| pair(&plan, number)).collect();
            assert_eq!(pairs.len(), count, "{buyers} buyers, {products} products");
        }
    }

    #[test]
    fn those_who_have_a_unit_do_not_come_again() {
        let plan = Plan { scenario: Scenario::SoldOut, buyers: 5, products: 3, units: 2, ..Plan::default() };
        assert!(
            (0..100).map(|number| pair(&plan, number)).all(|(buyer, product)| (2..5).contains(&buyer) && product < 3)
        );
    }

    #[tokio::test]
    async fn arrivals_keep_the_pace_and_never_come_early() {
        let start = Instant::now();
        let mut due = keep_pace(start, 1_000, 50).unwrap();
        let mut seen = 0;
        while let Some(number) = due.recv().await {
            assert_eq!(number, seen);
            assert!(start.elapsed() >= arrival(number, 1_000));
            seen += 1;
        }
        assert_eq!((seen, arrival(50, 1_000)), (50, Duration::from_millis(50)));
    }
}
