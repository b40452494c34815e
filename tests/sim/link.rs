//! A connection to the Redis in memory, over the network. To the live store it is a connection like any other.

use std::io;
use std::sync::{Arc, Mutex};

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, Pipeline, RedisFuture, RedisResult, Value};

use crate::faults::Faults;
use crate::network::Network;
use crate::redis::{Bytes, Redis, Reply};

/// One process's connection.
#[derive(Clone)]
pub struct Link {
    server: Arc<Mutex<Redis>>,
    network: Network,
    faults: Faults,
}

impl Link {
    pub const fn new(server: Arc<Mutex<Redis>>, network: Network, faults: Faults) -> Self {
        Self { server, network, faults }
    }

    async fn exchange(&self, commands: Vec<Vec<Bytes>>) -> RedisResult<Vec<Value>> {
        let server = Arc::clone(&self.server);
        let work = move || {
            let mut server = server.lock().unwrap();
            commands.iter().map(|command| server.execute(command)).collect::<Vec<Reply>>()
        };
        let replies = self.network.ask(&self.faults, work).await;
        let replies = replies.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))?;
        replies.iter().map(parsed).collect()
    }
}

/// A reply as the driver reads it off the wire.
pub fn parsed(reply: &Reply) -> RedisResult<Value> {
    let mut bytes = Vec::new();
    reply.encode(&mut bytes);
    redis::parse_redis_value(&bytes)
}

/// A command as it is sent.
pub fn words(command: &Cmd) -> Vec<Bytes> {
    command
        .args_iter()
        .map(|argument| match argument {
            Arg::Simple(bytes) => bytes.to_vec(),
            Arg::Cursor => b"0".to_vec(),
            _ => panic!("an argument of a new kind"),
        })
        .collect()
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let mut values = self.exchange(vec![words(command)]).await?;
            Ok(values.pop().unwrap_or(Value::Nil))
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        assert!(!pipeline.is_transaction(), "transactions are not simulated");
        Box::pin(async move {
            let values = self.exchange(pipeline.cmd_iter().map(words).collect()).await?;
            Ok(values.into_iter().skip(offset).take(count).collect())
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;
    use crate::clock::WallClock;
    use crate::faults::Rates;

    /// A server, a connection to it, and the network between.
    fn linked(rates: Rates) -> (Arc<Mutex<Redis>>, Link, JoinSet<()>) {
        let clock = WallClock::new();
        let server = Redis::new(Box::new(move || clock.now_us() as u64));
        let server = Arc::new(Mutex::new(server));
        let (network, carrying) = Network::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(carrying);
        let faults = Faults::new(7);
        faults.set_rates(rates);
        (Arc::clone(&server), Link::new(server, network, faults), tasks)
    }

    /// Adds a member, and says whether the sender was told that it was added.
    async fn add(link: &Link, member: usize) -> bool {
        let mut link = link.clone();
        let mut command = redis::cmd("SADD");
        command.arg("set").arg(member);
        let call = command.query_async::<usize>(&mut link);
        matches!(timeout(Duration::from_millis(500), call).await, Ok(Ok(1)))
    }

    /// Of a hundred additions, those that were told of and those that were done.
    async fn hundred(rates: Rates) -> (usize, usize) {
        let (server, link, _tasks) = linked(rates);
        let mut told = 0;
        for member in 0..100 {
            told += usize::from(add(&link, member).await);
        }
        sleep(Duration::from_secs(10)).await;
        let done = server.lock().unwrap().execute(&[b"SCARD".to_vec(), b"set".to_vec()]);
        let Reply::Int(done) = done else { panic!("{done:?}") };
        (told, done as usize)
    }

    #[tokio::test(start_paused = true)]
    async fn a_calm_network_delivers_everything() {
        assert_eq!(hundred(Rates::default()).await, (100, 100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_request_is_not_executed_and_a_lost_reply_was() {
        let (told, done) = hundred(Rates { request_lost: 0.3, ..Rates::default() }).await;
        assert!(told == done && (50..90).contains(&done), "{told} {done}");
        let (told, done) = hundred(Rates { reply_lost: 0.3, ..Rates::default() }).await;
        assert!((50..90).contains(&told) && done == 100, "{told} {done}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_its_sender_gave_up_is_executed_all_the_same() {
        let (told, done) = hundred(Rates { slow: 0.5, ..Rates::default() }).await;
        assert!(told < 80 && done == 100, "{told} {done}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_down_refuses_at_once() {
        let (_, link, _tasks) = linked(Rates::default());
        link.faults.set_down(true);
        let before = Instant::now();
        assert!(!add(&link, 1).await);
        assert!(before.elapsed() < Duration::from_millis(100));
        link.faults.set_down(false);
        assert!(add(&link, 1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_driver_understands_errors_scripts_and_pipelines() {
        let (_, mut link, _tasks) = linked(Rates::default());
        let script = redis::Script::new("return redis.call('INCR', KEYS[1])");
        let unknown = script.key("a").invoke_async::<i64>(&mut link).await.unwrap_err();
        assert!(unknown.to_string().contains("Unknown Redis command"), "{unknown}");
        // Not known by its hash at first: the driver loads it.
        let script = redis::Script::new("return redis.call('HINCRBY', KEYS[1], 'n', ARGV[1])");
        assert_eq!(script.key("h").arg(5).invoke_async::<i64>(&mut link).await.unwrap(), 5);
        let wrong = redis::cmd("GET").arg("h").query_async::<String>(&mut link).await.unwrap_err();
        assert_eq!(wrong.code(), Some("WRONGTYPE"));
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGET").arg("h").arg("n").cmd("GET").arg("h").ignore_errors();
        let answers: Vec<RedisResult<String>> = pipeline.query_async(&mut link).await.unwrap();
        assert!(answers[0].as_deref() == Ok("5") && answers[1].is_err());
    }
}
