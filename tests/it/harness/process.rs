//! The service as a process of its own, to be killed.

use std::process::{Output, Stdio};
use std::time::Duration;

use orbit::config::{Config, ExposeSecret, SecretString};
use orbit::supervisor::free_port;
use tokio::process::{Child, Command};

/// The binary without anything of this environment but the path to programs.
pub fn orbit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orbit"));
    command.env_clear().envs(std::env::var("PATH").map(|path| ("PATH", path))).kill_on_drop(true);
    command
}

/// All that it said.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What processes are to tell while a test runs with `--nocapture`, as a log filter: `ORBIT_TEST_LOG=warn`.
fn said() -> Option<String> {
    std::env::var("ORBIT_TEST_LOG").ok()
}

/// `orbit serve`, running.
pub struct OrbitProcess {
    child: Child,
    pub url: String,
}

impl OrbitProcess {
    /// Starts the binary with this configuration and waits until it is ready.
    pub async fn start(config: &Config) -> Self {
        Self::start_in(config, &[]).await
    }

    /// As [`Self::start`], in an environment with these variables as well.
    pub async fn start_in(config: &Config, variables: &[(&str, &str)]) -> Self {
        let port = free_port().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_orbit"))
            .arg("serve")
            .env_remove("ORBIT_CONFIG")
            .envs(environment(config, port))
            .envs(variables.iter().copied())
            .stdout(if said().is_some() { Stdio::inherit() } else { Stdio::null() })
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let process = Self { child, url: format!("http://127.0.0.1:{port}") };
        process.until_ready().await;
        process
    }

    async fn until_ready(&self) {
        let ready = format!("{}/health/ready", self.url);
        let client = reqwest::Client::builder().timeout(Duration::from_secs(2)).build().unwrap();
        super::eventually("the process is ready", || async {
            client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The most memory that it has ever held, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
    }

    /// SIGKILL, and wait.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGTERM, and wait; true if it said that everything was finished.
    pub async fn terminate(mut self) -> bool {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        self.child.wait().await.unwrap().success()
    }
}

/// What differs from the defaults, as environment variables.
pub fn environment(config: &Config, port: u16) -> Vec<(String, String)> {
    let set = |name: &str, value: String| (format!("ORBIT__{name}"), value);
    let (auth, payment) = (&config.auth, &config.payment);
    vec![
        set("SERVER__HOST", "127.0.0.1".to_owned()),
        set("SERVER__PORT", port.to_string()),
        set("METRICS__ENABLED", "false".to_owned()),
        set("LOG__FILTER", said().unwrap_or_else(|| "error".to_owned())),
        set("MONGO__URI", config.mongo.uri.expose_secret().to_owned()),
        set("MONGO__DATABASE", config.mongo.database.clone()),
        set("MONGO__POOL_MAX", "10".to_owned()),
        set("LIVE__URL", config.live.url.expose_secret().to_owned()),
        set("LIVE__KEY_PREFIX", config.live.key_prefix.clone()),
        set("LIVE__DURABILITY", config.live.durability.as_str().to_owned()),
        set("SALE__OPENING_TTL_MS", config.sale.opening_ttl_ms.to_string()),
        set("SALE__RECOVERY_INTERVAL_MS", config.sale.recovery_interval_ms.to_string()),
        set("SALE__SCHEDULE_INTERVAL_MS", config.sale.schedule_interval_ms.to_string()),
        set("SALE__DRAIN_INTERVAL_MS", config.sale.drain_interval_ms.to_string()),
        set("SALE__DRAIN_TAKEOVER_MS", config.sale.drain_takeover_ms.to_string()),
        set("SALE__LEASE_TTL_MS", config.sale.lease_ttl_ms.to_string()),
        set("AUTH__JWT_SECRET", auth.jwt_secret.expose_secret().to_owned()),
        set("AUTH__COOKIE_SECURE", "false".to_owned()),
        set("AUTH__BCRYPT_COST", auth.bcrypt_cost.to_string()),
        set("AUTH__ATTEMPTS_PER_ADDRESS_PER_MINUTE", "0".to_owned()),
        set("AUTH__ATTEMPTS_PER_ACCOUNT_PER_MINUTE", "0".to_owned()),
        set("ACCOUNTS__DATA_KEY", config.accounts.data_key.expose_secret().to_owned()),
        set("WEBHOOKS__ALLOW_HTTP", config.webhooks.allow_http.to_string()),
        set("WEBHOOKS__ALLOW_PRIVATE", config.webhooks.allow_private.to_string()),
        set("WEBHOOKS__POLL_INTERVAL_MS", config.webhooks.poll_interval_ms.to_string()),
        set("WEBHOOKS__LISTENERS_KNOWN_FOR_MS", config.webhooks.listeners_known_for_ms.to_string()),
        set("WEBHOOKS__ATTEMPT_DEADLINE_MS", config.webhooks.attempt_deadline_ms.to_string()),
        set("WEBHOOKS__CLAIM_TTL_MS", config.webhooks.claim_ttl_ms.to_string()),
        set("PAYMENT__GATEWAY", payment.gateway.as_str().to_owned()),
        set("PAYMENT__BASE_URL", payment.base_url.clone()),
        set("PAYMENT__SECRET_KEY", payment.secret_key.expose_secret().to_owned()),
        set("PAYMENT__WEBHOOK_SECRETS", list(&payment.webhook_secrets)),
        set("PAYMENT__DEADLINE_MS", payment.deadline_ms.to_string()),
        set("PAYMENT__RECONCILE_INTERVAL_MS", payment.reconcile_interval_ms.to_string()),
        set("PAYMENT__RETRY_PAUSE_MS", payment.retry_pause_ms.to_string()),
        set("MEDIA__FILESYSTEM__DIR", config.media.filesystem.dir.display().to_string()),
    ]
}

/// A list, as the environment has it.
fn list(secrets: &[SecretString]) -> String {
    let quoted: Vec<String> = secrets.iter().map(|secret| format!("{:?}", secret.expose_secret())).collect();
    format!("[{}]", quoted.join(", "))
}
