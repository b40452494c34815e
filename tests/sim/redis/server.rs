//! The server: who it says it is, and the commands that are about it and not about data.

use super::arguments::{Arguments, shown};
use super::commands::{self, Command, Effect};
use super::keyspace::Keyspace;
use super::lua::Engine;
use super::number::integer;
use super::reply::{Answer, Bytes, OUT_OF_MEMORY, Reply, SYNTAX};

/// Where the time comes from, in microseconds since 1970.
pub type Now = Box<dyn Fn() -> u64 + Send>;

/// A Redis server.
pub struct Redis {
    data: Keyspace,
    engine: Engine,
    now: Now,
    /// Memory is full, and nothing may be evicted.
    full: bool,
    /// Counts the processes that this server has been.
    incarnation: u64,
}

/// A whole data set, as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot(Keyspace);

impl Redis {
    /// An empty server.
    pub fn new(now: Now) -> Self {
        Self { data: Keyspace::default(), engine: Engine::new(), now, full: false, incarnation: 1 }
    }

    /// The data set as it is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.data.clone())
    }

    /// Another process with this data set in its place: a restart if it is the newest, a restart that lost its last
    /// second or a fail-over if it is older, a wipe if it is empty. Scripts are not part of a data set.
    pub fn restart_with(&mut self, snapshot: Snapshot) {
        self.incarnation += 1;
        self.data = snapshot.0;
        self.engine.forget_all();
    }

    /// From now on memory is full, or is not.
    pub const fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Runs one command: its name and its arguments.
    pub fn execute(&mut self, words: &[Bytes]) -> Reply {
        self.data.set_now_us((self.now)());
        let Some((name, arguments)) = words.split_first() else { return Reply::Error("ERR empty command".to_owned()) };
        if let Some(command) = commands::find(name) {
            let refused = self.full && command.effect == Effect::Grow;
            return if refused {
                Reply::Error(OUT_OF_MEMORY.to_owned())
            } else {
                run(&mut self.data, command, arguments)
            };
        }
        self.execute_own(&name.to_ascii_uppercase(), arguments).into()
    }

    fn execute_own(&mut self, name: &[u8], arguments: &[Bytes]) -> Answer {
        match name {
            b"EVAL" => {
                let hash = self.engine.load(arguments.first().ok_or(SYNTAX)?)?;
                self.evaluate(&hash, &arguments[1..])
            }
            b"EVALSHA" => {
                let hash = shown(arguments.first().ok_or(SYNTAX)?).to_lowercase();
                if !self.engine.knows(&hash) {
                    return Err("NOSCRIPT No matching script. Please use EVAL.".to_owned());
                }
                self.evaluate(&hash, &arguments[1..])
            }
            b"SCRIPT" => self.script(Arguments::new(arguments)),
            b"INFO" => Ok(Reply::text(self.info())),
            b"CONFIG" => self.config(Arguments::new(arguments)),
            // There is no replica.
            b"WAIT" => Ok(Reply::Int(0)),
            b"FLUSHALL" => {
                self.data = Keyspace::default();
                Ok(Reply::ok())
            }
            _ => Err(format!("ERR unknown command '{}', with args beginning with: ", shown(name))),
        }
    }

    /// Number of keys, keys, arguments.
    fn evaluate(&mut self, hash: &str, words: &[Bytes]) -> Answer {
        let (count, rest) = words.split_first().ok_or("ERR wrong number of arguments for 'eval' command")?;
        let count = usize::try_from(integer(count)?).map_err(|_| "ERR Number of keys can't be negative")?;
        if count > rest.len() {
            return Err("ERR Number of keys can't be greater than number of args".to_owned());
        }
        let (keys, args) = rest.split_at(count);
        let (data, full) = (&mut self.data, self.full);
        let mut has_written = false;
        let reply = self.engine.run(hash, keys, args, |words| {
            let Some(command) = commands::find(&words[0]) else {
                return Reply::Error("ERR Unknown Redis command called from script".to_owned());
            };
            if command.check_arity(words.len() - 1).is_err() {
                return Reply::Error("ERR Wrong number of args calling Redis command from script".to_owned());
            }
            // Only the first write can be refused: a script is not stopped in the middle.
            if full && !has_written && command.effect == Effect::Grow {
                return Reply::Error(OUT_OF_MEMORY.to_owned());
            }
            has_written |= command.effect != Effect::Read;
            run(data, command, &words[1..])
        });
        Ok(reply)
    }

    fn script(&mut self, mut arguments: Arguments<'_>) -> Answer {
        if arguments.keyword("LOAD") {
            return self.engine.load(arguments.word()?).map(Reply::text);
        }
        if arguments.keyword("EXISTS") {
            let known = arguments.rest().iter().map(|hash| self.engine.knows(&shown(hash).to_lowercase()));
            return Ok(Reply::Array(known.map(|known| Reply::Int(i64::from(known))).collect()));
        }
        if arguments.keyword("FLUSH") {
            self.engine.forget_all();
            return Ok(Reply::ok());
        }
        Err("ERR unknown subcommand or wrong number of arguments for 'script' command".to_owned())
    }

    fn settings(&self) -> [(&'static str, &'static str); 4] {
        [
            ("appendonly", "yes"),
            ("appendfsync", "everysec"),
            ("maxmemory", if self.full { "1" } else { "0" }),
            ("maxmemory-policy", "noeviction"),
        ]
    }

    fn config(&self, mut arguments: Arguments<'_>) -> Answer {
        if !arguments.keyword("GET") {
            return Err("ERR unknown subcommand or wrong number of arguments for 'config' command".to_owned());
        }
        let asked = arguments.word()?.to_ascii_lowercase();
        let found = self.settings().into_iter().filter(|(name, _)| name.as_bytes() == asked);
        Ok(Reply::list(found.flat_map(|(name, value)| [name, value])))
    }

    fn info(&self) -> String {
        let run_id = format!("{:040x}", self.incarnation);
        let fields = [
            ("redis_version", "7.0.15".to_owned()),
            ("run_id", run_id.clone()),
            ("maxmemory_policy", "noeviction".to_owned()),
            ("loading", "0".to_owned()),
            ("aof_enabled", "1".to_owned()),
            ("role", "master".to_owned()),
            ("connected_slaves", "0".to_owned()),
            ("master_replid", run_id),
        ];
        fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
    }
}

fn run(data: &mut Keyspace, command: &Command, arguments: &[Bytes]) -> Reply {
    command.check_arity(arguments.len()).and_then(|()| (command.run)(data, arguments)).into()
}

#[test]
fn a_restart_with_an_older_data_set_loses_what_came_after_and_every_script() {
    let mut server = Redis::new(Box::new(|| 1_000_000));
    let words = |line: &str| line.split(' ').map(Bytes::from).collect::<Vec<Bytes>>();
    let hash = server.engine.load(b"return 1").unwrap();
    let run_id = server.info();
    server.execute(&words("SADD set early"));
    let snapshot = server.snapshot();
    server.execute(&words("SADD set late"));
    assert_eq!(server.execute(&words(&format!("EVALSHA {hash} 0"))), Reply::Int(1));
    server.restart_with(snapshot);
    assert_eq!(server.execute(&words("SMEMBERS set")), Reply::list(["early"]));
    let Reply::Error(text) = server.execute(&words(&format!("EVALSHA {hash} 0"))) else {
        panic!("it knows the script")
    };
    assert!(text.starts_with("NOSCRIPT"), "{text}");
    assert_ne!(server.info(), run_id);
    server.restart_with(Snapshot::default());
    assert_eq!(server.execute(&words("EXISTS set")), Reply::Int(0));
}
