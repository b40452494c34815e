//! `orbit openapi`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Without a flag: print the document.
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// Fail unless this file holds the document.
    #[arg(long)]
    check: Option<PathBuf>,
}

/// Prints or checks `openapi.yaml`.
pub fn run(args: &OpenapiArgs) -> anyhow::Result<ExitCode> {
    let document = orbit::http::openapi::yaml()?;
    let Some(file) = &args.check else {
        std::io::stdout().lock().write_all(document.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    anyhow::ensure!(
        std::fs::read_to_string(file)? == document,
        "{} is out of date; run `cargo run --bin orbit -- openapi > openapi.yaml`",
        file.display()
    );
    Ok(ExitCode::SUCCESS)
}
