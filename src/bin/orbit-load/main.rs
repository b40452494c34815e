//! `orbit-load`: plays a flash sale against a running service, measures it, and checks what must hold afterwards.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use orbit::load::client::{Api, Credentials};
use orbit::load::plan::{Plan, Scenario};
use orbit::load::play::play;
use orbit::load::progress::Progress;
use orbit::load::{html, limits};

/// Plays a flash sale against a running Orbit, measures it, and checks the invariants.
///
/// The exit status is 0 if every invariant holds, 1 if one is broken, and 2 if the sale could not be played.
#[derive(Debug, Parser)]
#[command(name = "orbit-load", version)]
struct Cli {
    #[command(subcommand)]
    scenario: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every buyer tries one random product, all at once; stock is far short.
    Rush {
        #[command(flatten)]
        common: Common,
        /// Units of each product.
        #[arg(long, default_value_t = 1)]
        units: u32,
    },
    /// Buyers come at a constant rate, and there is stock for all of them.
    Steady {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        pace: Pace,
    },
    /// Buyers come at a constant rate, and nothing is left.
    SoldOut {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        pace: Pace,
    },
}

#[derive(Debug, Args)]
struct Pace {
    /// Purchases per second.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds that they last.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

#[derive(Debug, Args)]
struct Common {
    /// The service.
    #[arg(long, env = "ORBIT_URL", default_value = "http://localhost:9132")]
    url: String,
    /// An administrator, who approves the seller.
    #[arg(long, env = "ORBIT_ADMIN_EMAIL")]
    admin_email: String,
    /// The administrator's password; better given by the environment, where other users do not see it.
    #[arg(long, env = "ORBIT_ADMIN_PASSWORD", hide_env_values = true)]
    admin_password: String,
    /// Accounts that buy.
    #[arg(long, default_value_t = 5_000)]
    buyers: usize,
    /// Products on sale.
    #[arg(long, default_value_t = 100)]
    products: usize,
    /// Decides who tries what.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sign-ups under way at once.
    #[arg(long, default_value_t = 64)]
    workers: usize,
    /// Purchases that may stay without an answer before the run counts as failed.
    #[arg(long, default_value_t = 0)]
    errors_max: usize,
    /// Seconds after which an answer no longer counts.
    #[arg(long, default_value_t = 30)]
    timeout: u64,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Also write the report as a page, into this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Command {
    fn into_parts(self) -> (Common, Plan) {
        let (scenario, common, units, pace) = match self {
            Self::Rush { common, units } => (Scenario::Rush, common, units, None),
            Self::Steady { common, pace } => (Scenario::Steady, common, 1, Some(pace)),
            Self::SoldOut { common, pace } => (Scenario::SoldOut, common, 1, Some(pace)),
        };
        let pace = pace.unwrap_or(Pace { rate: 1, seconds: 1 });
        let plan = Plan {
            scenario,
            buyers: common.buyers,
            products: common.products,
            units,
            seed: common.seed,
            workers: common.workers,
            connections_max: limits::connections_max(limits::raise_open_files(), 1),
            rate_per_s: pace.rate,
            duration: Duration::from_secs(pace.seconds),
            errors_max: common.errors_max,
        };
        (common, plan)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let (common, plan) = Cli::parse().scenario.into_parts();
    match run(&common, &plan).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            if common.json {
                let problem = serde_json::json!({ "ok": false, "scenario": plan.scenario.as_str(), "error": format!("{error:#}") });
                let _ = print(&format!("{problem}\n"));
            }
            Progress::new(true).say(&format!("orbit-load: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Plays and reports. False if an invariant is broken.
async fn run(common: &Common, plan: &Plan) -> anyhow::Result<bool> {
    let progress = Progress::new(common.json);
    if plan.connections_max < plan.buyers {
        progress.say(&format!(
            "only {} connections at once: the limit of open files (ulimit -n) allows no more, and the rest will wait",
            plan.connections_max
        ));
    }
    let api = Api::new(&common.url, Duration::from_secs(common.timeout))?;
    let admin = Credentials { email: common.admin_email.clone(), password: common.admin_password.clone() };
    progress.say(&format!("{} against {}", plan.scenario, api.base()));
    // Only the one who runs the service can look into its live store.
    let played = play(&api, &admin, plan, &progress, async |_: &str| None)
        .await
        .with_context(|| format!("the sale could not be played against {}", api.base()))?;
    let report = played.report;
    print(&if common.json { format!("{}\n", report.json()) } else { report.table() })?;
    if let Some(file) = &common.html {
        write_page(file, &html::page(&report))?;
        progress.say(&format!("The report as a page: {}", file.display()));
    }
    Ok(report.ok)
}

fn write_page(file: &Path, page: &str) -> anyhow::Result<()> {
    std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
}

/// Standard output carries the report and nothing else.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn options_reach_the_plan() {
        let words =
            "orbit-load steady --admin-email a@b.c --admin-password x --rate 50 --seconds 3 --buyers 7 --seed 9";
        let (common, plan) = Cli::parse_from(words.split(' ')).scenario.into_parts();
        assert_eq!((plan.scenario, plan.rate_per_s, plan.buyers, plan.seed), (Scenario::Steady, 50, 7, 9));
        assert_eq!((plan.duration, common.timeout), (Duration::from_secs(3), 30));
    }
}
