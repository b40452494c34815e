//! Ports for servers that are ours.
//!
//! Asking the system for "any port" (binding port 0) gives one from the range it also uses for outgoing
//! connections. Such a port can be taken by anybody's outgoing connection while our server is down for a
//! restart, and a client that keeps reconnecting to it can even end up connected to itself. So ports are
//! taken from below that range, and handed out in turn, so that the port of a server which a test has just
//! killed is not given to the next server of the same process.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::SupervisorError;

/// Below Linux's default range for outgoing connections (32768 and up) even for a Redis Cluster node,
/// which also listens on its port plus 10,000.
const FIRST: u32 = 15_000;
const COUNT: u32 = 7_000;

/// How many ports this process has asked for so far.
static TURN: AtomicU32 = AtomicU32::new(0);

/// A port on 127.0.0.1 on which nothing listens at this moment.
///
/// Another process can still take it before the server binds it; the servers here notice that and try
/// another one.
///
/// # Errors
///
/// [`SupervisorError::NoFreePort`] when every port is taken.
pub fn free_port() -> Result<u16, SupervisorError> {
    // Processes start at different places, so that two of them seldom try the same port at once.
    let offset = process::id().wrapping_mul(97);
    (0..COUNT)
        .map(|_| {
            let turn = TURN.fetch_add(1, Ordering::Relaxed);
            FIRST + offset.wrapping_add(turn) % COUNT
        })
        .filter_map(|port| u16::try_from(port).ok())
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .ok_or(SupervisorError::NoFreePort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_not_given_and_none_is_given_twice() {
        let first = free_port().unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let others: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert!(!others.contains(&first));
        let mut distinct = others.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), others.len());
    }
}
