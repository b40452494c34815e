//! The opening token: at most one process opens a sale, and one that stops making progress can be replaced.

use super::Live;
use super::link::Link;
use crate::domain::ids::EventId;
use crate::error::Result;

/// Proof of being the one opener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningToken(String);

impl OpeningToken {
    /// A token that nobody else has.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<L: Link> Live<L> {
    /// Takes the opening of a sale for `ttl_ms`, unless another process has it.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn take_opening(&self, event: EventId, token: &OpeningToken, ttl_ms: u64) -> Result<bool> {
        let mut call = redis::cmd("SET");
        call.arg(self.keys.opening(event)).arg(token.as_str()).arg("NX").arg("PX").arg(ttl_ms);
        let answer: Option<String> = self.query("taking an opening", &call).await?;
        Ok(answer.is_some())
    }

    /// Whether some process holds the opening of a sale.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn opening_taken(&self, event: EventId) -> Result<bool> {
        let mut call = redis::cmd("EXISTS");
        call.arg(self.keys.opening(event));
        self.query("looking at an opening", &call).await
    }

    /// Whether a projection of this sale, finished or not, is in the live store.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn projected(&self, event: EventId) -> Result<bool> {
        let mut call = redis::cmd("EXISTS");
        call.arg(self.keys.product_keys(event));
        self.query("looking for a projection", &call).await
    }
}
