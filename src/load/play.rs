//! A whole run: set the stage, open, sell, end, check, report.

use std::sync::Arc;
use std::time::Duration;

use super::again::ask_again;
use super::attempt::{Attempt, Outcome};
use super::client::{Api, Credentials};
use super::crowd;
use super::error::Result;
use super::invariants::{Evidence, check};
use super::plan::{Plan, Scenario};
use super::progress::Progress;
use super::report::{Measured, Report};
use super::scene::Scene;
use super::voucher::Stock;
use super::{payment, rush, steady};

/// Keys that the live store still has of an event, besides its stopped status.
pub type Leftover = Result<Vec<String>, String>;

/// How long keys may take to go after the end was answered.
const CLEANED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A run, played.
#[derive(Debug)]
pub struct Played {
    /// What came of it.
    pub report: Report,
    /// The stage, still set: its accounts can be used.
    pub scene: Arc<Scene>,
}

/// Plays a run. `leftover` looks into the live store for keys of an event, for whoever can; others answer None.
///
/// # Errors
/// When the plan cannot be played, or the service refuses a preparation. What goes wrong with purchases is in the report.
pub async fn play(
    api: &Api,
    admin: &Credentials,
    plan: &Plan,
    progress: &Progress,
    leftover: impl AsyncFn(&str) -> Option<Leftover>,
) -> Result<Played> {
    plan.validate()?;
    let mut scene = Scene::set(api, admin, plan, progress).await?;
    let open = scene.open(plan, progress).await?;
    let stock = scene.stock.take();
    let scene = Arc::new(scene);

    let (mut attempts, before) = sell(&scene, plan, progress).await?;
    ask_again(&scene, &mut attempts, plan.workers, progress).await?;
    attempts.extend(before);
    let mut purses = None;
    if plan.scenario == Scenario::Payment {
        purses = Some(payment::settle_up(&scene, plan, &mut attempts, progress).await?);
    }
    let mut looks = Vec::new();
    if plan.scenario == Scenario::Voucher {
        looks = Stock::look(&scene, plan, &attempts, progress).await?;
    }
    let settle = scene.end(progress).await?;
    // Before the orders are read, so that an order made by it would be found.
    let late = late_purchase(&scene).await?;
    if let Some(open) = purses.take() {
        purses = Some(payment::count_money(&scene, plan, open, progress).await?);
    }
    let codes = match stock {
        Some(stock) => Some(stock.count(looks, progress).await?),
        None => None,
    };
    let leftover = wait_for_cleaning(&scene.event, leftover).await;

    let step = progress.step("reading the orders and checking", 1);
    let orders = scene.seller.orders(&scene.event).await?;
    let analytics = scene.seller.analytics(&scene.event).await?;
    let invariants = check(&Evidence {
        products: &scene.products,
        units_each: scene.units_each,
        buyer_ids: scene.buyers.iter().map(super::actors::Buyer::user_id).collect(),
        attempts: &attempts,
        purses: purses.as_deref(),
        codes: codes.as_ref(),
        orders: &orders,
        analytics: &analytics,
        late: &late,
        leftover: leftover.as_ref(),
        errors_max: plan.errors_max,
    });
    step.done("");
    let measured = Measured { open, settle, orders: orders.len() };
    Ok(Played { report: Report::new(plan, &attempts, measured, invariants), scene })
}

/// The sale itself: what was measured, and what went before.
async fn sell(scene: &Arc<Scene>, plan: &Plan, progress: &Progress) -> Result<(Vec<Attempt>, Vec<Attempt>)> {
    let before = match plan.scenario {
        Scenario::SoldOut => steady::sell_out(scene, plan, progress).await?,
        Scenario::Rush | Scenario::Payment | Scenario::Voucher | Scenario::Steady => Vec::new(),
    };
    crowd::come_in(&scene.buyers, plan.connections_max.min(scene.buyers.len()), progress).await?;
    let attempts = match plan.scenario {
        Scenario::Rush | Scenario::Payment | Scenario::Voucher => rush::rush(scene, plan, progress).await?,
        Scenario::Steady | Scenario::SoldOut => steady::steady(scene, plan, progress).await?,
    };
    Ok((attempts, before))
}

/// One buyer comes after the end.
async fn late_purchase(scene: &Scene) -> Result<Outcome> {
    let (Some(buyer), Some(product)) = (scene.buyers.last(), scene.products.last()) else {
        return Ok(Outcome::NotActive);
    };
    let request = buyer.purchase_request(&scene.event, &product.product_id, &format!("{}-late", scene.run))?;
    Ok(buyer.purchase(request).await.into())
}

/// Looks until nothing is left, or for as long as that may take.
async fn wait_for_cleaning(event: &str, look: impl AsyncFn(&str) -> Option<Leftover>) -> Option<Leftover> {
    let deadline = tokio::time::Instant::now() + CLEANED_WITHIN;
    loop {
        let found = look(event).await?;
        let clean = found.as_ref().is_ok_and(Vec::is_empty);
        if clean || tokio::time::Instant::now() >= deadline {
            return Some(found);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
