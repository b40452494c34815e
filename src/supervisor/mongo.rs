use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{ServerName, SupervisorError};
use super::process::Launch;
use super::programs::{MongoProgram, Places};
use super::readiness::Sign;
use super::server::Server;

/// The replica set that a `mongod` of ours is the only member of.
const REPLICA_SET: &str = "rs0";

/// Which server plays MongoDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MongoKind {
    /// MongoDB itself.
    Mongod,
    /// SecantusDB, which speaks MongoDB's protocol: for trials, demonstrations and tests only. It is a
    /// beta, its files are not promised to be readable by its next version, and nothing about its speed
    /// says anything about MongoDB's. Production is MongoDB 7 or newer.
    StandIn,
}

/// How to run a MongoDB.
#[derive(Debug, Clone)]
pub struct MongoOptions {
    /// Where it keeps its files; made if it does not exist.
    pub dir: PathBuf,
    /// `true` for data to keep: every commit reaches the disk. `false` for tests: what was acknowledged
    /// survives a crash of the server, but not one of the machine.
    pub durable: bool,
    /// The port on 127.0.0.1; `None` for a free one.
    pub port: Option<u16>,
}

/// A MongoDB server of ours, or a stand-in. Dropping it kills it.
#[derive(Debug)]
pub struct MongoServer {
    server: Server,
    kind: MongoKind,
}

impl MongoServer {
    /// Starts a MongoDB and waits until it answers. A new `mongod` can be used only after its replica set
    /// has been initiated: see [`needs_initiate`](Self::needs_initiate).
    ///
    /// # Errors
    ///
    /// When there is no program for it, the directory is taken or unusable, or the server ends or does not
    /// answer within 30 s.
    pub async fn start(options: MongoOptions) -> Result<Self, SupervisorError> {
        let (program, path) = Places::from_environment().mongo()?;
        let (kind, logged) = match program {
            MongoProgram::Mongod => (MongoKind::Mongod, "Waiting for connections"),
            MongoProgram::SecantusRust | MongoProgram::SecantusPython => (MongoKind::StandIn, "listening on"),
        };
        prepare(&options.dir)?;
        let sign = Sign::MongoHello { logged };
        let server = Server::start(ServerName::Mongo, &options.dir, options.port, sign, |dir, port| match program {
            MongoProgram::Mongod => mongod(path.clone(), dir, port),
            MongoProgram::SecantusRust | MongoProgram::SecantusPython => {
                stand_in(program, path.clone(), dir, port, options.durable)
            }
        })
        .await?;
        Ok(Self { server, kind })
    }

    /// Where clients connect. Directly: the one member of a replica set must not send them elsewhere.
    /// A connection costs the stand-in about 1 MB, so there its clients are asked for few.
    #[must_use]
    pub fn uri(&self) -> String {
        let port = self.port();
        match self.kind {
            MongoKind::Mongod => format!("mongodb://127.0.0.1:{port}/?directConnection=true"),
            MongoKind::StandIn => {
                format!("mongodb://127.0.0.1:{port}/?directConnection=true&maxPoolSize=20")
            }
        }
    }

    /// Which server it is.
    #[must_use]
    pub fn kind(&self) -> MongoKind {
        self.kind
    }

    /// Whether the replica set must be initiated before use, by
    /// `store::mongo::replica_set::initiate_replica_set(&server.uri())`, which does nothing to one that
    /// has been already. Not done here, because only the store may use the driver.
    #[must_use]
    pub fn needs_initiate(&self) -> bool {
        self.kind == MongoKind::Mongod
    }

    /// The port it listens on, the same after every restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Kills it with SIGKILL, as a crash would end it, and waits until it is gone. It can be restarted.
    pub async fn kill(&mut self) {
        self.server.kill().await;
    }

    /// Asks it to stop, and kills it if it has not after five seconds. It can be restarted.
    pub async fn stop(&mut self) {
        self.server.stop().await;
    }

    /// Starts it again on the same port and directory, having stopped it if it runs.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start); also when another process has taken the port meanwhile.
    pub async fn restart(&mut self) -> Result<(), SupervisorError> {
        self.server.restart().await
    }
}

/// `mongod` wants its data directory to exist, and the stand-in is given an empty configuration, without
/// which it would read one from the home directory or from /etc.
fn prepare(dir: &Path) -> Result<(), SupervisorError> {
    let data = data_dir(dir);
    fs::create_dir_all(&data).map_err(|source| SupervisorError::File {
        action: "create the directory",
        path: data,
        source,
    })?;
    let config = config_path(dir);
    fs::write(&config, "").map_err(|source| SupervisorError::File { action: "write", path: config, source })
}

fn data_dir(dir: &Path) -> PathBuf {
    dir.join("data")
}

fn config_path(dir: &Path) -> PathBuf {
    dir.join("mongo-empty.toml")
}

/// A replica set of one, for transactions and change streams exist only in a replica set.
fn mongod(path: PathBuf, dir: &Path, port: u16) -> Launch {
    let mut arguments: Vec<OsString> =
        ["--replSet", REPLICA_SET, "--bind_ip", "127.0.0.1", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"]
            .iter()
            .map(OsString::from)
            .collect();
    arguments.extend(["--port".into(), port.to_string().into(), "--dbpath".into(), data_dir(dir).into()]);
    // Its journal is always on, and the driver's write concern decides what waits for it.
    Launch { program: path, arguments, environment: Vec::new() }
}

/// Left to itself, the stand-in loses acknowledged writes when it is killed, whatever the write concern. Two
/// settings cure that: syncing on commit, and handing each commit to the system without waiting for the disk.
const WRITE_THROUGH: &str = "transaction_sync=(enabled=true,method=none)";

fn stand_in(kind: MongoProgram, path: PathBuf, dir: &Path, port: u16, durable: bool) -> Launch {
    let mut arguments: Vec<OsString> = vec![
        "--host".into(),
        "127.0.0.1".into(),
        "--port".into(),
        port.to_string().into(),
        "--config".into(),
        config_path(dir).into(),
        "--storage-path".into(),
        data_dir(dir).into(),
        "--cache-size".into(),
        "256M".into(),
    ];
    // The size of a journal file, which is allocated whole. The Python build has the same one built in.
    if kind == MongoProgram::SecantusRust {
        arguments.extend(["--log-file-max".into(), "10MB".into()]);
    }
    if durable {
        arguments.push("--sync-on-commit".into());
    }
    let write_through = (!durable).then_some(WRITE_THROUGH);
    let environment = vec![
        // The Rust build appends this to its own settings; the storage engine reads the other one itself.
        ("SECANTUS_WT_CONFIG_EXTRA", write_through.filter(|_| kind == MongoProgram::SecantusRust)),
        ("WIREDTIGER_CONFIG", write_through.filter(|_| kind == MongoProgram::SecantusPython)),
        // It would honour this, and it is meant for us.
        ("RUST_LOG", None),
        // Else the Python build keeps the line that says it listens in a buffer.
        ("PYTHONUNBUFFERED", Some("1")),
    ];
    Launch { program: path, arguments, environment }
}
