//! Connections to the live store, each bound to the server that it was made to.
//!
//! A client that reconnects by itself cannot tell whether the server behind the address is still the one that it knew: a
//! replica that was promoted answers just as readily, without the writes that it never received. So a [`Wire`] carries
//! the run of the server that it reaches, it never outlives that connection, and a purchase goes only over a wire whose
//! run has been recognised ([`super::Live::trust`]).

use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};

/// One life of one server: from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerRun(u64);

impl ServerRun {
    /// A run with this number, which is not zero.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number; zero is no run.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The server's `run_id` is 40 random hexadecimal digits; 64 bits of them tell runs apart.
    fn parse(info: &str) -> Option<Self> {
        let id = info.lines().find_map(|line| line.strip_prefix("run_id:"))?.trim();
        u64::from_str_radix(id.get(..16)?, 16).ok().filter(|number| *number != 0).map(Self)
    }
}

/// A connection to one run of the server.
pub trait Wire: ConnectionLike + Clone + Send + Sync + 'static {
    /// The run that it reaches.
    fn run(&self) -> ServerRun;
}

/// Makes wires, and makes them anew when they break.
pub trait Link: Send + Sync + 'static {
    /// Its wires.
    type Wire: Wire;

    /// The wire in use, or a new one.
    fn wire(&self) -> impl Future<Output = RedisResult<Self::Wire>> + Send;

    /// Offers the wire in use no longer: it does not answer.
    fn give_up(&self);
}

/// A multiplexed connection over TCP, TLS or a Unix socket.
#[derive(Debug)]
pub struct TcpLink {
    client: Client,
    deadline: Duration,
    slot: Arc<RwLock<Option<TcpWire>>>,
    /// Held while connecting: callers wait for one connection instead of making one each.
    connecting: tokio::sync::Mutex<()>,
}

impl TcpLink {
    pub(super) fn new(client: Client, deadline: Duration) -> Self {
        Self { client, deadline, slot: Arc::default(), connecting: tokio::sync::Mutex::new(()) }
    }

    fn current(&self) -> Option<TcpWire> {
        self.slot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn connect(&self) -> RedisResult<TcpWire> {
        // The driver's own timeouts are only a backstop; each call brings its own deadline.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.deadline))
            .set_response_timeout(Some(self.deadline));
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let nameless = || RedisError::from((ErrorKind::Parse, "the server does not name its run"));
        let run = ServerRun::parse(&info).ok_or_else(nameless)?;
        Ok(TcpWire { connection, run, slot: Arc::clone(&self.slot) })
    }
}

impl Link for TcpLink {
    type Wire = TcpWire;

    async fn wire(&self) -> RedisResult<TcpWire> {
        if let Some(wire) = self.current() {
            return Ok(wire);
        }
        let _turn = self.connecting.lock().await;
        if let Some(wire) = self.current() {
            return Ok(wire);
        }
        let wire = self.connect().await?;
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = Some(wire.clone());
        Ok(wire)
    }

    fn give_up(&self) {
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// One connection of a [`TcpLink`].
#[derive(Debug, Clone)]
pub struct TcpWire {
    connection: MultiplexedConnection,
    run: ServerRun,
    slot: Arc<RwLock<Option<Self>>>,
}

impl TcpWire {
    /// A broken connection is not offered again. If a newer one is in its place already, it goes as well: it is made anew
    /// at the next call, which is cheap and rare.
    fn note<T>(&self, answer: RedisResult<T>) -> RedisResult<T> {
        if answer.as_ref().is_err_and(RedisError::is_unrecoverable_error) {
            *self.slot.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        answer
    }
}

impl Wire for TcpWire {
    fn run(&self) -> ServerRun {
        self.run
    }
}

impl ConnectionLike for TcpWire {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let answer = self.connection.req_packed_command(cmd).await;
            self.note(answer)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let answer = self.connection.req_packed_commands(pipeline, offset, count).await;
            self.note(answer)
        })
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_from_what_the_server_says() {
        let info = "# Server\r\nredis_version:7.0.15\r\nrun_id:00000000000000ff00000000000000000000000000000000\r\n";
        assert_eq!(ServerRun::parse(info), Some(ServerRun::new(255)));
        assert_eq!(ServerRun::parse("redis_version:7.0.15"), None);
        assert_eq!(ServerRun::parse("run_id:short"), None);
    }
}
