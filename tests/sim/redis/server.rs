//! The server: who it says it is, and the commands that are about it and not about data.

use super::arguments::{Arguments, shown};
use super::commands::{self, Command, Effect};
use super::glob;
use super::keyspace::Keyspace;
use super::lua::Engine;
use super::number::integer;
use super::reply::{Answer, Bytes, OUT_OF_MEMORY, Reply, SYNTAX};

/// Where the time comes from, in microseconds since 1970.
pub type Now = Box<dyn Fn() -> u64 + Send>;

/// Sees every command and what was answered, with the data as it is then.
pub type Observer = Box<dyn FnMut(&Keyspace, &[Bytes], &Reply) + Send>;

/// A Redis server.
pub struct Redis {
    data: Keyspace,
    engine: Engine,
    now: Now,
    /// Memory is full, and nothing may be evicted.
    full: bool,
    /// Counts the processes that this server has been.
    incarnation: u64,
    /// Counts what may have changed the data.
    changes: u64,
    observer: Option<Observer>,
}

/// A whole data set, as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot(Keyspace);

impl Redis {
    /// An empty server.
    pub fn new(now: Now) -> Self {
        Self {
            data: Keyspace::default(),
            engine: Engine::new(),
            now,
            full: false,
            incarnation: 1,
            changes: 0,
            observer: None,
        }
    }

    /// The data set as it is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.data.clone())
    }

    /// Another process with this data set in its place: a restart if it is the newest, a restart that lost its last
    /// second or a fail-over if it is older, a wipe if it is empty. Scripts are not part of a data set.
    pub fn restart_with(&mut self, snapshot: Snapshot) {
        self.incarnation += 1;
        self.changes += 1;
        self.data = snapshot.0;
        self.engine.forget_all();
    }

    /// From now on memory is full, or is not.
    pub const fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Which process this is: the number behind its run id.
    pub const fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Grows with every change of the data.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Shows every command from now on to an observer.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Makes scripts run with other texts in the place of some of theirs, under the hash that they always had.
    pub const fn patch_scripts(&mut self, changes: &'static [(&'static str, &'static str)]) {
        self.engine.patch(changes);
    }

    /// Every key with its value, for checks.
    pub fn data(&mut self) -> &Keyspace {
        self.data.set_now_us((self.now)());
        &self.data
    }

    /// Runs one command: its name and its arguments.
    pub fn execute(&mut self, words: &[Bytes]) -> Reply {
        let reply = self.dispatch(words);
        if let Some(observer) = &mut self.observer {
            observer(&self.data, words, &reply);
        }
        reply
    }

    /// As MULTI, the commands and EXEC: all of them or, if memory is full, none. The answer is EXEC's.
    pub fn execute_together(&mut self, commands: &[Vec<Bytes>]) -> Reply {
        let grows =
            |words: &Vec<Bytes>| commands::find(&words[0]).is_some_and(|command| command.effect == Effect::Grow);
        if self.full && commands.iter().any(grows) {
            return Reply::Error("EXECABORT Transaction discarded because of previous errors.".to_owned());
        }
        Reply::Array(commands.iter().map(|words| self.execute(words)).collect())
    }

    fn dispatch(&mut self, words: &[Bytes]) -> Reply {
        self.data.set_now_us((self.now)());
        let Some((name, arguments)) = words.split_first() else { return Reply::Error("ERR empty command".to_owned()) };
        if let Some(command) = commands::find(name) {
            let refused = self.full && command.effect == Effect::Grow;
            return if refused {
                Reply::Error(OUT_OF_MEMORY.to_owned())
            } else {
                run(&mut self.data, &mut self.changes, command, arguments)
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
                self.changes += 1;
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
        let (data, changes, full) = (&mut self.data, &mut self.changes, self.full);
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
            run(data, changes, command, &words[1..])
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

    fn settings(&self) -> [(&'static str, &'static str); 5] {
        [
            ("appendonly", "yes"),
            ("appendfsync", "everysec"),
            ("no-appendfsync-on-rewrite", "no"),
            ("maxmemory", if self.full { "1" } else { "0" }),
            ("maxmemory-policy", "noeviction"),
        ]
    }

    fn config(&self, mut arguments: Arguments<'_>) -> Answer {
        if !arguments.keyword("GET") {
            return Err("ERR unknown subcommand or wrong number of arguments for 'config' command".to_owned());
        }
        let asked = arguments.word()?.to_ascii_lowercase();
        let found = self.settings().into_iter().filter(|(name, _)| glob::matches(&asked, name.as_bytes()));
        Ok(Reply::list(found.flat_map(|(name, value)| [name, value])))
    }

    fn info(&self) -> String {
        let run_id = format!("{:016x}{:024}", self.incarnation, 0);
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

fn run(data: &mut Keyspace, changes: &mut u64, command: &Command, arguments: &[Bytes]) -> Reply {
    let reply = command.check_arity(arguments.len()).and_then(|()| (command.run)(data, arguments)).into();
    *changes += u64::from(may_have_changed(command.effect, &reply));
    reply
}

/// Reading what is not there and removing what is gone changes nothing.
fn may_have_changed(effect: Effect, reply: &Reply) -> bool {
    match (effect, reply) {
        (Effect::Read, _) | (_, Reply::Error(_)) => false,
        (Effect::Shrink, Reply::Nil | Reply::Int(0)) => false,
        // XAUTOCLAIM: a position, what was claimed, what was found deleted.
        (Effect::Shrink, Reply::Array(parts)) if parts.len() == 3 => {
            parts[1..].iter().any(|part| *part != Reply::Array(Vec::new()))
        }
        _ => true,
    }
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
