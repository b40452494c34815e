//! `/api/admin`: reviewing sellers, blocking accounts.

mod accounts;
mod verifications;

pub(super) use accounts::*;
pub(super) use verifications::*;
