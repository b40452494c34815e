//! The integration tests: one binary, real servers.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod accounts;
mod authorisation;
mod buyers;
mod catalogue;
mod compat;
mod demo;
mod deploy;
mod doctor;
mod harness;
mod http;
mod load;
mod media;
mod migrations;
mod payment;
mod plan;
mod prefetch;
mod ratchets;
mod reports;
mod sale;
mod supervisor;
mod vouchers;
mod webhooks;
