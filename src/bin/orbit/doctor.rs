//! `orbit doctor`.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use orbit::config::{Config, ConfigError};
use orbit::doctor;
use orbit::domain::clock::SystemClock;

/// One line for each check: ok, warn or FAIL, what was found, and what to do.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
}

/// Prints what was found; fails if any check does.
pub async fn run(args: &DoctorArgs, config: Result<Config, ConfigError>) -> anyhow::Result<ExitCode> {
    let report = doctor::examine(config, &SystemClock).await;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        for finding in &report.checks {
            writeln!(out, "{finding}")?;
        }
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
