//! The servers of a test run. They end with the test process, whatever way it ends.

use std::path::PathBuf;
use std::sync::OnceLock;

use orbit::supervisor::{AppendFsync, MongoOptions, MongoServer, RedisOptions, RedisServer};
use tokio::sync::OnceCell;

/// Where the shared servers are.
#[derive(Debug, Clone)]
pub struct Servers {
    pub redis_url: String,
    pub mongo_uri: String,
}

/// The shared servers: given by the environment, or started by the first test that asks.
pub async fn servers() -> &'static Servers {
    static SERVERS: OnceCell<Servers> = OnceCell::const_new();
    SERVERS.get_or_init(start).await
}

/// Values that must live as long as the process.
fn keep<T: Send + Sync + 'static>(value: T) {
    Box::leak(Box::new(value));
}

async fn start() -> Servers {
    let redis_url = match std::env::var("ORBIT_TEST_REDIS_URL") {
        Ok(url) => url,
        Err(_) => {
            on_a_lasting_runtime(async {
                let server = own_redis().await;
                let url = server.url();
                keep(server);
                url
            })
            .await
        }
    };
    let mongo_uri = match std::env::var("ORBIT_TEST_MONGO_URI") {
        Ok(uri) => uri,
        Err(_) => {
            on_a_lasting_runtime(async {
                let server = own_mongo().await;
                let uri = server.uri();
                keep(server);
                uri
            })
            .await
        }
    };
    Servers { redis_url, mongo_uri }
}

/// A child process belongs to the runtime that started it, and each test's runtime ends with the test.
async fn on_a_lasting_runtime<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME
        .get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    runtime.spawn(work).await.unwrap()
}

fn temp_dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("orbit-test-{name}-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A Redis that keeps what it acknowledged, in a directory of its own.
pub fn redis_options(append_fsync: AppendFsync) -> RedisOptions {
    RedisOptions { dir: temp_dir("redis"), append_fsync, maxmemory_policy: "noeviction", port: None }
}

/// A Redis of the test's own, to be broken.
pub async fn own_redis() -> RedisServer {
    RedisServer::start(redis_options(AppendFsync::Everysec)).await.unwrap()
}

/// A MongoDB server that need not survive a kill of its process.
pub fn mongo_options() -> MongoOptions {
    MongoOptions { dir: temp_dir("mongo"), durable: false, port: None }
}

/// A MongoDB server of the test's own, to be broken.
pub async fn own_mongo() -> MongoServer {
    started(mongo_options()).await
}

/// As [`own_mongo`], keeping what it acknowledged when it is killed.
pub async fn own_lasting_mongo() -> MongoServer {
    started(MongoOptions { durable: true, ..mongo_options() }).await
}

async fn started(options: MongoOptions) -> MongoServer {
    let server = MongoServer::start(options).await.unwrap();
    if server.needs_initiate() {
        orbit::store::mongo::replica_set::initiate_replica_set(&server.uri()).await.unwrap();
    }
    server
}
