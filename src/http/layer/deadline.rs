//! Every request is answered within its group's deadline. Work that must not stop half-way runs in a task of its own.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::{Code, Error};
use crate::http::problem::Problem;

/// The deadline of a group of routes.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Deadline(pub Duration);

/// Answers 503 when the deadline has passed; the handler's future is dropped.
pub(in crate::http) async fn enforce_deadline(
    State(Deadline(deadline)): State<Deadline>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let message = "the request took too long; if it changes something, look before you repeat it";
            Problem::from(Error::refused(Code::DeadlineExceeded, message)).into_response()
        }
    }
}
