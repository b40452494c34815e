//! Who somebody is: passwords, session tokens, revocation, and sealing of what must not be readable at rest.

mod hs256;
pub mod limits;
pub mod password;
pub mod revocation;
pub mod seal;
pub mod token;
