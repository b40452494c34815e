//! `/api/admin`: reviewing sellers, blocking accounts, cancelling orders.

mod accounts;
mod orders;
mod verifications;

pub(super) use accounts::*;
pub(super) use orders::*;
pub(super) use verifications::*;
