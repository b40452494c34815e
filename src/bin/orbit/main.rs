//! `orbit`: the service, and the commands around it.

mod admin;
mod check;
mod demo;
mod doctor;
mod healthcheck;
mod migrate;
mod openapi;
mod serve;
mod voucher;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use orbit::config::Config;

/// Flash sales that never sell a unit twice.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    /// A configuration file; configs/default.toml lists every setting.
    #[arg(long, global = true, env = "ORBIT_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service until SIGINT or SIGTERM.
    Serve,
    /// Play a whole flash sale on this machine, then leave the service up until Ctrl-C.
    Demo(demo::DemoArgs),
    /// Check the invariants of sales on the live servers, and repair what has one right answer.
    Check(check::CheckArgs),
    /// Apply migrations, or show or revert them.
    Migrate(migrate::MigrateArgs),
    /// Manage administrators.
    #[command(subcommand)]
    Admin(admin::AdminCommand),
    /// Seal vouchers with another key, or measure how fast they are.
    #[command(subcommand)]
    Voucher(voucher::VoucherCommand),
    /// Print openapi.yaml, or check that a file is up to date.
    Openapi(openapi::OpenapiArgs),
    /// Look whether this machine, its configuration and its servers are fit to run the service.
    Doctor(doctor::DoctorArgs),
    /// Ask a running service whether it is ready; for container health checks.
    Healthcheck(healthcheck::HealthcheckArgs),
}

fn main() -> ExitCode {
    orbit::tls::install();
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(run(cli)) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let config = || Config::load(cli.config.as_deref());
    match cli.command {
        Command::Serve => serve::run(config()?).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Check(args) => check::run(args, config()?).await,
        Command::Migrate(args) => migrate::run(args, config()?).await,
        Command::Admin(command) => admin::run(command, config()?).await,
        Command::Voucher(command) => voucher::run(&command, config()?).await,
        Command::Openapi(args) => openapi::run(&args),
        Command::Doctor(args) => doctor::run(&args, Config::read(cli.config.as_deref())).await,
        Command::Healthcheck(args) => healthcheck::run(&args).await,
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a command that failed")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("orbit: {error:#}");
    ExitCode::FAILURE
}
