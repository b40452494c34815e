//! A real server and the one in memory, side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orbit::supervisor::{AppendFsync, RedisOptions, RedisServer};
use redis::aio::{ConnectionLike, MultiplexedConnection};

use super::compare;
use crate::link::parsed;
use crate::redis::{Bytes, NODE_ENTRIES_MAX, Redis, Reply};

/// Both servers, and what they were told since the beginning.
pub struct Pair {
    real: MultiplexedConnection,
    pub fake: Redis,
    fake_us: Arc<AtomicU64>,
    history: Vec<String>,
    _server: RedisServer,
    _dir: tempfile::TempDir,
}

impl Pair {
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = RedisOptions {
            dir: dir.path().to_owned(),
            append_fsync: AppendFsync::Off,
            maxmemory_policy: "noeviction",
            port: None,
        };
        let node_entries_max = NODE_ENTRIES_MAX.to_string();
        let more = ["--stream-node-max-entries", &node_entries_max];
        let server = RedisServer::start_with_arguments(options, &more).await.unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        let real = client.get_multiplexed_async_connection().await.unwrap();
        let fake_us = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&fake_us);
        let fake = Redis::new(Box::new(move || clock.load(Ordering::Relaxed)));
        Self { real, fake, fake_us, history: Vec::new(), _server: server, _dir: dir }
    }

    /// Empties both.
    pub async fn begin(&mut self, what: String) {
        self.history = vec![what];
        for command in ["FLUSHALL", "SCRIPT FLUSH"] {
            self.agree(command.split(' ').map(Bytes::from).collect()).await;
        }
    }

    /// Runs a command on the real server only.
    pub async fn real(&mut self, words: &[Bytes]) -> Reply {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word.as_slice());
        }
        match self.real.req_packed_command(&command).await {
            Ok(value) => compare::reply(value),
            Err(error) => panic!("the real server does not answer: {error}"),
        }
    }

    /// Runs a command on both, at the same time of day.
    async fn both(&mut self, words: &[Bytes]) -> (Reply, Reply) {
        let Reply::Array(time) = self.real(&[b"TIME".to_vec()]).await else { panic!("TIME is an array") };
        let [seconds, micros] = [&time[0], &time[1]].map(|part| match part {
            Reply::Bulk(text) => String::from_utf8_lossy(text).parse::<u64>().unwrap(),
            other => panic!("{other:?} is no time"),
        });
        self.fake_us.store(seconds * 1_000_000 + micros, Ordering::Relaxed);
        let real = self.real(words).await;
        let fake = self.fake.execute(words);
        // What goes over the wire is what counts.
        (real, compare::reply(parsed(&fake).unwrap()))
    }

    /// Runs a command on both and compares what they answer.
    pub async fn agree(&mut self, words: Vec<Bytes>) {
        self.history.push(compare::shown(&words));
        let (real, fake) = self.both(&words).await;
        let (real, fake) = (compare::comparable(&words, real), compare::comparable(&words, fake));
        assert!(compare::same(&words, &real, &fake), "they differ:\n  real {real:?}\n  fake {fake:?}\n{}", self.told());
    }

    fn told(&self) -> String {
        self.history.join("\n")
    }

    /// Reads every key of both and compares.
    pub async fn agree_on_contents(&mut self) {
        let keys = self.keys().await;
        for key in keys {
            let kind = self.kind(&key).await;
            let command: &[&str] = match kind.as_str() {
                "string" => &["GET"],
                "hash" => &["HGETALL"],
                "set" => &["SMEMBERS"],
                "zset" => &["ZRANGE", "0", "-1", "WITHSCORES"],
                "stream" => &["XRANGE", "-", "+"],
                other => panic!("a key is a {other}"),
            };
            let mut words = vec![Bytes::from(command[0]), key.clone()];
            words.extend(command[1..].iter().map(|word| Bytes::from(*word)));
            self.agree(words).await;
            self.agree(vec![b"PTTL".to_vec(), key.clone()]).await;
            if kind == "stream" {
                self.agree(vec![b"XINFO".to_vec(), b"STREAM".to_vec(), key.clone()]).await;
                self.agree(vec![b"XINFO".to_vec(), b"GROUPS".to_vec(), key]).await;
            }
        }
    }

    async fn kind(&mut self, key: &Bytes) -> String {
        let words = [b"TYPE".to_vec(), key.clone()];
        let (real, fake) = self.both(&words).await;
        assert_eq!(real, fake, "{}\n{}", compare::shown(&words), self.told());
        let Reply::Status(kind) = real else { panic!("{real:?} is no type") };
        kind
    }

    /// Every key, by going through both servers page by page.
    async fn keys(&mut self) -> Vec<Bytes> {
        let (mut found, mut cursor) = (Vec::new(), b"0".to_vec());
        loop {
            let page = self.real(&[b"SCAN".to_vec(), cursor]).await;
            cursor = collect(page, &mut found);
            if cursor == b"0" {
                break;
            }
        }
        let mut own = self.fake_scan(&[b"SCAN".to_vec()], |_| {});
        for keys in [&mut found, &mut own] {
            keys.sort_unstable();
            keys.dedup();
        }
        assert_eq!(found, own, "the keys differ\n{}", self.told());
        found
    }
}

impl Pair {
    /// Goes through a set, or through all keys, of the server in memory; `between` may change it after each page.
    pub fn fake_scan(&mut self, scan: &[Bytes], mut between: impl FnMut(&mut Redis)) -> Vec<Bytes> {
        let (mut found, mut cursor) = (Vec::new(), b"0".to_vec());
        loop {
            let mut words = scan.to_vec();
            words.extend([cursor, b"COUNT".to_vec(), b"3".to_vec()]);
            cursor = collect(self.fake.execute(&words), &mut found);
            if cursor == b"0" {
                return found;
            }
            between(&mut self.fake);
        }
    }
}

/// Takes a page apart: its elements, and the next cursor.
fn collect(page: Reply, found: &mut Vec<Bytes>) -> Bytes {
    let Reply::Array(parts) = page else { panic!("{page:?} is no page") };
    let [Reply::Bulk(cursor), Reply::Array(elements)] = &parts[..] else { panic!("{parts:?} is no page") };
    for element in elements {
        let Reply::Bulk(element) = element else { panic!("{element:?} is no key") };
        found.push(element.clone());
    }
    cursor.clone()
}
