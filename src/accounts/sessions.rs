//! Sessions: sign-in, sign-out, and what a token is worth now.

use std::sync::Arc;
use std::time::Duration;

use super::Accounts;
use crate::auth::token::Claims;
use crate::domain::account::{Account, EmailAddress, Revocation, Standing};
use crate::domain::ids::UserId;
use crate::error::{Code, Error, Result};
use crate::task::Tracker;
use crate::telemetry::metrics::REVOCATION_FAILURES;

/// Somebody who just signed in.
#[derive(Debug)]
pub struct Signed {
    /// Who.
    pub account: Account,
    /// The session token.
    pub token: String,
    /// How long it is good for, in seconds.
    pub ttl_s: i64,
}

/// Processes' clocks may differ, and a write may become visible after a later one: each read looks back this far.
const OVERLAP_MS: i64 = 10_000;

impl Accounts {
    /// Signs in. An unknown address takes as long as a wrong password and gets the same answer.
    ///
    /// # Errors
    /// [`Code::BadCredentials`]; [`Code::AccountInactive`] for a blocked account whose password was right.
    pub async fn sign_in(&self, email: &EmailAddress, password: secrecy::SecretString) -> Result<Signed> {
        use secrecy::ExposeSecret;
        let account = self.mongo.accounts.by_email(email).await?;
        let hash = account.as_ref().map(|account| account.password.clone());
        let right = self.passwords.verify(password.expose_secret().to_owned(), hash).await?;
        match account {
            Some(account) if right && account.standing.active => self.sign(account),
            Some(_) if right => Err(inactive()),
            _ => Err(Error::refused(Code::BadCredentials, "EmailId or Password is wrong..!!")),
        }
    }

    pub(super) fn sign(&self, account: Account) -> Result<Signed> {
        let now_s = self.clock.now().timestamp();
        let token = self.tokens.issue(account.id, &account.email, account.standing, now_s)?;
        Ok(Signed { account, token, ttl_s: self.tokens.ttl_s() })
    }

    /// Ends one session, on every process.
    ///
    /// # Errors
    /// When the database does not answer: the session is still good then, and the caller must know.
    pub async fn sign_out(&self, claims: &Claims) -> Result<()> {
        self.revoke(Revocation::Session { jti: claims.jti.clone() }).await
    }

    /// What a token is worth now: its claims, and what the account may do at this moment.
    ///
    /// # Errors
    /// [`Code::SessionExpired`]; [`Code::AccountInactive`].
    pub fn session(&self, token: &str) -> Result<(Claims, Standing)> {
        let claims = self.tokens.verify(token)?;
        let standing = self.standing_of(&claims)?;
        Ok((claims, standing))
    }

    /// Whether a session that was checked before is still good: for answers that go on.
    #[must_use]
    pub fn continues(&self, claims: &Claims) -> bool {
        self.clock.now().timestamp() < claims.exp && self.standing_of(claims).is_ok()
    }

    /// What the account of a session may do now, unless the session has ended.
    fn standing_of(&self, claims: &Claims) -> Result<Standing> {
        if self.revocations.signed_out(&claims.jti) {
            return Err(Error::refused(Code::SessionExpired, "session expired"));
        }
        let standing = self.revocations.standing(claims.user).unwrap_or_else(|| claims.standing());
        // A token speaks for one role; an account that changed it must sign in again.
        if standing.role != claims.role {
            return Err(Error::refused(Code::SessionExpired, "session expired"));
        }
        if !standing.active {
            return Err(inactive());
        }
        Ok(standing)
    }

    /// The account as it is stored now.
    ///
    /// # Errors
    /// When the database does not answer, or the account is gone.
    pub async fn account(&self, id: UserId) -> Result<Account> {
        self.mongo.accounts.by_id(id).await?.ok_or_else(|| Error::not_found("account not found"))
    }

    /// Blocks or unblocks an account. Its sessions feel it within a second, on every process.
    ///
    /// # Errors
    /// [`Code::NotFound`], or when the database does not answer.
    pub async fn set_active(&self, id: UserId, active: bool) -> Result<()> {
        let account = self.mongo.accounts.set_active(id, active).await?;
        let account = account.ok_or_else(|| Error::not_found("account not found"))?;
        self.announce(&account).await
    }

    pub(super) async fn announce(&self, account: &Account) -> Result<()> {
        self.revoke(Revocation::Account { user: account.id, standing: account.standing }).await
    }

    async fn revoke(&self, revocation: Revocation) -> Result<()> {
        let (now, ttl_s) = (self.clock.now(), self.tokens.ttl_s());
        self.mongo.revocations.insert(&revocation, now, ttl_s).await?;
        self.revocations.apply(revocation, now.timestamp() + ttl_s);
        Ok(())
    }

    /// Reads every revocation that a living token may need. Before serving.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn load_revocations(&self) -> Result<i64> {
        let since_ms = self.clock.now().timestamp_millis() - self.tokens.ttl_s() * 1000;
        self.read_revocations(since_ms).await
    }

    /// Reads new revocations again and again until the application stops.
    pub async fn keep_reading_revocations(self: Arc<Self>, tasks: Tracker, mut newest_ms: i64) {
        let interval = Duration::from_millis(self.revocation_poll_ms);
        while tasks.pause(interval).await {
            match self.read_revocations(newest_ms - OVERLAP_MS).await {
                Ok(read_ms) => newest_ms = newest_ms.max(read_ms),
                Err(error) => {
                    metrics::counter!(REVOCATION_FAILURES).increment(1);
                    tracing::warn!(code = error.code().as_str(), "the newest revocations could not be read");
                }
            }
            self.revocations.forget(self.clock.now().timestamp());
        }
    }

    async fn read_revocations(&self, since_ms: i64) -> Result<i64> {
        let mut newest_ms = since_ms;
        for stored in self.mongo.revocations.since(since_ms).await? {
            newest_ms = newest_ms.max(stored.at_ms);
            self.revocations.apply(stored.revocation, stored.until_s);
        }
        Ok(newest_ms)
    }
}

fn inactive() -> Error {
    Error::refused(Code::AccountInactive, "this account is blocked")
}
