//! Payment: the buyers hold what they got, and then they pay, cancel, pay too late, or walk away. What comes back is on
//! sale again, and those who were refused come a second time.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep, sleep_until};

use super::actors::Buyer;
use super::answers::PaymentState;
use super::attempt::{Attempt, Outcome};
use super::crowd::finish;
use super::error::Result;
use super::parallel::in_parallel;
use super::plan::Plan;
use super::progress::Progress;
use super::scene::Scene;

/// Seconds in which a reservation is to be paid.
pub const WINDOW_S: u32 = 15;
/// After its window a hold is swept within this time.
const SWEPT_WITHIN: Duration = Duration::from_millis(1_500);
/// Money that is to go back has gone back within this time.
const REFUNDED_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a buyer does with a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Pays at once.
    Pays,
    /// Pays at once, and cancels then.
    PaysAndCancels,
    /// Cancels instead of paying.
    Cancels,
    /// Asks to pay, and pays when the time has passed.
    PaysLate,
    /// Does nothing.
    WalksAway,
}

impl Habit {
    fn random(random: &mut StdRng) -> Self {
        match random.random_range(0..20) {
            0..=9 => Self::Pays,
            10..=11 => Self::PaysAndCancels,
            12..=14 => Self::Cancels,
            15..=17 => Self::PaysLate,
            _ => Self::WalksAway,
        }
    }

    const fn pays(self) -> bool {
        matches!(self, Self::Pays | Self::PaysAndCancels | Self::PaysLate)
    }
}

/// A reservation, what its buyer did with it, and what became of the money.
#[derive(Debug, Clone)]
pub struct Purse {
    /// The reservation.
    pub reservation: String,
    /// What its buyer did.
    pub habit: Habit,
    /// What the service refused meanwhile, if it did.
    pub problem: Option<String>,
    /// What the service says of the money in the end; none of a reservation that nobody paid for.
    pub money: Option<PaymentState>,
    /// Where it is to be paid, of somebody who does that later.
    page: Option<String>,
    buyer: usize,
    product: usize,
}

/// Plays what comes after the first rush, until the last hold has run out. New purchases are added to the attempts.
///
/// # Errors
/// When a task breaks off; what the service refuses is in the purses.
pub(super) async fn settle_up(
    scene: &Arc<Scene>,
    plan: &Plan,
    attempts: &mut Vec<Attempt>,
    progress: &Progress,
) -> Result<Vec<Purse>> {
    let over = Instant::now() + Duration::from_secs(u64::from(WINDOW_S)) + SWEPT_WITHIN;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut purses = opened(attempts, || Habit::random(&mut random));
    let step = format!("{} buyers pay, cancel, wait or walk away", purses.len());
    // Those who pay late come when everything has run out, together with those who were refused before.
    let (late, prompt): (Vec<_>, Vec<_>) = purses.drain(..).partition(|purse| purse.habit == Habit::PaysLate);
    let asked = act(scene, plan, step, [prompt, late].concat(), Act::AtOnce, progress).await?;
    let (late, mut purses): (Vec<_>, Vec<_>) = asked.into_iter().partition(|purse| purse.habit == Habit::PaysLate);
    let wait = progress.step("the other holds run out", 1);
    sleep_until(over).await;
    wait.done("");
    let step = format!("{} buyers pay too late", late.len());
    let (late, second) =
        tokio::join!(act(scene, plan, step, late, Act::Late, progress), come_again(scene, plan, attempts, progress));
    purses.extend(late?);
    let second = second?;
    let got = opened(&second, || Habit::Pays);
    attempts.extend(second);
    let step = format!("{} buyers of the second chance pay", got.len());
    purses.extend(act(scene, plan, step, got, Act::AtOnce, progress).await?);
    Ok(purses)
}

/// What becomes of the money, once the sale has ended: asked until nothing is due any more, or for as long as that may take.
pub(super) async fn count_money(
    scene: &Arc<Scene>,
    plan: &Plan,
    purses: Vec<Purse>,
    progress: &Progress,
) -> Result<Vec<Purse>> {
    let step = Arc::new(progress.step("counting the money", purses.len()));
    let end = Instant::now() + REFUNDED_WITHIN;
    let (scene, purses, told): (_, Arc<[Purse]>, _) = (Arc::clone(scene), purses.into(), Arc::clone(&step));
    let counted = in_parallel(purses.len(), plan.workers, move |number| {
        let (scene, mut purse, step) = (Arc::clone(&scene), purses[number].clone(), Arc::clone(&told));
        async move {
            if purse.habit.pays() {
                let (buyer, product) = (&scene.buyers[purse.buyer], &scene.products[purse.product].product_id);
                loop {
                    match buyer.payment(&scene.event, product).await {
                        Ok(money) if money.settled || Instant::now() >= end => {
                            purse.money = Some(money);
                            break;
                        }
                        Err(error) if Instant::now() >= end => {
                            purse.problem.get_or_insert(error.to_string());
                            break;
                        }
                        Ok(_) | Err(_) => sleep(LOOK_EVERY).await,
                    }
                }
            }
            step.inc();
            Ok(purse)
        }
    })
    .await?;
    finish(step, "");
    Ok(counted)
}

