//! `orbit check`: the invariants of sales, on the live servers.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use orbit::app::App;
use orbit::config::Config;
use orbit::domain::event::{Event, SalePhase};
use orbit::domain::ids::EventId;
use orbit::domain::page::Page;
use orbit::sale::check::{Check, Verdict};
use orbit::vouchers::VoucherCheck;
use serde_json::json;

use crate::voucher;

const EVENTS_PER_PAGE: u32 = 100;

/// Without an event: every sale that is running or not settled yet.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The event's id.
    event: Option<String>,
    /// First make the repairs that have one right answer. They are recorded in the collection `audit`.
    #[arg(long)]
    repair: bool,
    /// Compare vouchers, their pools, claims and orders, and no sale.
    #[arg(long, conflicts_with = "event")]
    vouchers: bool,
    /// Print one JSON object in place of the table.
    #[arg(long)]
    json: bool,
}

/// Checks; the status is a failure if an invariant does not hold.
///
/// # Errors
/// When a store does not answer, or there is no such event.
pub async fn run(args: CheckArgs, config: Config) -> anyhow::Result<ExitCode> {
    let app = App::connect(config).await?;
    if args.vouchers {
        return vouchers(&app, &args).await;
    }
    let events = match &args.event {
        Some(text) => vec![one(&app, text).await?],
        None => unsettled(&app).await?,
    };
    let mut violated = false;
    let mut reports = Vec::new();
    let mut out = std::io::stdout();
    for event in events {
        if args.repair {
            app.sale().repair(&event).await?;
        }
        // As it is after the repair.
        let event = app.catalogue().event(event.id).await?;
        let mut checks = app.sale().check(&event).await?;
        checks.extend(app.payments().check(&event).await?);
        violated |= checks.iter().any(|check| check.verdict == Verdict::Violated);
        if args.json {
            reports.push(object(&event, &checks));
        } else {
            write!(out, "{}", table(&event, &checks))?;
        }
    }
    if args.json {
        writeln!(out, "{}", json!({ "ok": !violated, "events": reports }))?;
    } else if violated {
        writeln!(out, "An invariant does not hold. Nothing was changed by checking.")?;
    } else {
        writeln!(out, "Every invariant that could be looked at holds.")?;
    }
    app.mongo().close().await;
    Ok(if violated { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn vouchers(app: &App, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let check = voucher::check(app, args.repair).await?;
    let mut out = std::io::stdout();
    if args.json {
        let VoucherCheck { units, pooled, claims, allocated, misplaced, stale, ownerless, unresolved } = &check;
        let object = json!({
            "ok": check.holds(), "units": units, "pooled": pooled, "claims": claims, "allocated": allocated,
            "misplaced": misplaced, "staleClaims": stale, "ownerless": ownerless,
            "unresolved": unresolved,
        });
        writeln!(out, "{object}")?;
    } else {
        write!(out, "{}", voucher::table(&check))?;
    }
    app.mongo().close().await;
    Ok(if check.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn one(app: &App, text: &str) -> anyhow::Result<Event> {
    let id: EventId = text.parse().map_err(|_| anyhow::anyhow!("{text} is not an event id: 24 hexadecimal digits"))?;
    app.mongo().events.by_id(id).await?.ok_or_else(|| anyhow::anyhow!("there is no event {id}"))
}

async fn unsettled(app: &App) -> anyhow::Result<Vec<Event>> {
    let phases = [SalePhase::Opening, SalePhase::Live, SalePhase::Stopped];
    let (mut events, mut after) = (Vec::new(), None);
    loop {
        let page = app.mongo().events.in_phases(&phases, Page { limit: EVENTS_PER_PAGE, after }).await?;
        events.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(events);
        }
    }
}

fn object(event: &Event, checks: &[Check]) -> serde_json::Value {
    let checks: Vec<_> = checks
        .iter()
        .map(|check| {
            let holds = match check.verdict {
                Verdict::Holds => json!(true),
                Verdict::Violated => json!(false),
                Verdict::Unknown => json!(null),
            };
            json!({ "invariant": check.number, "name": check.name, "holds": holds, "detail": check.detail })
        })
        .collect();
    json!({ "event": event.id.to_string(), "name": event.name, "phase": event.phase.as_str(), "checks": checks })
}

fn table(event: &Event, checks: &[Check]) -> String {
    let mut text = format!("{}  {}  {}\n", event.id, event.phase.as_str(), event.name);
    for check in checks {
        let (word, advice) = match check.verdict {
            Verdict::Holds => ("ok  ", None),
            Verdict::Violated => ("FAIL", Some(advice(check.number))),
            Verdict::Unknown => ("?   ", Some(patience(check.number))),
        };
        text.push_str(&format!("  {word}  {:>2}  {}\n            {}\n", check.number, check.name, check.detail));
        if let Some(advice) = advice {
            text.push_str(&format!("            -> {advice}\n"));
        }
    }
    text.push('\n');
    text
}

/// What a person does about an invariant that could not be looked at.
const fn patience(number: u8) -> &'static str {
    match number {
        11 | 12 => "payments or refunds are under way; check again in a while",
        _ => "the sale moved during the check; pause it and check again",
    }
}

/// What a person does about a violated invariant; docs/operations.md says more.
const fn advice(number: u8) -> &'static str {
    match number {
        1 => "recovery repairs this within seconds; if it stays, run `orbit check --repair` and read the service's log",
        2 => "pause the sale; refund what is above the limit",
        3 | 9 => {
            "pause the sale; what was written by hand or evicted must be put back, the journal and the orders say what it was"
        }
        4 => "pause the sale; compare the product's bookings with its orders, then correct its stock by hand",
        5 => "pause the sale; the order keeps the price that the buyer was told",
        6 => "pause the sale; a slot that is taken without units keeps its buyer out",
        7 => "look into `deadLetters`; End writes what is missing from the bookings, so do not remove any",
        8 => "do not end the sale; compare bookings with orders first",
        11 => {
            "was a refund given up (`stuckSince`)? Otherwise compare the payment with its order and with the gateway's own pages"
        }
        12 => "compare the order with the gateway's own pages; cancel it if nobody has paid",
        _ => "run `orbit check --repair`, which cleans up a settled sale",
    }
}
