//! The files that deploy Orbit agree with each other and with the configuration. No container is started here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use figment::Figment;
use figment::providers::{Format, Toml};
use serde::Deserialize;
use serde_json::Value;

/// The parts of the Compose specification that the file uses; a misspelled key is unknown and fails.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compose {
    name: String,
    services: BTreeMap<String, Service>,
    configs: BTreeMap<String, InlineConfig>,
    volumes: BTreeMap<String, Option<BTreeMap<String, String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    build: Option<String>,
    image: String,
    #[serde(default)]
    entrypoint: Vec<String>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    depends_on: BTreeMap<String, Dependency>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    ports: Vec<String>,
    #[serde(default)]
    volumes: Vec<String>,
    #[serde(default)]
    configs: Vec<ConfigMount>,
    #[serde(default)]
    tmpfs: Vec<String>,
    healthcheck: Option<Healthcheck>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    cap_drop: Vec<String>,
    #[serde(default)]
    security_opt: Vec<String>,
    stop_grace_period: Option<String>,
    restart: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dependency {
    condition: Condition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Condition {
    ServiceHealthy,
    ServiceCompletedSuccessfully,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Healthcheck {
    test: Vec<String>,
    interval: String,
    timeout: String,
    retries: u32,
    start_period: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigMount {
    source: String,
    target: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InlineConfig {
    content: String,
}

impl Service {
    /// A service that ends by itself: others wait for its end, and it is not started again.
    fn is_one_shot(&self) -> bool {
        self.restart.starts_with("on-failure") || self.restart == "no"
    }
}

fn read(path: &str) -> String {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()))
}

fn compose() -> Compose {
    serde_yaml_ng::from_str(&read("docker-compose.yml")).unwrap()
}

fn defaults() -> Value {
    Figment::from(Toml::string(&read("configs/default.toml"))).extract().unwrap()
}

fn seconds(text: &str) -> u64 {
    text.strip_suffix('s').and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text} is not in seconds"))
}

/// Whether `words` stand in a row among the arguments.
fn has(arguments: &[String], words: &[&str]) -> bool {
    arguments.windows(words.len()).any(|window| window == words)
}

#[test]
fn every_service_of_compose_says_when_it_is_ready() {
    let compose = compose();
    assert_eq!(compose.name, "orbit");
    for (name, service) in &compose.services {
        match &service.healthcheck {
            Some(check) => {
                assert!(!service.is_one_shot(), "{name} is checked but ends by itself");
                assert!(matches!(check.test[0].as_str(), "CMD" | "CMD-SHELL"), "{name}: {:?}", check.test);
                assert!(check.test.len() > 1 && check.retries > 0, "{name}");
                assert!(seconds(&check.interval) > 0 && seconds(&check.timeout) > 0, "{name}");
                assert!(check.start_period.as_deref().is_none_or(|period| seconds(period) <= 60), "{name}");
            }
            None => assert!(service.is_one_shot(), "{name} has no healthcheck"),
        }
    }
}

#[test]
fn what_a_service_of_compose_depends_on_exists_and_can_come_true() {
    let compose = compose();
    for (name, service) in &compose.services {
        for (other, Dependency { condition }) in &service.depends_on {
            let other_service = compose.services.get(other).unwrap_or_else(|| panic!("{name} waits for no {other}"));
            let wanted = if other_service.is_one_shot() {
                Condition::ServiceCompletedSuccessfully
            } else {
                Condition::ServiceHealthy
            };
            assert_eq!(*condition, wanted, "{name} waits for {other}");
        }
        for volume in &service.volumes {
            let (source, target) = volume.split_once(':').unwrap();
            assert!(compose.volumes.contains_key(source), "{name}: the volume {source} is not declared");
            assert!(target.starts_with('/'), "{name}: {volume}");
        }
        for ConfigMount { source, target } in &service.configs {
            assert!(compose.configs.contains_key(source), "{name}: the config {source} is not declared");
            assert!(has(&service.command, &[&format!("-s3.config={target}")]), "{name} does not read {target}");
        }
    }
    let used: BTreeSet<&str> =
        compose.services.values().flat_map(|service| &service.volumes).filter_map(|v| v.split(':').next()).collect();
    assert_eq!(used, compose.volumes.keys().map(String::as_str).collect(), "volumes used and declared");
}

#[test]
fn compose_runs_redis_so_that_a_sale_survives() {
    let redis = &compose().services["redis"];
    assert!(has(&redis.command, &["--appendonly", "yes"]));
    let level = defaults().pointer("/live/durability").unwrap().as_str().unwrap().to_owned();
    assert!(has(&redis.command, &["--appendfsync", &level]), "the API's level is {level}");
    assert!(has(&redis.command, &["--maxmemory-policy", "noeviction"]));
    assert!(redis.volumes.iter().any(|volume| volume.ends_with(":/data")));
}

#[test]
fn compose_runs_mongodb_as_the_replica_set_the_api_asks_for() {
    let compose = compose();
    let mongo = &compose.services["mongo"];
    let set = mongo.command.iter().skip_while(|word| *word != "--replSet").nth(1).unwrap();
    assert!(compose.services["api"].environment["ORBIT__MONGO__URI"].ends_with(&format!("replicaSet={set}")));
    let check = mongo.healthcheck.as_ref().unwrap().test.join(" ");
    assert!(check.contains("rs.initiate") && check.contains(&format!("\"{set}\"")), "{check}");
    assert!(check.contains("isWritablePrimary"), "{check}");
}

#[test]
fn compose_sets_only_what_the_api_reads() {
    let (compose, defaults) = (compose(), defaults());
    for name in compose.services["api"].environment.keys() {
        let key = name.strip_prefix("ORBIT__").unwrap().to_lowercase();
        let pointer = format!("/{}", key.replace("__", "/"));
        assert!(defaults.pointer(&pointer).is_some(), "{name}: configs/default.toml has no {key}");
    }
}

#[test]
fn compose_hides_nothing_behind_a_default() {
    let compose = compose();
    for (name, value) in &compose.services["api"].environment {
        let secret = ["SECRET", "KEY", "PASSWORD"].iter().any(|word| name.contains(word));
        let default = value.split_once(":-").map(|(_, default)| default);
        // The second one is the same words in base64.
        let named =
            default.is_some_and(|d| d.starts_with("development-only") || d.starts_with("ZGV2ZWxvcG1lbnQtb25seS"));
        assert!(!secret || named, "{name} must be replaceable, and its default must be called development-only");
    }
    for key in ["ORBIT__MEDIA__S3__ACCESS_KEY_ID", "ORBIT__MEDIA__S3__SECRET_ACCESS_KEY"] {
        let value = &compose.services["api"].environment[key];
        assert!(compose.configs["s3-identities"].content.contains(value.as_str()), "{key} differs from the server's");
    }
    for (name, service) in &compose.services {
        for port in &service.ports {
            assert!(port.starts_with("127.0.0.1:"), "{name} offers {port} to the network, with public secrets");
        }
    }
}

#[test]
fn compose_runs_the_api_with_no_rights_and_stops_it_gently() {
    let (compose, defaults) = (compose(), defaults());
    let api = &compose.services["api"];
    assert_eq!(api.build.as_deref(), Some("."));
    assert!(api.read_only && api.tmpfs == ["/tmp"]);
    assert_eq!(api.cap_drop, ["ALL"]);
    assert_eq!(api.security_opt, ["no-new-privileges:true"]);
    let published: Vec<&str> = api.ports.iter().filter_map(|port| port.rsplit(':').next()).collect();
    assert_eq!(published, ["9132", "9133"]);
    let grace_ms = 1000 * seconds(api.stop_grace_period.as_deref().unwrap());
    let needed_ms = defaults.pointer("/server/shutdown_grace_ms").unwrap().as_u64().unwrap();
    assert!(grace_ms > needed_ms, "the API is killed after {grace_ms} ms but may take {needed_ms} ms to stop");
}

#[test]
fn images_are_pinned_and_a_one_shot_uses_its_servers_image() {
    let compose = compose();
    for (name, service) in &compose.services {
        let (_, tag) = service.image.split_once(':').unwrap_or_else(|| panic!("{name}: {} has no tag", service.image));
        assert_ne!(tag, "latest", "{name}");
    }
    let bucket = &compose.services["media-bucket"];
    assert_eq!(bucket.image, compose.services["s3"].image);
    assert_eq!(bucket.entrypoint, ["/bin/sh", "-c"]);
    assert!(bucket.command[0].contains(&compose.services["api"].environment["ORBIT__MEDIA__S3__BUCKET"]));
}

#[test]
fn the_image_runs_as_nobody_in_particular() {
    let dockerfile = read("Dockerfile");
    let last = |instruction: &str| {
        let prefix = format!("{instruction} ");
        dockerfile.lines().rev().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().trim()
    };
    let user = last("USER").split(':').next().unwrap_or_default();
    assert!(user.parse::<u32>().is_ok_and(|id| id > 0), "the last USER is {user:?}: it must be a number other than 0");
    assert_eq!(last("EXPOSE"), "9132 9133");
    assert_eq!(last("STOPSIGNAL"), "SIGTERM");
    assert_eq!(last("ENTRYPOINT"), r#"["orbit"]"#);
    assert!(last("HEALTHCHECK").ends_with(r#"CMD ["orbit", "healthcheck"]"#));
    assert!(dockerfile.contains("cargo build --release --locked --features full --bin orbit"));
}

#[test]
fn the_image_gets_every_folder_the_build_reads() {
    let ignored = read(".dockerignore");
    assert!(ignored.lines().any(|line| line == "*"), "the list says what to send, and nothing else is");
    for needed in ["Cargo.toml", "Cargo.lock", "configs", "lua", "migrations", "src", "tests"] {
        assert!(ignored.lines().any(|line| line == format!("!{needed}")), "{needed} is not sent to the build");
    }
}

/// The `make` commands of a script or workflow, in order.
fn make_commands(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split_once("make ").filter(|_| !line.trim_start().starts_with('#')))
        .map(|(_, rest)| rest.trim())
        .collect()
}

#[test]
fn every_ci_runs_the_commands_of_the_readme() {
    let script = read(".ci/run");
    let commands = make_commands(&script);
    assert_eq!(commands, ["test", "lint"]);

    let workflow: Value = serde_yaml_ng::from_str(&read(".github/workflows/ci.yml")).unwrap();
    let steps = workflow["jobs"]["check"]["steps"].as_array().unwrap();
    let runs: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).flat_map(make_commands).collect();
    assert_eq!(runs, commands);

    let makefile = read("Makefile");
    for target in commands {
        assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))), "there is no make {target}");
    }
    for script in [".ci/run", "scripts/setup"] {
        let mode = fs::metadata(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(script)).unwrap().permissions().mode();
        assert_ne!(mode & 0o111, 0, "{script} is not executable");
    }
}
