//! Sign-up. The unique index on the address decides; there is no check-then-insert.

use super::{Accounts, Signed};
use crate::domain::account::{Account, EmailAddress, Role, Standing};
use crate::domain::ids::UserId;
use crate::error::{Code, Error, Result};
use crate::store::mongo::new_id;

/// A request to sign up, validated.
#[derive(Debug)]
pub struct SignUp {
    /// Given name.
    pub first_name: String,
    /// Family name, if given.
    pub last_name: Option<String>,
    /// Address.
    pub email: EmailAddress,
    /// In years, if given.
    pub age: Option<i32>,
    /// In clear; at most 72 bytes.
    pub password: secrecy::SecretString,
    /// Buyer or seller; administrators are made on the command line.
    pub role: Role,
}

impl Accounts {
    /// Adds an account and signs it in. Buyers are approved at once, sellers by an administrator.
    ///
    /// # Errors
    /// [`Code::EmailTaken`]; [`crate::error::Dependency::Capacity`] when too many hashes wait.
    pub async fn sign_up(&self, request: SignUp) -> Result<Signed> {
        let approved = request.role != Role::Seller;
        match self.add(request, approved).await? {
            Some(account) => self.sign(account),
            None => Err(Error::refused(Code::EmailTaken, "Email already exists")),
        }
    }

    /// Adds an account; `None` if the address has one.
    pub(super) async fn add(&self, request: SignUp, approved: bool) -> Result<Option<Account>> {
        use secrecy::ExposeSecret;
        let password = self.passwords.hash(request.password.expose_secret().to_owned()).await?;
        let now = self.clock.now();
        let account = Account {
            id: UserId::from_bytes(new_id()),
            first_name: request.first_name,
            last_name: request.last_name,
            email: request.email,
            password,
            age: request.age,
            standing: Standing { role: request.role, active: true, approved, email_verified: true },
            next_request_at: None,
            created_at: now,
            updated_at: now,
        };
        Ok(self.mongo.accounts.insert(&account).await?.then_some(account))
    }
}
