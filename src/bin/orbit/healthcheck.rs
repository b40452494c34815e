//! `orbit healthcheck`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

/// Which service to ask.
#[derive(Debug, Args)]
pub struct HealthcheckArgs {
    /// Its readiness address.
    #[arg(long, default_value = "http://127.0.0.1:9132/health/ready")]
    url: String,
}

/// Succeeds if the service says that it is ready.
pub async fn run(args: &HealthcheckArgs) -> anyhow::Result<ExitCode> {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?;
    let answer = client.get(&args.url).send().await.with_context(|| format!("{} does not answer", args.url))?;
    anyhow::ensure!(answer.status().is_success(), "not ready: {}", answer.text().await.unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}
