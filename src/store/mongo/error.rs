//! From the driver's errors to ours, and deadlines.

use std::future::IntoFuture;
use std::time::Duration;

use mongodb::error::{ErrorKind, WriteFailure};

use crate::error::{Dependency, Error, Result};

/// The code of a broken unique index.
pub(super) const DUPLICATE_KEY: i32 = 11_000;

/// Runs one call against its deadline.
pub(super) async fn within<T>(
    deadline: Duration,
    doing: &'static str,
    call: impl IntoFuture<Output = mongodb::error::Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(deadline, call.into_future()).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(fault(doing, error)),
        Err(_) => Err(Error::timed_out(Dependency::Database, doing)),
    }
}

/// As [`within`], with a broken unique index as a value: `None`.
pub(super) async fn unless_duplicate<T>(
    deadline: Duration,
    doing: &'static str,
    call: impl IntoFuture<Output = mongodb::error::Result<T>>,
) -> Result<Option<T>> {
    match tokio::time::timeout(deadline, call.into_future()).await {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(error)) if is_duplicate(&error) => Ok(None),
        Ok(Err(error)) => Err(fault(doing, error)),
        Err(_) => Err(Error::timed_out(Dependency::Database, doing)),
    }
}

fn is_duplicate(error: &mongodb::error::Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == DUPLICATE_KEY,
        ErrorKind::Command(error) => error.code == DUPLICATE_KEY,
        _ => false,
    }
}

/// A document that does not decode, or a command that the server refuses, is our bug; the rest is the server's absence.
pub(super) fn fault(doing: &'static str, error: mongodb::error::Error) -> Error {
    match error.kind.as_ref() {
        ErrorKind::BsonDeserialization(_)
        | ErrorKind::BsonSerialization(_)
        | ErrorKind::Bson(_)
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::Write(WriteFailure::WriteError(_)) => Error::internal(doing, error),
        _ => Error::unavailable(Dependency::Database, doing, error),
    }
}

/// A stored value that no write of ours can have made.
pub(super) fn unreadable(doing: &'static str, what: String) -> Error {
    Error::internal(doing, what)
}
