//! The simulator: seeded schedules run the production Lua and the production recovery logic, with faults.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod clock;
mod differential;
mod durable;
mod faults;
mod gateway;
mod invariants;
mod ledger;
mod link;
mod network;
mod planted;
mod redis;
mod remembered;
mod seeds;
mod vouchers;
mod world;
