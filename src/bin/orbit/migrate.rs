//! `orbit migrate`.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use orbit::config::Config;
use orbit::store::mongo::Mongo;

/// Without a flag: apply what is missing.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Only show what is applied.
    #[arg(long, conflicts_with = "revert")]
    status: bool,
    /// Take the newest applied migration back. The first one drops every collection.
    #[arg(long)]
    revert: bool,
}

/// Applies, shows or reverts migrations.
pub async fn run(args: MigrateArgs, config: Config) -> anyhow::Result<ExitCode> {
    let mongo = Mongo::connect(&config.mongo).await?;
    let mut out = std::io::stdout().lock();
    if args.revert {
        match mongo.revert_newest().await? {
            Some(id) => writeln!(out, "reverted {id}")?,
            None => writeln!(out, "nothing is applied")?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !args.status {
        for id in mongo.migrate().await? {
            writeln!(out, "applied {id}")?;
        }
    }
    for state in mongo.migrations().await? {
        writeln!(out, "{}  {}", state.id, if state.applied { "applied" } else { "not applied" })?;
    }
    Ok(ExitCode::SUCCESS)
}
