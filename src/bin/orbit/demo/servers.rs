//! What the demo runs: Redis, `MongoDB`, and the service in this very process. Stopped in the opposite order.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::Context;
use orbit::app::App;
use orbit::config::{self, Config, MediaBackend, SecretString};
use orbit::http::serve::Running;
use orbit::load::progress::Progress;
use orbit::store::mongo::replica_set::initiate_replica_set;
use orbit::supervisor::{AppendFsync, MongoKind, MongoOptions, MongoServer, RedisOptions, RedisServer, free_port};
use orbit::telemetry::logs;

use super::home::Home;
use super::secrets::Secrets;

const PORT: u16 = 9132;
/// Connections of others than the buyers: a browser, a script.
const OTHER_CONNECTIONS: usize = 1_000;

/// What has been started so far. Dropping it kills what still runs.
#[derive(Default)]
pub(super) struct Servers {
    service: Option<Running>,
    mongo: Option<MongoServer>,
    redis: Option<RedisServer>,
}

impl Servers {
    /// Starts everything; what was started before an error stays, to be stopped.
    pub(super) async fn start(
        &mut self,
        home: &Home,
        secrets: &Secrets,
        port: Option<u16>,
        buyers: usize,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let redis_url = self.start_redis(home, progress).await?;
        let mongo_uri = self.start_mongo(home, progress).await?;
        // As late as can be: another process may take it meanwhile.
        let port = choose_port(port, progress)?;
        let config = configure(home, secrets, port, buyers, &redis_url, &mongo_uri)?;
        let log = home.path("orbit.log");
        log_into(&log, &config)?;
        let cost = config.auth.bcrypt_cost;
        let service = App::start(config).await.context("cannot start the service")?;
        progress.say(&format!("  Orbit on http://{} (it logs into {})", service.address, log.display()));
        self.service = Some(service);
        progress.say(&format!("\n{}", super::hashing_note(cost, buyers)));
        Ok(())
    }

    /// The running service.
    pub(super) fn service(&self) -> anyhow::Result<&Running> {
        self.service.as_ref().context("the service does not run")
    }

    async fn start_redis(&mut self, home: &Home, progress: &Progress) -> anyhow::Result<String> {
        let options = RedisOptions {
            dir: home.path("redis"),
            append_fsync: AppendFsync::Everysec,
            maxmemory_policy: "noeviction",
            port: None,
        };
        let redis = self.redis.insert(RedisServer::start(options).await.with_context(|| stuck("Redis", home))?);
        progress.say(&format!("  Redis on 127.0.0.1:{} (append-only file, nothing is evicted)", redis.port()));
        Ok(redis.url())
    }

    async fn start_mongo(&mut self, home: &Home, progress: &Progress) -> anyhow::Result<String> {
        let options = MongoOptions { dir: home.path("mongo"), durable: true, port: None };
        let mongo = self.mongo.insert(MongoServer::start(options).await.with_context(|| stuck("MongoDB", home))?);
        let kind = match mongo.kind() {
            MongoKind::Mongod => "MongoDB",
            MongoKind::StandIn => "A MongoDB stand-in, for trials only (production is MongoDB 7 or newer),",
        };
        progress.say(&format!("  {kind} on 127.0.0.1:{}", mongo.port()));
        let uri = mongo.uri();
        if mongo.needs_initiate() {
            initiate_replica_set(&uri).await.context("cannot make MongoDB a replica set")?;
        }
        Ok(uri)
    }

    /// Stops everything in order: first the service, which uses the others.
    pub(super) async fn stop(&mut self, progress: &Progress) {
        if let Some(service) = self.service.take()
            && !service.stop().await
        {
            progress.say("  the service still had work when its time was up");
        }
        if let Some(mut mongo) = self.mongo.take() {
            mongo.stop().await;
        }
        if let Some(mut redis) = self.redis.take() {
            redis.stop().await;
        }
        progress.say("  everything is stopped");
    }
}

/// The service logs into a file: the terminal shows the sale.
fn log_into(file: &Path, config: &Config) -> anyhow::Result<()> {
    let log = File::options().create(true).append(true).open(file);
    logs::start_in(&config.log, log.with_context(|| format!("cannot write {}", file.display()))?);
    Ok(())
}

fn stuck(server: &str, home: &Home) -> String {
    format!("cannot start {server} (if it stays so, delete {} to start from nothing)", home.dir().display())
}

/// The port that was asked for, or the usual one, or a free one if that is taken.
fn choose_port(wanted: Option<u16>, progress: &Progress) -> anyhow::Result<u16> {
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(drop);
    if let Some(port) = wanted {
        return free(port).map(|()| port).with_context(|| format!("cannot listen on port {port}; give another --port"));
    }
    if free(PORT).is_ok() {
        return Ok(PORT);
    }
    let port = free_port()?;
    progress.say(&format!("  port {PORT} is taken: the API listens on {port}"));
    Ok(port)
}

fn configure(
    home: &Home,
    secrets: &Secrets,
    port: u16,
    buyers: usize,
    redis_url: &str,
    mongo_uri: &str,
) -> anyhow::Result<Config> {
    let secret = |text: &str| SecretString::from(text.to_owned());
    let media = home.path("media");
    super::create_dir(&media)?;
    let mut config = Config::with_layer(config::DEMO)?;
    config.server.port = port;
    config.server.connections_max = config.server.connections_max.max(buyers + OTHER_CONNECTIONS);
    config.live.url = secret(redis_url);
    config.mongo.uri = secret(mongo_uri);
    config.auth.jwt_secret = secret(&secrets.jwt_secret);
    config.accounts.data_key = secret(&secrets.data_key);
    config.accounts.bootstrap_admin_email = super::ADMIN_EMAIL.to_owned();
    config.accounts.bootstrap_admin_password = secret(&secrets.admin_password);
    config.media.backend = MediaBackend::Filesystem;
    config.media.filesystem.dir = media;
    config.validate()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_configuration_can_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::claim(dir.path().to_owned()).unwrap();
        let secrets = Secrets::of(home.dir()).unwrap();
        let config = configure(&home, &secrets, 1, 50_000, "redis://127.0.0.1:2/0", "mongodb://127.0.0.1:3/").unwrap();
        assert!(config.server.connections_max > 50_000);
        assert!(config.media.filesystem.dir.is_dir());
    }

    #[test]
    fn a_port_that_was_asked_for_must_be_free_and_the_usual_one_need_not_be() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let progress = Progress::new(true);
        assert!(choose_port(Some(port), &progress).unwrap_err().to_string().contains("--port"));
        assert!(choose_port(None, &progress).is_ok());
    }
}
