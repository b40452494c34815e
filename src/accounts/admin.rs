//! Administrators: made on the command line or from the environment, never by sign-up.

use secrecy::{ExposeSecret, SecretString};

use super::{Accounts, SignUp};
use crate::auth::password::PASSWORD_BYTES_MAX;
use crate::domain::account::{EmailAddress, Role};
use crate::error::{Code, Error, Result};

impl Accounts {
    /// Adds an administrator.
    ///
    /// # Errors
    /// [`Code::EmailTaken`] if the address has an account, whatever its role; a password that breaks the rules.
    pub async fn create_admin(&self, email: &EmailAddress, password: SecretString, chars_min: usize) -> Result<()> {
        let text = password.expose_secret();
        if text.chars().count() < chars_min || text.len() > PASSWORD_BYTES_MAX {
            return Err(Error::invalid(
                "password",
                format!("must have {chars_min} characters to {PASSWORD_BYTES_MAX} bytes"),
            ));
        }
        let request = SignUp {
            first_name: "Administrator".to_owned(),
            last_name: None,
            email: email.clone(),
            age: None,
            password,
            role: Role::Admin,
        };
        match self.add(request, true).await? {
            Some(account) => {
                tracing::info!(account = %account.id, "administrator created");
                Ok(())
            }
            None => Err(Error::refused(Code::EmailTaken, "Email already exists")),
        }
    }

    /// Adds the administrator that the configuration names, unless there is one with that address.
    ///
    /// # Errors
    /// When the address belongs to somebody who is no administrator.
    pub async fn bootstrap_admin(&self, chars_min: usize) -> Result<()> {
        if self.config.bootstrap_admin_email.is_empty() {
            return Ok(());
        }
        let email = EmailAddress::normalise(&self.config.bootstrap_admin_email);
        match self.create_admin(&email, self.config.bootstrap_admin_password.clone(), chars_min).await {
            Err(error) if error.code() == Code::EmailTaken => {
                let role = self.mongo.accounts.by_email(&email).await?.map(|account| account.standing.role);
                if role == Some(Role::Admin) {
                    return Ok(());
                }
                Err(Error::refused(
                    Code::EmailTaken,
                    "accounts.bootstrap_admin_email belongs to an account that is no administrator; choose another",
                ))
            }
            other => other,
        }
    }
}
