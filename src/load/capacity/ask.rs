//! What is asked: nothing, and purchases.

use std::io::Write;
use std::sync::Arc;

use super::super::answers::{Problem, Purchased};
use super::super::attempt::Outcome;
use super::super::client::code_of;
use super::super::error::ApiError;
use super::super::scene::Scene;
use super::closed::Ask;
use super::wire::Reply;

/// The route that does nothing, for one buyer after the other.
pub(super) struct Noop {
    pub scene: Arc<Scene>,
    pub authority: String,
}

/// Purchases: each buyer tries one product.
pub(super) struct Purchase {
    pub scene: Arc<Scene>,
    pub authority: String,
}

impl Purchase {
    /// Who asks: those who have nothing take turns when all have asked once.
    pub(super) fn buyer(&self, number: usize) -> usize {
        let (owners, buyers) = (self.owners(), self.scene.buyers.len());
        if number < owners { number } else { owners + (number - owners) % (buyers - owners) }
    }

    pub(super) fn product(&self, number: usize) -> usize {
        number % self.scene.products.len()
    }

    /// There is a unit for each of the first buyers.
    fn owners(&self) -> usize {
        self.scene.products.len() * self.scene.units_each as usize
    }

    pub(super) fn key(&self, number: usize) -> String {
        format!("{}-{number}", self.scene.run)
    }
}

/// Both requests are as long, and pass the same checks on their way in.
fn write(request: &mut Vec<u8>, authority: &str, path: std::fmt::Arguments<'_>, token: &str, key: std::fmt::Arguments<'_>) {
    // Writing to a vector does not fail.
    let _ = write!(
        request,
        "POST {path} HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\nidempotency-key: {key}\r\n\
         content-length: 0\r\n\r\n"
    );
}

impl Ask for Noop {
    type Outcome = bool;

    fn write(&self, number: usize, request: &mut Vec<u8>) {
        let buyers = &self.scene.buyers;
        let token = buyers[number % buyers.len()].token();
        let run = &self.scene.run;
        write(request, &self.authority, format_args!("/api/noop"), token, format_args!("{run}-{number}"));
    }

    fn read(&self, reply: std::io::Result<Reply<'_>>) -> bool {
        reply.is_ok_and(|reply| reply.status == 204)
    }
}

impl Ask for Purchase {
    type Outcome = Outcome;

    fn write(&self, number: usize, request: &mut Vec<u8>) {
        let token = self.scene.buyers[self.buyer(number)].token();
        let (event, product) = (&self.scene.event, &self.scene.products[self.product(number)].product_id);
        let path = format_args!("/api/buyer/event/{event}/purchase/{product}");
        write(request, &self.authority, path, token, format_args!("{}-{number}", self.scene.run));
    }

    fn read(&self, reply: std::io::Result<Reply<'_>>) -> Outcome {
        read(reply).into()
    }
}

fn read(reply: std::io::Result<Reply<'_>>) -> Result<Purchased, ApiError> {
    let error = |status, code: String, message: String| ApiError {
        doing: "buying",
        status,
        code,
        message,
        retry_after: None,
    };
    let reply = reply.map_err(|failed| {
        let late = failed.kind() == std::io::ErrorKind::TimedOut;
        let code = if late { "no_answer_in_time" } else { "connection_lost" };
        error(0, code.to_owned(), failed.to_string())
    })?;
    if (200..300).contains(&reply.status) {
        return serde_json::from_slice(reply.body)
            .map_err(|failed| error(reply.status, "unreadable_answer".to_owned(), failed.to_string()));
    }
    let problem: Problem = serde_json::from_slice(reply.body).unwrap_or_default();
    let message = problem.error.or(problem.message).unwrap_or_default();
    Err(error(reply.status, problem.code.unwrap_or_else(|| code_of(reply.status, &message)), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16, body: &str) -> Outcome {
        read(Ok(Reply { status, body: body.as_bytes() })).into()
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(outcome(201, r#"{"reservationId":"r","price":199.99}"#).is_accepted());
        assert_eq!(outcome(409, r#"{"code":"sold_out","error":"sold out"}"#), Outcome::SoldOut);
        assert!(outcome(201, "{}").is_unknown() && outcome(503, "").is_unknown());
        let lost: Outcome = read(Err(std::io::ErrorKind::UnexpectedEof.into())).into();
        assert_eq!(lost, Outcome::Failed { code: "connection_lost".to_owned(), unknown: true });
    }
}
