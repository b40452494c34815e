//! A Redis in memory: good enough for everything that the live store asks of one, on a clock that the test turns.
//!
//! The differential test compares it with a real server.

mod arguments;
mod commands;
mod glob;
mod hashes;
mod keys;
mod keyspace;
mod lua;
mod number;
mod reply;
mod scan;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;

pub use keyspace::{Hash, Keyspace, Set, SortedSet, Text};
pub use reply::{Bytes, Reply};
pub use server::{Redis, Snapshot};
pub use streams::{NODE_ENTRIES_MAX, Stream};
