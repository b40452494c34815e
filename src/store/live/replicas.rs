//! A reservation that replicas have acknowledged before its buyer hears of it: `live.durability` "replicas".

use redis::ErrorKind;

use super::durability::Promise;
use crate::domain::reservation::ReserveOutcome;
use crate::error::{Dependency, Error, Result};

/// Runs the script with `WAIT` behind it, in one round trip. Returns its answer, and how many replicas have acknowledged
/// everything that this connection has written. Loads a script that the server has forgotten: it has not run.
///
/// `WAIT` holds up whatever else comes over its connection, so the connection should be this purchase's alone.
pub(super) async fn run_and_wait(
    call: &redis::ScriptInvocation<'_>,
    promise: Promise,
    mut connection: impl redis::aio::ConnectionLike,
) -> redis::RedisResult<(Vec<String>, usize)> {
    const ATTEMPTS_MAX: usize = 10;
    let mut pipeline = redis::pipe();
    pipeline.invoke_script(call).cmd("WAIT").arg(promise.replicas_min).arg(promise.replicas_wait_ms);
    for _ in 1..ATTEMPTS_MAX {
        match pipeline.query_async(&mut connection).await {
            Err(error) if error.kind() == ErrorKind::Server(redis::ServerErrorKind::NoScript) => {
                call.load_async(&mut connection).await?;
            }
            answer => return answer,
        }
    }
    pipeline.query_async(&mut connection).await
}

/// An answer that tells of a reservation is given only if enough replicas have it. What was refused promises nothing.
pub(super) fn require_acknowledged(
    outcome: ReserveOutcome,
    acknowledged: usize,
    promise: Promise,
) -> Result<ReserveOutcome> {
    use ReserveOutcome::{
        AlreadyReserved, KeyReused, LimitReached, NotLive, Replayed, Reserved, SoldOut, UnknownProduct,
    };
    match outcome {
        Reserved(_) | Replayed(_) | AlreadyReserved(_) if acknowledged < promise.replicas_min => {
            let what = format!(
                "{acknowledged} of {} replicas acknowledged the reservation within {} ms",
                promise.replicas_min, promise.replicas_wait_ms
            );
            Err(Error::unavailable(Dependency::LiveStore, "waiting for replicas", what))
        }
        Reserved(_)
        | Replayed(_)
        | AlreadyReserved(_)
        | SoldOut
        | NotLive(_)
        | UnknownProduct
        | KeyReused
        | LimitReached { .. } => Ok(outcome),
    }
}
