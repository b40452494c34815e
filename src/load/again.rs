//! Asking again. A purchase whose answer was lost, or was 503, may have been made; asking with the same idempotency key
//! tells, and never buys a second unit.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Attempt, Outcome};
use super::crowd::finish;
use super::error::Result;
use super::parallel::in_parallel;
use super::progress::Progress;
use super::scene::Scene;

const TRIES: u32 = 5;
/// Before the first of them; each next pause is three times as long.
const PAUSE: Duration = Duration::from_millis(40);

/// Asks for every purchase whose outcome is unknown, while the sale is still open.
///
/// # Errors
/// When a task breaks off.
pub(super) async fn ask_again(
    scene: &Arc<Scene>,
    attempts: &mut [Attempt],
    workers: usize,
    progress: &Progress,
) -> Result<()> {
    let open: Vec<usize> = (0..attempts.len()).filter(|index| attempts[*index].outcome.is_unknown()).collect();
    if open.is_empty() {
        return Ok(());
    }
    let step = progress.step(format!("asking again for {} purchases", open.len()), open.len());
    let step = Arc::new(step);
    let questions: Arc<[Attempt]> = open.iter().map(|index| attempts[*index].clone()).collect();
    let (scene, told) = (Arc::clone(scene), Arc::clone(&step));
    let answers = in_parallel(open.len(), workers, move |number| {
        let (scene, questions, step) = (Arc::clone(&scene), Arc::clone(&questions), Arc::clone(&told));
        async move {
            let outcome = ask(&scene, &questions[number]).await?;
            step.inc();
            Ok(outcome)
        }
    })
    .await?;
    for (index, outcome) in open.iter().zip(answers) {
        attempts[*index].outcome = outcome;
        attempts[*index].asked_again = true;
    }
    finish(step, "");
    Ok(())
}

async fn ask(scene: &Scene, attempt: &Attempt) -> Result<Outcome> {
    let mut outcome = attempt.outcome.clone();
    for number in 0..TRIES {
        tokio::time::sleep(PAUSE * 3_u32.pow(number)).await;
        let buyer = &scene.buyers[attempt.buyer];
        let product = &scene.products[attempt.product].product_id;
        let request = buyer.purchase_request(&scene.event, product, &attempt.key)?;
        outcome = buyer.purchase(request).await.into();
        if !outcome.is_unknown() {
            break;
        }
    }
    // "Already booked" to the first buyer who asked can only mean that very purchase, whose reservation stays unnamed.
    Ok(match outcome {
        Outcome::AlreadyBooked => Outcome::Failed { code: "accepted_unseen".to_owned(), unknown: true },
        other => other,
    })
}
