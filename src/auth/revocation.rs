//! Revocation: what has changed since a token was made.
//!
//! A token is trusted for two hours, but an account can be blocked, approved or signed out meanwhile. Such changes are
//! written to MongoDB (`revocations`) and every process reads the new ones several times a second into this table,
//! which each request looks at: no database read per request, and a change takes effect within a second.
//!
//! While MongoDB is away nothing new can be read, and nothing new can have been written either: the table stays true.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::domain::account::{Revocation, Standing};
use crate::domain::ids::UserId;

#[derive(Debug, Default)]
struct Entries {
    /// Until when each is needed, in seconds since 1970: the last token that it concerns has ended then.
    sessions: HashMap<String, i64>,
    accounts: HashMap<UserId, (Standing, i64)>,
}

/// The changes of the last session lifetime.
#[derive(Debug, Default)]
pub struct Revocations {
    entries: RwLock<Entries>,
}

impl Revocations {
    /// Takes a change in; it is forgotten at `until_s`. The newest change of an account must come last.
    pub fn apply(&self, revocation: Revocation, until_s: i64) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        match revocation {
            Revocation::Session { jti } => {
                entries.sessions.insert(jti, until_s);
            }
            Revocation::Account { user, standing } => {
                entries.accounts.insert(user, (standing, until_s));
            }
        }
    }

    /// Forgets what no living token can need.
    pub fn forget(&self, now_s: i64) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.sessions.retain(|_, until_s| *until_s > now_s);
        entries.accounts.retain(|_, (_, until_s)| *until_s > now_s);
    }

    /// Whether the session was signed out.
    #[must_use]
    pub fn signed_out(&self, jti: &str) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).sessions.contains_key(jti)
    }

    /// What the account may do now, if that changed lately.
    #[must_use]
    pub fn standing(&self, user: UserId) -> Option<Standing> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).accounts.get(&user).map(|(standing, _)| *standing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::account::Role;

    #[test]
    fn the_last_change_counts_until_no_token_can_need_it() {
        let (table, user) = (Revocations::default(), UserId::from_bytes([1; 12]));
        let standing = |active| Standing { role: Role::Seller, active, approved: true, email_verified: true };
        table.apply(Revocation::Account { user, standing: standing(false) }, 100);
        table.apply(Revocation::Account { user, standing: standing(true) }, 200);
        table.apply(Revocation::Session { jti: "j".to_owned() }, 100);
        assert_eq!(table.standing(user), Some(standing(true)));
        table.forget(150);
        assert!(table.standing(user).is_some() && !table.signed_out("j"));
        table.forget(200);
        assert_eq!(table.standing(user), None);
    }
}
