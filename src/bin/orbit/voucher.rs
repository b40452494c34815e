//! `orbit voucher`: what is done to vouchers from the command line; and their part of `orbit check`.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use orbit::app::App;
use orbit::config::Config;
use orbit::vouchers::VoucherCheck;

/// Commands about vouchers.
#[derive(Debug, Subcommand)]
pub enum VoucherCommand {
    /// Seal every code with the first of vouchers.keys. Afterwards older keys can be removed.
    Rekey,
}

/// Runs a command.
///
/// # Errors
/// When a key is missing, or a store does not answer.
pub async fn run(command: &VoucherCommand, config: Config) -> anyhow::Result<ExitCode> {
    let app = App::connect(config).await?;
    match command {
        VoucherCommand::Rekey => {
            let bar = indicatif::ProgressBar::new_spinner();
            let rekeyed = app.vouchers().rekey(|so_far| bar.set_message(format!("{} units", so_far.units))).await?;
            bar.finish_and_clear();
            writeln!(std::io::stdout(), "{} of {} units were sealed anew", rekeyed.sealed, rekeyed.units)?;
        }
    }
    app.mongo().close().await;
    Ok(ExitCode::SUCCESS)
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
