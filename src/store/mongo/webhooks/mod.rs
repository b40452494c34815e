//! Webhooks: endpoints, messages, deliveries, and the changes of settled orders that sellers have not been told of.
//!
//! Messages are the outbox. They are written with what they tell, and become deliveries later, one for each endpoint:
//! every step is idempotent, since what it writes has an id that follows from what it was made of.

mod deliveries;
mod endpoints;
mod messages;
mod untold;

use std::future::IntoFuture;
use std::time::Duration;

use mongodb::error::ErrorKind;
use mongodb::results::InsertManyResult;

pub use deliveries::{Claimed, Deliveries, Verdict};
pub use endpoints::{Endpoints, NewSecret};
pub use messages::Messages;
pub(super) use untold::mark;
pub use untold::{Untold, UntoldOrders};

use super::error::{DUPLICATE_KEY, fault};
use crate::error::{Dependency, Error, Result};

/// Runs an unordered insert: rows that are there already are no error.
async fn insert_missing(
    deadline: Duration,
    doing: &'static str,
    call: impl IntoFuture<Output = mongodb::error::Result<InsertManyResult>>,
) -> Result<()> {
    let error = match tokio::time::timeout(deadline, call.into_future()).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error,
        Err(_) => return Err(Error::timed_out(Dependency::Database, doing)),
    };
    if let ErrorKind::InsertMany(failed) = error.kind.as_ref()
        && failed.write_concern_error.is_none()
        && let Some(refused) = &failed.write_errors
        && refused.iter().all(|one| one.code == DUPLICATE_KEY)
    {
        return Ok(());
    }
    Err(fault(doing, error))
}
