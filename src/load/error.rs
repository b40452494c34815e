//! What can stop a run. A purchase that fails does not: it is an [`super::attempt::Outcome`] and is counted.

use std::time::Duration;

/// The library's result while playing.
pub type Result<T, E = LoadError> = std::result::Result<T, E>;

/// Why a run could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// What was asked for cannot be played; the text says what to change.
    #[error("{0}")]
    Plan(String),
    /// The HTTP client could not be made.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// A request that the run cannot do without failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The service answered something that the contract does not allow.
    #[error("{doing}: {detail}")]
    Contract {
        /// What was being done.
        doing: &'static str,
        /// What was wrong with the answer.
        detail: String,
    },
    /// A picture could not be drawn.
    #[error("cannot draw a product picture")]
    Picture(#[source] image::ImageError),
    /// A task of the run ended early: a bug.
    #[error("a task of the run broke off")]
    Task(#[from] tokio::task::JoinError),
    /// The thread that keeps the pace could not be started.
    #[error("cannot start the thread that keeps the pace")]
    Pace(#[source] std::io::Error),
}

/// A request that was not answered as wished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{doing}: {message} ({}{code})", if *.status == 0 { String::new() } else { format!("HTTP {status}, ") })]
pub struct ApiError {
    /// What was being done.
    pub doing: &'static str,
    /// The HTTP status; 0 if there was no answer.
    pub status: u16,
    /// The service's stable code, or one of ours: `connect_failed`, `connection_lost`, `no_answer_in_time`,
    /// `unreadable_answer`, `http_NNN` for an answer without a code.
    pub code: String,
    /// The service's sentence, or ours.
    pub message: String,
    /// When the service asked to be asked again.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// Whether the request may have taken effect all the same.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        match self.status {
            0 => self.code != "connect_failed",
            // A success that cannot be read is still a success.
            status => !(300..500).contains(&status),
        }
    }

    pub(super) fn no_answer(doing: &'static str, error: &reqwest::Error) -> Self {
        let code = if error.is_connect() {
            "connect_failed"
        } else if error.is_timeout() {
            "no_answer_in_time"
        } else if error.is_builder() {
            "bad_request_made"
        } else {
            "connection_lost"
        };
        Self { doing, status: 0, code: code.to_owned(), message: chain(error), retry_after: None }
    }
}

/// An error and its causes in one line: reqwest's own text hides why a connection failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, code: &str) -> ApiError {
        ApiError { doing: "buying", status, code: code.to_owned(), message: "no".to_owned(), retry_after: None }
    }

    #[test]
    fn only_a_definite_answer_settles_the_outcome() {
        for unknown in
            [error(503, "live_store_unavailable"), error(0, "connection_lost"), error(201, "unreadable_answer")]
        {
            assert!(unknown.outcome_unknown(), "{unknown}");
        }
        for known in [error(404, "product_not_found"), error(429, "rate_limited"), error(0, "connect_failed")] {
            assert!(!known.outcome_unknown(), "{known}");
        }
    }

    #[test]
    fn the_text_names_the_status_only_if_there_was_one() {
        assert_eq!(error(404, "not_found").to_string(), "buying: no (HTTP 404, not_found)");
        assert_eq!(error(0, "connect_failed").to_string(), "buying: no (connect_failed)");
    }
}
