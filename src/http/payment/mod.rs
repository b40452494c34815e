//! `/api/payments` for the payment gateway, and the sandbox that plays one.

mod callback;
mod sandbox;

pub(super) use callback::*;
pub(super) use sandbox::*;
