//! Accounts: signing up, in and out, approval, blocking.

mod limits;
mod sessions;
mod signup;
mod verification;

pub use verification::collection;
