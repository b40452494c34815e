//! `orbit doctor`, as a command and as a function.

use std::collections::BTreeMap;
use std::process::Output;
use std::time::Duration;

use bson::{Document, doc};
use chrono::{DateTime, TimeDelta, Utc};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use orbit::config::{Config, Durability, ExposeSecret};
use orbit::doctor::{self, Verdict};
use orbit::domain::clock::{Clock, SystemClock};
use orbit::supervisor::{AppendFsync, RedisServer, free_port};
use serde_json::Value;

use crate::harness::process::{environment, orbit, text};
use crate::harness::s3::S3Server;
use crate::harness::{self, TestApp};

async fn run(config: &Config, arguments: &[&str], more: &[(&str, &str)]) -> Output {
    let mut command = orbit();
    command.arg("doctor").args(arguments).envs(environment(config, 0)).envs(more.iter().copied());
    tokio::time::timeout(Duration::from_secs(60), command.output()).await.expect("it does not end").unwrap()
}

/// The verdict of each check, what was found, and the advice; the worst verdict if there are more of one name.
async fn verdicts(config: &Config) -> (bool, BTreeMap<String, (String, String)>) {
    let output = run(config, &["--json"], &[]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    assert_eq!(report["ok"], output.status.success());
    let mut found = BTreeMap::new();
    for check in report["checks"].as_array().unwrap() {
        let field = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(field("verdict") == "ok", check["advice"].is_null(), "what is not well says what to do: {check}");
        let said = format!("{} -> {}", field("found"), field("advice"));
        let worse = |(old, _): &(String, String)| old == "ok" || field("verdict") == "fail";
        if found.get(&field("check")).is_none_or(worse) {
            found.insert(field("check"), (field("verdict"), said));
        }
    }
    (output.status.success(), found)
}

#[track_caller]
fn assert_said(found: &BTreeMap<String, (String, String)>, check: &str, verdict: &str, words: &str) {
    let (is, said) = found.get(check).unwrap_or_else(|| panic!("nothing about {check}: {found:?}"));
    assert!(is == verdict && said.contains(words), "{check} is {is}: {said}");
}

async fn database(config: &Config) -> mongodb::Database {
    let client = mongodb::Client::with_uri_str(config.mongo.uri.expose_secret()).await.unwrap();
    client.database(&config.mongo.database)
}

const LIVE_CHECKS: [&str; 7] =
    ["durability", "redis", "redis clock", "redis memory", "redis role", "redis scripts", "redis version"];
const OTHER_CHECKS: [&str; 9] = [
    "configuration",
    "indexes",
    "media disk",
    "media folder",
    "migrations",
    "mongodb",
    "mongodb clock",
    "mongodb version",
    "replica set",
];

#[tokio::test]
async fn an_installation_that_is_well_passes_every_check_in_a_line_of_its_own() {
    let redis = harness::own_redis().await;
    let mut config = harness::config().await;
    config.live.url = redis.url().into();
    config.live.durability = Durability::Everysec;
    let app = TestApp::with(config).await;

    let (success, found) = verdicts(app.config()).await;
    let output = run(app.config(), &[], &[]).await;

    assert!(success, "{found:?}");
    let expected: Vec<&str> = LIVE_CHECKS.into_iter().chain(OTHER_CHECKS).chain(["open files"]).collect();
    for check in &expected {
        let (verdict, said) = &found[*check];
        // A machine may allow few files, and the test settings are not those of a production.
        assert!(
            verdict == "ok" || ["open files", "configuration", "media disk", "replica set"].contains(check),
            "{said}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{:?}", found.keys());
    assert_said(&found, "durability", "ok", Durability::Everysec.at_risk());
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let known = |line: &str| ["ok    ", "warn  "].iter().any(|word| line.starts_with(word));
    assert!(printed.lines().all(known), "{printed}");
    assert!(printed.lines().count() >= expected.len());
    app.finish().await;
}

#[tokio::test]
async fn a_redis_that_is_away_or_hangs_costs_its_own_line_only() {
    let mut redis = harness::own_redis().await;
    let mut config = harness::config().await;
    config.live.url = redis.url().into();
    config.live.deadline_ms = 500;
    let app = TestApp::with(config).await;
    let config = app.config();
    let assert_away = async || {
        let (success, found) = verdicts(config).await;
        assert!(!success);
        assert_said(&found, "redis", "fail", "the live store is unavailable");
        for check in OTHER_CHECKS {
            assert_ne!(found[check].0, "fail", "{check}: {}", found[check].1);
        }
        for check in LIVE_CHECKS.iter().filter(|check| **check != "redis") {
            assert!(!found.contains_key(*check), "{check} cannot be known");
        }
    };

    kill(Pid::from_raw(i32::try_from(redis.pid().unwrap()).unwrap()), Signal::SIGSTOP).unwrap();
    assert_away().await;
    redis.kill().await;
    assert_away().await;
    let output = run(config, &[], &[]).await;
    let line = text(&output).lines().find(|line| line.starts_with("FAIL")).unwrap().to_owned();
    assert!(line.contains(&format!("127.0.0.1:{}", redis.port())) && line.contains(" -> start Redis"), "{line}");
    app.finish().await;
}

#[tokio::test]
async fn a_database_that_is_away_costs_its_own_line_only() {
    let mut config = harness::config().await;
    config.mongo.uri = format!("mongodb://127.0.0.1:{}/", free_port().unwrap()).into();
    config.mongo.deadline_ms = 1_000;
    let (success, found) = verdicts(&config).await;
    assert!(!success);
    assert_said(&found, "mongodb", "fail", "start MongoDB");
    assert!(LIVE_CHECKS.iter().all(|check| found[*check].0 != "fail"), "{found:?}");
    assert!(!found.contains_key("migrations"));
}

#[tokio::test]
async fn no_secret_is_shown_whatever_is_wrong() {
    let mut config = harness::config().await;
    let redis = harness::own_redis().await;
    let port = redis.port();
    config.mongo.deadline_ms = 500;
    for (live, mongo) in [
        // Nobody there; a wrong password; what cannot be read, in three ways.
        ("redis://u:hunter2@127.0.0.1:1/0".to_owned(), "mongodb://u:hunter2@127.0.0.1:1/?authSource=admin"),
        (format!("redis://u:hunter2@127.0.0.1:{port}/0"), "mongodb://u:hunter2"),
        ("redis://u:hunter2@@:x".to_owned(), "mongodb://u:hunter2@127.0.0.1:hunter2/"),
        ("hunter2".to_owned(), "mongodb://u:hunter2@x@127.0.0.1:1/"),
    ] {
        config.live.url = live.clone().into();
        config.mongo.uri = mongo.into();
        for arguments in [&[] as &[&str], &["--json"]] {
            let output = run(&config, arguments, &[("ORBIT__AUTH__JWT_SECRET", "hunter2")]).await;
            assert!(!output.status.success());
            let said = text(&output);
            assert!(!said.contains("hunter2") && !said.contains("panicked"), "{live} {mongo}: {said}");
        }
    }
}

#[tokio::test]
async fn what_the_configuration_lacks_is_said_and_the_rest_is_looked_at() {
    let config = harness::config().await;
    let output =
        run(&config, &["--json"], &[("ORBIT__AUTH__JWT_SECRET", ""), ("ORBIT__LIVE__REPLICAS_MIN", "0")]).await;
    assert!(!output.status.success());
    let said = text(&output);
    for words in ["auth.jwt_secret", "openssl rand", "live.replicas_min must be at least 1", "\"redis clock\""] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let output = run(&config, &[], &[("ORBIT__SERVER__PROT", "1")]).await;
    assert!(!output.status.success());
    assert!(text(&output).starts_with("FAIL  configuration"), "{}", text(&output));
}

#[tokio::test]
async fn a_promise_that_the_server_does_not_keep_fails_with_what_to_set() {
    let mut options = harness::redis_options(AppendFsync::Everysec);
    options.maxmemory_policy = "allkeys-lru";
    let redis = RedisServer::start_with_arguments(options, &["--maxmemory", "4mb"]).await.unwrap();
    let mut config = harness::config().await;
    config.live.url = redis.url().into();
    for (level, verdict, words) in [
        (Durability::None, "warn", "everysec, always or replicas"),
        (Durability::Always, "fail", "set its appendfsync to always"),
        (Durability::Replicas, "fail", "attach replicas"),
    ] {
        config.live.durability = level;
        let (success, found) = verdicts(&config).await;
        assert!(!success, "it evicts");
        assert_said(&found, "durability", verdict, words);
        assert_said(&found, "redis memory", "fail", "set its maxmemory-policy to noeviction");
    }

    let port = redis.port().to_string();
    let options = harness::redis_options(AppendFsync::Everysec);
    let replica = RedisServer::start_with_arguments(options, &["--replicaof", "127.0.0.1", &port]).await.unwrap();
    config.live.url = replica.url().into();
    let (_, found) = verdicts(&config).await;
    assert_said(&found, "redis role", "fail", "point live.url to its primary");
}

#[tokio::test]
async fn a_database_that_lacks_an_index_or_has_another_history_is_told_apart_from_a_new_one() {
    let app = TestApp::start().await;
    let config = app.config();
    let database = database(config).await;
    let orders = database.collection::<Document>("orders");
    orders.drop_index("reservation_unique").await.unwrap();
    let (success, found) = verdicts(config).await;
    assert!(!success);
    assert_said(&found, "indexes", "fail", "orders.reservation_unique");
    // What it advises is what mends it.
    let advice = &found["indexes"].1;
    let command = &advice[advice.find("db.runCommand(").unwrap() + "db.runCommand(".len()..advice.rfind(')').unwrap()];
    let quoted = command.replacen("createIndexes", "\"createIndexes\"", 1).replacen("indexes:", "\"indexes\":", 1);
    let command: Document = serde_json::from_str(&quoted).unwrap();
    database.run_command(command).await.unwrap();
    assert!(verdicts(config).await.0);

    let ledger = database.collection::<Document>("migrations");
    ledger.insert_one(doc! { "_id": "9999_later", "checksum": "x" }).await.unwrap();
    assert_said(&verdicts(config).await.1, "migrations", "warn", "9999_later");
    ledger.update_one(doc! { "_id": "0001_initial" }, doc! { "$set": { "checksum": "another" } }).await.unwrap();
    let (success, found) = verdicts(config).await;
    assert!(!success);
    assert_said(&found, "migrations", "fail", "0001_initial");
    app.finish().await;

    let empty = harness::config().await;
    let (success, found) = verdicts(&empty).await;
    assert!(success, "a new installation is no failure: {found:?}");
    assert_said(&found, "migrations", "warn", "the next start applies them");
}

/// A machine whose clock is wrong.
struct Off(TimeDelta);

impl Clock for Off {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + self.0
    }
}

#[tokio::test]
async fn clocks_that_disagree_are_a_warning_and_then_a_failure() {
    let config = harness::config().await;
    for (seconds, expected) in [(0, Verdict::Ok), (3, Verdict::Warn), (-3, Verdict::Warn), (30, Verdict::Fail)] {
        let report = doctor::examine(Ok(config.clone()), &Off(TimeDelta::seconds(seconds))).await;
        for check in ["redis clock", "mongodb clock"] {
            let finding = report.checks.iter().find(|finding| finding.check == check).unwrap();
            assert_eq!(finding.verdict, expected, "{seconds} s: {finding}");
        }
        assert_eq!(report.ok, expected != Verdict::Fail, "{report:?}");
    }
}

#[tokio::test]
async fn a_bucket_opens_to_its_own_credentials_only() {
    let s3 = S3Server::start().await;
    let mut config = harness::config().await;
    s3.configure(&mut config.media);
    let bucket = async |config: &Config| {
        let report = doctor::examine(Ok(config.clone()), &SystemClock).await;
        report.checks.into_iter().find(|finding| finding.check == "media bucket").unwrap()
    };
    assert_eq!(bucket(&config).await.verdict, Verdict::Ok);
    config.media.s3.secret_access_key = "hunter2hunter2".into();
    let refused = bucket(&config).await;
    assert_eq!(refused.verdict, Verdict::Fail);
    assert!(refused.found.contains("orbit-images") && !refused.to_string().contains("hunter2"), "{refused}");
}
