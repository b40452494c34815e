//! When a server counts as started: when it has answered a question, over the network, on its port.
//!
//! The answer must also come from the process we started. Two servers of two runs can want the same port,
//! and the one that lost it is about to end while the other one answers. Redis says its process id itself;
//! for MongoDB the answer is believed once our process has logged that it listens.
//!
//! The questions are spelled out in bytes because the drivers belong to the stores, and because a driver
//! would retry and hide what is asked here.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::error::SupervisorError;
use super::home::Home;
use super::process::Process;

/// How long a server may take to start. A start takes well under a second; loading a large append-only file
/// or a machine under heavy load takes longer.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long one question may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What shows that a server is ready.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sign {
    /// Redis answers `PING`, and `INFO` names our process.
    RedisPong,
    /// MongoDB answers `hello`, and this text is in the log of our process.
    MongoHello {
        /// What the program logs once it listens.
        logged: &'static str,
    },
}

/// Waits for the sign; on failure the process has been killed.
pub(super) async fn wait(home: &Home, mut process: Process, port: u16, sign: Sign) -> Result<Process, SupervisorError> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = process.exit_status() {
            home.remove_pid();
            return Err(SupervisorError::Exited {
                server: home.server(),
                status,
                log: home.log_path(),
                log_tail: home.log_tail(process.log_offset()),
            });
        }
        let ready = match sign {
            Sign::RedisPong => redis_process_id(port).await == Some(process.pid()),
            Sign::MongoHello { logged } => {
                home.log_since(process.log_offset()).contains(logged) && mongo_says_hello(port).await
            }
        };
        if ready {
            return Ok(process);
        }
        if Instant::now() >= deadline {
            let log_tail = home.log_tail(process.log_offset());
            process.kill().await;
            home.remove_pid();
            return Err(SupervisorError::NotReady {
                server: home.server(),
                port,
                deadline_secs: DEADLINE.as_secs(),
                log: home.log_path(),
                log_tail,
            });
        }
        sleep(POLL).await;
    }
}

/// The process id of the Redis that answers on `port`; none while it is loading, or if none answers.
async fn redis_process_id(port: u16) -> Option<u32> {
    let ask = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
        stream.write_all(b"PING\r\nINFO server\r\nQUIT\r\n").await.ok()?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let info = answer.strip_prefix("+PONG\r\n")?;
        info.lines().find_map(|line| line.strip_prefix("process_id:"))?.trim().parse().ok()
    };
    timeout(ANSWER_DEADLINE, ask).await.ok().flatten()
}

/// `{ hello: 1, $db: "admin" }` as one `OP_MSG`: header (length, request 1, response to 0, operation 2013),
/// flags, one section of kind 0.
const HELLO: &[u8; 52] = b"\x34\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
    \x1f\0\0\0\x10hello\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";

/// Whether a MongoDB server answers `hello` on `port`.
async fn mongo_says_hello(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
        stream.write_all(HELLO).await.ok()?;
        let mut header = [0; 16];
        stream.read_exact(&mut header).await.ok()?;
        // An answer to request 1, and an OP_MSG as well.
        Some(header[8..] == [1, 0, 0, 0, 0xdd, 0x07, 0, 0])
    };
    matches!(timeout(ANSWER_DEADLINE, ask).await, Ok(Some(true)))
}
