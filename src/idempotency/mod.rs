//! Requests that are answered once: whoever asks again with the same `Idempotency-Key` gets the first answer.
//!
//! A request is recorded before it runs, and its answer when it has run. A process that dies in between leaves a record
//! whose lease runs out; then the request runs again, so what it does must bear that, as it must without a key.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::auth::seal::Sealer;
use crate::config::Config;
use crate::domain::clock::Clock;
use crate::domain::ids::UserId;
use crate::error::{Code, Error, Result};
use crate::store::mongo::Mongo;
pub use crate::store::mongo::idempotency::KeyedRequest;
use crate::store::mongo::idempotency::{Begun, SealedAnswer};

/// How long a process that does not say otherwise is believed to run a request.
pub const LEASE: Duration = Duration::from_secs(30);
/// The largest answer that is kept, in bytes.
pub const ANSWER_BYTES_MAX: u64 = 256 * 1024;
/// A request that changes whenever it is looked at is somebody else's.
const LOOKS_MAX: u32 = 5;

/// Answers, kept.
pub struct Idempotency {
    mongo: Arc<Mongo>,
    clock: Arc<dyn Clock>,
    /// An answer may hold a secret that is shown once.
    sealer: Sealer,
}

impl std::fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idempotency").finish_non_exhaustive()
    }
}

/// An answer that was given before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The type of its body.
    pub content_type: String,
    /// Its body.
    pub body: String,
}

/// What is to be done about a request.
#[derive(Debug)]
pub enum Decision {
    /// Run it, and say what came of it.
    Run(KeyedRequest),
    /// Give the first answer again.
    Replay(Answer),
}

/// Names a caller's key on one route. A hash: a path may be long, and a key is the caller's own.
#[must_use]
pub fn request_id(caller: UserId, method: &str, path: &str, key: &str) -> String {
    // A method, an id and a key hold no space, and a path none that is not encoded.
    hex(&Sha256::digest(format!("{caller} {method} {path} {key}").as_bytes()))
}

/// Hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Idempotency {
    /// Over this store.
    ///
    /// # Errors
    /// When the configuration was not validated.
    pub fn new(mongo: Arc<Mongo>, clock: Arc<dyn Clock>, config: &Config) -> Result<Self> {
        let sealer = Sealer::new(&config.accounts.data_key)
            .ok_or_else(|| Error::internal("reading accounts.data_key", "it is not 32 bytes of base64"))?;
        Ok(Self { mongo, clock, sealer })
    }

    /// Decides about a request, by its id and by what it asks for.
    ///
    /// # Errors
    /// [`Code::IdempotencyKeyReused`] if the key belongs to another request; [`Code::IdempotencyInProgress`] while it runs;
    /// when the database does not answer.
    pub async fn begin(&self, id: String, fingerprint: String) -> Result<Decision> {
        let request = KeyedRequest { id, fingerprint, holder: uuid::Uuid::new_v4().simple().to_string() };
        for _ in 0..LOOKS_MAX {
            match self.mongo.requests.begin(&request, self.clock.now(), LEASE).await? {
                Begun::Now => return Ok(Decision::Run(request)),
                Begun::Running => break,
                Begun::Answered(answer) => return self.open(&request, answer).map(Decision::Replay),
                Begun::Another => {
                    return Err(Error::refused(
                        Code::IdempotencyKeyReused,
                        "this Idempotency-Key belongs to another request; use a new one for each",
                    ));
                }
                Begun::Changed => {}
            }
        }
        Err(Error::refused(Code::IdempotencyInProgress, "the request with this Idempotency-Key is still running"))
    }

    /// Says that a request still runs. Failing to say so is no reason to stop it.
    pub async fn renew(&self, request: &KeyedRequest) {
        if let Err(error) = self.mongo.requests.renew(request, self.clock.now(), LEASE).await {
            tracing::debug!(error = %error, "a running request could not be held");
        }
    }

    /// Keeps an answer.
    ///
    /// # Errors
    /// When the database does not answer; then the key is free when its lease is over.
    pub async fn keep(&self, request: &KeyedRequest, answer: &Answer) -> Result<()> {
        let sealed = self.sealer.seal(&request.id, &answer.body)?;
        let answer = SealedAnswer { status: answer.status, content_type: answer.content_type.clone(), sealed };
        self.mongo.requests.answer(request, &answer).await
    }

    /// Frees the key of a request that came to nothing: asking again runs it.
    ///
    /// # Errors
    /// When the database does not answer; then the key is free when its lease is over.
    pub async fn free(&self, request: &KeyedRequest) -> Result<()> {
        self.mongo.requests.free(request).await
    }

    fn open(&self, request: &KeyedRequest, answer: SealedAnswer) -> Result<Answer> {
        let body = self.sealer.open(&request.id, &answer.sealed)?;
        Ok(Answer { status: answer.status, content_type: answer.content_type, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_callers_on_its_route() {
        let (one, two) = (UserId::from_bytes([1; 12]), UserId::from_bytes([2; 12]));
        let id = request_id(one, "POST", "/a", "key");
        assert_eq!(id, request_id(one, "POST", "/a", "key"));
        for other in [
            request_id(two, "POST", "/a", "key"),
            request_id(one, "PUT", "/a", "key"),
            request_id(one, "POST", "/b", "key"),
            request_id(one, "POST", "/a", "key2"),
        ] {
            assert_ne!(id, other);
        }
    }
}
