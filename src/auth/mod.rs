//! Who somebody is: passwords, session tokens, revocation, and sealing of what must not be readable at rest.

pub mod limits;
pub mod password;
pub mod revocation;
pub mod seal;
pub mod token;
