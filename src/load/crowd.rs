//! The buyers, before the sale: they sign up, and come to the page.

use std::sync::Arc;

use super::actors::Buyer;
use super::client::{Api, Credentials};
use super::error::Result;
use super::parallel::in_parallel;
use super::progress::Progress;

/// The address of the buyer of this number. A run has a name of its own, so that runs never share accounts.
fn buyer_email(run: &str, number: usize) -> String {
    format!("buyer-{run}-{}@load.example", number + 1)
}

/// The account of the buyer of this number.
#[must_use]
pub fn credentials(run: &str, password: &str, number: usize) -> Credentials {
    Credentials { email: buyer_email(run, number), password: password.to_owned() }
}

/// Signs up so many buyers; they keep their sessions.
///
/// # Errors
/// When the service refuses one.
pub async fn sign_up(
    api: &Api,
    run: &str,
    password: &str,
    count: usize,
    workers: usize,
    progress: &Progress,
) -> Result<Vec<Buyer>> {
    let step = Arc::new(progress.step(format!("signing up {count} buyers"), count));
    let shared = (api.clone(), run.to_owned(), password.to_owned(), Arc::clone(&step));
    let buyers = in_parallel(count, workers, move |number| {
        let (api, run, password, step) = shared.clone();
        async move {
            let buyer = Buyer::sign_up(&api, &credentials(&run, &password, number)).await?;
            step.inc();
            Ok(buyer)
        }
    })
    .await?;
    finish(step, "");
    Ok(buyers)
}

/// Every buyer comes to the page: sessions are checked, and connections are open before the sale, as those of people
/// who wait for it would be. What is measured afterwards is the sale, not the opening of connections.
///
/// # Errors
/// When a session is not good, or the service does not answer.
pub async fn come_in(buyers: &Arc<[Buyer]>, connections_max: usize, progress: &Progress) -> Result<()> {
    let count = buyers.len();
    let step = Arc::new(progress.step("buyers come to the page", count));
    let shared = (Arc::clone(buyers), Arc::clone(&step));
    in_parallel(count, connections_max, move |number| {
        let (buyers, step) = shared.clone();
        async move {
            buyers[number].check_session().await?;
            step.inc();
            Ok(())
        }
    })
    .await?;
    finish(step, "");
    Ok(())
}

/// Ends a step whose workers have all returned.
pub(super) fn finish(step: Arc<super::progress::Step>, more: &str) {
    if let Some(step) = Arc::into_inner(step) {
        step.done(more);
    }
}
