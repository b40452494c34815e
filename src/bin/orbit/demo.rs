//! `orbit demo`: a whole flash sale on this machine, from nothing to the report.
//!
//! It starts a Redis, a `MongoDB` and the service, plays thousands of buyers against it over HTTP, prints what came of it,
//! and leaves the service up to be looked at. Whatever it starts, it stops: at its end, on an error, and on Ctrl-C.

mod home;
mod secrets;
mod servers;
mod showcase;
mod signals;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use orbit::load::client::{Api, Credentials};
use orbit::load::plan::{Plan, Scenario};
use orbit::load::play::{Leftover, Played, play};
use orbit::load::progress::Progress;
use orbit::load::table::grouped;
use orbit::load::{html, limits};
use orbit::store::live::Live;

use home::Home;
use secrets::Secrets;
use servers::Servers;
use signals::Signals;

/// The administrator of every demo.
const ADMIN_EMAIL: &str = "admin@orbit.example";
/// As a shell says it of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Runs a whole flash sale on this machine, and leaves the service up until Ctrl-C.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Stop when the sale has been played, instead of leaving the service up.
    #[arg(long)]
    once: bool,
    /// Print one JSON object on standard output instead of the table.
    #[arg(long)]
    json: bool,
    /// rush: all buyers at once; steady: at a constant rate, stock for everyone; sold-out: the same, nothing left;
    /// payment: a rush in which buyers pay, cancel, pay too late or walk away.
    #[arg(long, default_value_t = Scenario::Rush)]
    scenario: Scenario,
    /// Accounts that buy.
    #[arg(long, default_value_t = 5_000)]
    buyers: usize,
    /// Products on sale.
    #[arg(long, default_value_t = 100)]
    products: usize,
    /// Units of each product, in a rush.
    #[arg(long, default_value_t = 1)]
    units: u32,
    /// Decides who tries what.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Purchases per second, at a constant rate.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds that they last.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Where the API listens. Without this: 9132, or a free one if that is taken.
    #[arg(long)]
    port: Option<u16>,
    /// Where data and the report are kept.
    #[arg(long, default_value = ".orbit", value_name = "DIR")]
    dir: PathBuf,
}

impl DemoArgs {
    fn plan(&self) -> Plan {
        Plan {
            scenario: self.scenario,
            buyers: self.buyers,
            products: self.products,
            units: self.units,
            seed: self.seed,
            // Client and server are in this one process: a connection is two open files.
            connections_max: limits::connections_max(limits::raise_open_files(), 2),
            rate_per_s: self.rate,
            duration: Duration::from_secs(self.seconds),
            ..Plan::default()
        }
    }
}

/// Runs the demo. The status is a failure if an invariant does not hold.
///
/// # Errors
/// When something cannot be started, or the sale cannot be played. All that was started has been stopped by then.
pub async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let progress = Progress::new(args.json);
    let mut signals = Signals::new()?;
    // Given up last: nobody else may use the directory while something of ours still runs there.
    let mut home = None;
    let mut servers = Servers::default();
    // Whether every invariant holds, once the sale has been played and reported.
    let mut verdict = None;
    let ended = tokio::select! {
        ended = demonstrate(&args, &mut home, &mut servers, &mut verdict, &progress) => ended,
        () = signals.wait() => Ok(()),
    };
    progress.say("Stopping everything (once more Ctrl-C to kill it).");
    tokio::select! {
        () = servers.stop(&progress) => {}
        // Dropping the servers kills them.
        () = signals.wait() => progress.say("Killed."),
    }
    if args.json && verdict.is_none() {
        let reason = ended.as_ref().err().map_or_else(|| "interrupted".to_owned(), |error| format!("{error:#}"));
        let problem = serde_json::json!({ "ok": false, "scenario": args.scenario.as_str(), "error": reason });
        print(&format!("{problem}\n"))?;
    }
    ended.map(|()| match verdict {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => ExitCode::from(INTERRUPTED),
    })
}

/// The demo up to the moment when everything is to be stopped.
async fn demonstrate(
    args: &DemoArgs,
    home: &mut Option<Home>,
    servers: &mut Servers,
    verdict: &mut Option<bool>,
    progress: &Progress,
) -> anyhow::Result<()> {
    let plan = args.plan();
    plan.validate()?;
    let home = home.insert(Home::claim(args.dir.join("demo"))?);
    progress.say(&format!("Orbit demo: a whole flash sale on this machine. Data is kept in {}.", home.dir().display()));
    let secrets = Secrets::of(home.dir())?;
    servers.start(home, &secrets, args.port, plan.buyers, progress).await?;
    home.mark_ready()?;
    let service = servers.service()?;
    let base = format!("http://{}", service.address);

    progress.say(&format!("\nThe sale ({}), through the HTTP API:", plan.scenario));
    let api = Api::new(&base, Duration::from_secs(30))?;
    let admin = Credentials { email: ADMIN_EMAIL.to_owned(), password: secrets.admin_password.clone() };
    let live = service.app.live();
    let played = play(&api, &admin, &plan, progress, async |event: &str| Some(leftover(live, event).await)).await?;
    publish(args, &played, progress)?;
    *verdict = Some(played.report.ok);
    if args.once {
        return Ok(());
    }
    let jar = args.dir.join("cookies.txt");
    showcase::open(&played, &base, service.metrics_address, &admin, &jar, progress).await;
    std::future::pending().await
}

/// Prints the report and writes it as a page.
fn publish(args: &DemoArgs, played: &Played, progress: &Progress) -> anyhow::Result<()> {
    let report = &played.report;
    let page = args.dir.join("report.html");
    std::fs::write(&page, html::page(report)).with_context(|| format!("cannot write {}", page.display()))?;
    print(&if args.json { format!("{}\n", report.json()) } else { report.table() })?;
    progress.say(&format!("The report as a page: {}", page.display()));
    Ok(())
}

/// Keys of the event that Redis still has, besides the stopped status, which is meant to stay.
async fn leftover(live: &Live, event: &str) -> Leftover {
    let event = event.parse().map_err(|error| format!("{event}: {error}"))?;
    let status = live.keys().status(event);
    let mut keys = live.scan_event_keys(event).await.map_err(|error| error.to_string())?;
    keys.retain(|key| *key != status);
    Ok(keys)
}

/// Standard output carries the report and nothing else.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}

fn create_dir(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

/// What a reader must know about the demo's password hashes.
fn hashing_note(cost: u32, buyers: usize) -> String {
    format!(
        "Passwords are hashed with bcrypt cost {cost} (configs/demo.toml), so that {} sign-ups take seconds; production \
         keeps the default of 12.",
        grouped(buyers as u64)
    )
}
