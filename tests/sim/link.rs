//! Connections to the Redis in memory. To the live store they are links like any other: a wire reaches one run of the
//! server and breaks with it.

use std::io;
use std::sync::{Arc, Mutex, Weak};

use orbit::store::live::link::{Link, ServerRun, Wire};
use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use crate::network::Line;
use crate::redis::{Bytes, Redis, Reply};

/// A server that several processes reach.
pub type SharedRedis = Arc<Mutex<Redis>>;

/// One process's link.
pub struct SimLink {
    server: SharedRedis,
    line: Line,
    slot: Arc<Mutex<Option<SimWire>>>,
}

impl SimLink {
    pub fn new(server: SharedRedis, line: Line) -> Self {
        Self { server, line, slot: Arc::default() }
    }
}

impl Link for SimLink {
    type Wire = SimWire;

    async fn wire(&self) -> RedisResult<SimWire> {
        let current = self.slot.lock().unwrap().clone();
        if let Some(wire) = current {
            return Ok(wire);
        }
        let server = Arc::clone(&self.server);
        let run = self.line.ask(move || server.lock().unwrap().incarnation()).await.ok_or_else(broken)?;
        let (server, line, slot) = (Arc::clone(&self.server), self.line.clone(), Arc::downgrade(&self.slot));
        let wire = SimWire { server, line, slot, run: ServerRun::new(run) };
        *self.slot.lock().unwrap() = Some(wire.clone());
        Ok(wire)
    }

    fn give_up(&self) {
        *self.slot.lock().unwrap() = None;
    }
}

/// One connection.
#[derive(Clone)]
pub struct SimWire {
    server: SharedRedis,
    line: Line,
    /// Where it is kept while it is whole.
    slot: Weak<Mutex<Option<Self>>>,
    run: ServerRun,
}

fn broken() -> RedisError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

impl SimWire {
    async fn exchange(&self, commands: Vec<Vec<Bytes>>, atomic: bool) -> RedisResult<Vec<Value>> {
        let (server, run) = (Arc::clone(&self.server), self.run.number());
        let work = move || {
            let mut server = server.lock().unwrap();
            if server.incarnation() != run {
                return None;
            }
            if atomic {
                return Some(vec![server.execute_together(&commands)]);
            }
            Some(commands.iter().map(|command| server.execute(command)).collect::<Vec<Reply>>())
        };
        let Some(replies) = self.line.ask(work).await.flatten() else {
            if let Some(slot) = self.slot.upgrade() {
                *slot.lock().unwrap() = None;
            }
            return Err(broken());
        };
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
fn words(command: &Cmd) -> Vec<Bytes> {
    command
        .args_iter()
        .map(|argument| match argument {
            Arg::Simple(bytes) => bytes.to_vec(),
            Arg::Cursor => b"0".to_vec(),
            _ => panic!("an argument of a new kind"),
        })
        .collect()
}

impl Wire for SimWire {
    fn run(&self) -> ServerRun {
        self.run
    }
}

impl ConnectionLike for SimWire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let mut values = self.exchange(vec![words(command)], false).await?;
            Ok(values.pop().unwrap_or(Value::Nil))
        })
    }

    /// The driver wants the last answer of a transaction, and every answer of a plain pipeline.
    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        _offset: usize,
        _count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let commands = pipeline.cmd_iter().map(words).collect();
        Box::pin(self.exchange(commands, pipeline.is_transaction()))
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
    use crate::faults::{Faults, Rates};
    use crate::network::{Life, Network};

    /// A server, a link to it, and the network between.
    fn linked(rates: Rates) -> (SharedRedis, SimLink, JoinSet<()>) {
        let clock = WallClock::new();
        let server = Redis::new(Box::new(move || clock.now_us() as u64));
        let server = Arc::new(Mutex::new(server));
        let (network, carrying) = Network::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(carrying);
        let faults = Faults::new(7);
        faults.set_rates(rates);
        let line = Line::new(network, faults, Life::new());
        (Arc::clone(&server), SimLink::new(server, line), tasks)
    }

    /// Adds a member, and says whether the sender was told that it was added.
    async fn add(link: &SimLink, member: usize) -> bool {
        let call = async {
            let mut wire = link.wire().await?;
            redis::cmd("SADD").arg("set").arg(member).query_async::<usize>(&mut wire).await
        };
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
        assert!(told < 90 && done > told, "{told} {done}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_its_sender_gave_up_is_executed_all_the_same() {
        let (told, done) = hundred(Rates { slow: 0.5, ..Rates::default() }).await;
        assert!(told < 80 && done > told + 20, "{told} {done}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_down_refuses_at_once_and_a_dead_process_hears_nothing() {
        let (_, link, _tasks) = linked(Rates::default());
        link.line.faults().set_down(true);
        let before = Instant::now();
        assert!(!add(&link, 1).await);
        assert!(before.elapsed() < Duration::from_millis(100));
        link.line.faults().set_down(false);
        assert!(add(&link, 1).await);
        let (server, link, _tasks) = linked(Rates::default());
        let life = Life::new();
        let dead = SimLink::new(server, Line::new(link.line.network().clone(), Faults::new(1), life.clone()));
        life.end();
        assert!(!add(&dead, 1).await && add(&link, 1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wire_breaks_with_the_run_that_it_reaches() {
        let (server, link, _tasks) = linked(Rates::default());
        let old = link.wire().await.unwrap().run();
        let snapshot = server.lock().unwrap().snapshot();
        server.lock().unwrap().restart_with(snapshot);
        assert!(!add(&link, 1).await);
        assert!(add(&link, 1).await);
        assert_ne!(link.wire().await.unwrap().run(), old);
    }

    #[tokio::test(start_paused = true)]
    async fn the_driver_understands_errors_scripts_pipelines_and_transactions() {
        let (_, link, _tasks) = linked(Rates::default());
        let mut wire = link.wire().await.unwrap();
        // Not known by its hash at first: the driver loads it.
        let script = redis::Script::new("return redis.call('HINCRBY', KEYS[1], 'n', ARGV[1])");
        assert_eq!(script.key("h").arg(5).invoke_async::<i64>(&mut wire).await.unwrap(), 5);
        let wrong = redis::cmd("GET").arg("h").query_async::<String>(&mut wire).await.unwrap_err();
        assert_eq!(wrong.code(), Some("WRONGTYPE"));
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGET").arg("h").arg("n").cmd("GET").arg("h").ignore_errors();
        let answers: Vec<RedisResult<String>> = pipeline.query_async(&mut wire).await.unwrap();
        assert!(matches!(&answers[0], Ok(text) if text == "5") && answers[1].is_err());
        let mut pipeline = redis::pipe();
        pipeline.atomic().cmd("SADD").arg("s").arg("a").ignore().cmd("SCARD").arg("s");
        assert_eq!(pipeline.query_async::<(i64,)>(&mut wire).await.unwrap(), (1,));
    }
}
