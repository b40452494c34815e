//! `orbit serve`.

use std::process::ExitCode;

use anyhow::Context;
use orbit::app::App;
use orbit::config::Config;
use orbit::telemetry;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGINT or SIGTERM, then stops gracefully.
pub async fn run(config: Config) -> anyhow::Result<ExitCode> {
    telemetry::logs::start(&config.log);
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let running = App::start(config).await.context("the service could not start")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: finishing what runs");
    let finished = running.stop().await;
    Ok(if finished { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
