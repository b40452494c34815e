//! `orbit voucher`: what is done to vouchers from the command line; and their part of `orbit check`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use orbit::app::App;
use orbit::config::Config;
use orbit::store::live::Yardstick;
use orbit::vouchers::{Measured, VoucherCheck};

/// Commands about vouchers.
#[derive(Debug, Subcommand)]
pub enum VoucherCommand {
    /// Seal every code with the first of vouchers.keys. Afterwards older keys can be removed.
    Rekey,
    /// Measure how fast codes are pumped and allocated, as ratios to the least that the servers have to do for it. Works on
    /// codes of its own, in a database and under a key prefix that are removed afterwards.
    Measure(MeasureArgs),
}

/// How much is measured.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Codes in the inventory.
    #[arg(long, default_value_t = 1_000_000)]
    units: u64,
    /// Codes that are allocated; one more tenth of it with the database. At most a third of the inventory.
    #[arg(long, default_value_t = 200_000)]
    allocations: u64,
    /// Allocations under way at once.
    #[arg(long, default_value_t = 256)]
    callers: usize,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// Runs a command.
///
/// # Errors
/// When a key is missing, or a store does not answer.
pub async fn run(command: &VoucherCommand, mut config: Config) -> anyhow::Result<ExitCode> {
    if let VoucherCommand::Measure(_) = command {
        let name = format!("measure{}", uuid::Uuid::new_v4().simple());
        (config.live.key_prefix, config.mongo.database) = (format!("{name}:"), name);
    }
    let app = App::connect(config).await?;
    match command {
        VoucherCommand::Rekey => {
            let bar = indicatif::ProgressBar::new_spinner();
            let rekeyed = app.vouchers().rekey(|so_far| bar.set_message(format!("{} units", so_far.units))).await?;
            bar.finish_and_clear();
            writeln!(std::io::stdout(), "{} of {} units were sealed anew", rekeyed.sealed, rekeyed.units)?;
        }
        VoucherCommand::Measure(args) => {
            let yardstick = Yardstick::connect(&app.config().live).await?;
            let measured = measure(&app, &yardstick, args).await;
            // Whatever came of it, nothing of it stays.
            yardstick.clear(&app.config().live.key_prefix).await?;
            app.mongo().drop_database().await?;
            writeln!(std::io::stdout(), "{}", report(&measured?, args.json))?;
        }
    }
    app.mongo().close().await;
    Ok(ExitCode::SUCCESS)
}

async fn measure(app: &App, yardstick: &Yardstick, args: &MeasureArgs) -> anyhow::Result<Measured> {
    anyhow::ensure!(args.allocations * 3 <= args.units, "allocations must be at most a third of the units");
    anyhow::ensure!(args.allocations > 0 && args.callers > 0, "allocations and callers must be at least 1");
    app.mongo().migrate().await?;
    let size = (args.units, args.allocations, args.callers);
    let bar = indicatif::ProgressBar::new_spinner();
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let measured = app.vouchers().measure(yardstick, size, |doing| bar.set_message(doing.to_owned())).await;
    bar.finish_and_clear();
    Ok(measured?)
}

/// Rates in units per second; a ratio is the yardstick's time over ours.
fn report(measured: &Measured, json: bool) -> String {
    let per_s = |count: u64, took: Duration| count as f64 / took.as_secs_f64();
    let ratio = |bare: Duration, ours: Duration| bare.as_secs_f64() / ours.as_secs_f64();
    let Measured { pumped, pump, bare_write, allocated, claim, bare_pop, allocate, whole } = *measured;
    let memory = peak_mib().unwrap_or_default();
    if json {
        return serde_json::json!({
            "pumped": pumped, "pumped_per_s": per_s(pumped, pump), "bare_writes_per_s": per_s(pumped, bare_write),
            "ratio_pump_to_bare": ratio(bare_write, pump), "claimed": allocated, "claims_per_s": per_s(allocated, claim),
            "bare_pops_per_s": per_s(allocated, bare_pop), "ratio_claim_to_bare": ratio(bare_pop, claim),
            "allocated_per_s": per_s(whole, allocate), "peak_rss_mib": memory,
        })
        .to_string();
    }
    format!(
        "{pumped} codes pumped, {:.0}/s; bare pipelined writes of the same keys {:.0}/s: {:.2}\n\
         {allocated} codes claimed one by one, {:.0}/s; a bare script popping as many {:.0}/s: {:.2}\n\
         {whole} codes allocated one by one, the database included: {:.0}/s\n\
         this process held {memory} MiB at most",
        per_s(pumped, pump),
        per_s(pumped, bare_write),
        ratio(bare_write, pump),
        per_s(allocated, claim),
        per_s(allocated, bare_pop),
        ratio(bare_pop, claim),
        per_s(whole, allocate),
    )
}

/// The most memory that this process has held.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

/// Compares units, pools, claims and orders; `repair` mends first what has one right answer.
///
/// # Errors
/// When a store does not answer.
pub async fn check(app: &App, repair: bool) -> anyhow::Result<VoucherCheck> {
    if repair {
        app.vouchers().reconcile().await?;
        app.vouchers().pump_all().await?;
    }
    Ok(app.vouchers().check().await?)
}

/// The check as a table.
pub fn table(check: &VoucherCheck) -> String {
    let VoucherCheck { units, pooled, claims, allocated, misplaced, stale, ownerless, unresolved } = check;
    let row = |name: &str, wrong: &[String], detail: String| {
        let verdict = if wrong.is_empty() { "holds" } else { "VIOLATED" };
        let sentences: String = wrong.iter().map(|sentence| format!("\n            {sentence}")).collect();
        format!("  {verdict:<9} {name}: {detail}{sentences}\n")
    };
    let mut text = "vouchers\n".to_owned();
    text += &row(
        "every available unit is in its pool, and nothing else is",
        misplaced,
        format!("{units} units, {pooled} in pools, {claims} claimed"),
    );
    text += &row("no claim is left behind", stale, format!("{claims} open"));
    text += &row(
        "every item has one unit, and every unit that was given one item",
        ownerless,
        format!("{allocated} given"),
    );
    text += &row(
        "every order of a vendor has a known outcome, or is still asked about",
        unresolved,
        format!("{} unresolved", unresolved.len()),
    );
    if !unresolved.is_empty() {
        text += "  What to do: ask the vendor about each order by its name; then resolve the batch, as docs/operations.md says (voucher orders of\n  unknown outcome).\n";
    }
    if !(misplaced.is_empty() && stale.is_empty() && ownerless.is_empty()) {
        text += "  What to do: `orbit check --vouchers --repair` places units and settles claims; what is of no order needs a person.\n";
    }
    text
}