fn opened(attempts: &[Attempt], mut habit: impl FnMut() -> Habit) -> Vec<Purse> {
    let purse = |attempt: &Attempt| match &attempt.outcome {
        Outcome::Accepted { reservation_id, .. } => Some((reservation_id.clone(), attempt.buyer, attempt.product)),
        _ => None,
    };
    let accepted = attempts.iter().filter_map(purse);
    accepted
        .map(|(reservation, buyer, product)| Purse {
            reservation,
            habit: habit(),
            problem: None,
            money: None,
            page: None,
            buyer,
            product,
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
enum Act {
    AtOnce,
    Late,
}

/// Everybody does what they do, a bounded number of them at once.
async fn act(
    scene: &Arc<Scene>,
    plan: &Plan,
    step: String,
    purses: Vec<Purse>,
    act: Act,
    progress: &Progress,
) -> Result<Vec<Purse>> {
    let step = Arc::new(progress.step(step, purses.len()));
    let (scene, purses, told): (_, Arc<[Purse]>, _) = (Arc::clone(scene), purses.into(), Arc::clone(&step));
    let done = in_parallel(purses.len(), plan.workers, move |number| {
        let (scene, mut purse, step) = (Arc::clone(&scene), purses[number].clone(), Arc::clone(&told));
        async move {
            let (buyer, product) = (&scene.buyers[purse.buyer], &scene.products[purse.product].product_id);
            let done = match act {
                Act::AtOnce => at_once(buyer, &scene.event, product, purse.habit).await,
                Act::Late => late(buyer, purse.page.as_deref()).await,
            };
            match done {
                Ok(page) => purse.page = page,
                Err(error) => {
                    purse.problem.get_or_insert(error.to_string());
                }
            }
            step.inc();
            Ok(purse)
        }
    })
    .await?;
    finish(step, "");
    Ok(done)
}

/// Returns where it is to be paid, if that comes later.
async fn at_once(buyer: &Buyer, event: &str, product: &str, habit: Habit) -> Result<Option<String>> {
    match habit {
        Habit::Pays => {
            let page = buyer.ask_to_pay(event, product).await?;
            buyer.press_pay(&page).await?;
        }
        Habit::PaysAndCancels => {
            let page = buyer.ask_to_pay(event, product).await?;
            buyer.press_pay(&page).await?;
            buyer.cancel(event, product).await?;
        }
        Habit::Cancels => buyer.cancel(event, product).await?,
        // The page is open; the button is pressed when it is too late.
        Habit::PaysLate => return buyer.ask_to_pay(event, product).await.map(Some),
        Habit::WalksAway => {}
    }
    Ok(None)
}

/// Who could not even ask has no page.
async fn late(buyer: &Buyer, page: Option<&str>) -> Result<Option<String>> {
    if let Some(page) = page {
        buyer.press_pay(page).await?;
    }
    Ok(None)
}

/// Those who were refused try the same product once more.
async fn come_again(
    scene: &Arc<Scene>,
    plan: &Plan,
    attempts: &[Attempt],
    progress: &Progress,
) -> Result<Vec<Attempt>> {
    let refused: Arc<[Attempt]> =
        attempts.iter().filter(|attempt| attempt.outcome == Outcome::SoldOut).cloned().collect();
    let step = Arc::new(progress.step(format!("{} buyers come again", refused.len()), refused.len()));
    let (scene, told) = (Arc::clone(scene), Arc::clone(&step));
    let second = in_parallel(refused.len(), plan.workers, move |number| {
        let (scene, refused, step) = (Arc::clone(&scene), Arc::clone(&refused), Arc::clone(&told));
        async move {
            let first = &refused[number];
            let key = format!("{}-again", first.key);
            let buyer = &scene.buyers[first.buyer];
            let request = buyer.purchase_request(&scene.event, &scene.products[first.product].product_id, &key)?;
            let outcome = buyer.purchase(request).await.into();
            step.inc();
            Ok(Attempt { key, outcome, measured: false, asked_again: false, ..first.clone() })
        }
    })
    .await?;
    finish(step, "");
    Ok(second)
}
