//! The simulator: seeded schedules run the production Lua and the production recovery logic, with faults.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod clock;
mod differential;
mod faults;
mod link;
mod network;
mod redis;
