//! The integration tests: one binary, real servers.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod deploy;
mod harness;
mod load;
mod media;
mod ratchets;
mod sale;
mod supervisor;
