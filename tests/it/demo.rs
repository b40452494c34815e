//! `orbit demo`, as somebody who tries Orbit runs it.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(120);

fn demo(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orbit"));
    let port = orbit::supervisor::free_port().unwrap().to_string();
    command.args(["demo", "--once", "--json", "--buyers", "40", "--products", "5", "--port", &port, "--dir"]).arg(dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn ended(child: Child) -> Output {
    tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("the demo should end").unwrap()
}

/// The one line of standard output.
fn object(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Command lines of processes that have to do with a directory.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = std::fs::read_to_string(entry.ok()?.path().join("cmdline")).ok()?;
        line.contains(dir).then(|| line.replace('\0', " "))
    });
    processes.collect()
}

#[tokio::test]
async fn a_demo_plays_a_whole_sale_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let output = ended(demo(dir.path()).spawn().unwrap()).await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let report = object(&output);
    assert_eq!((&report["ok"], &report["buyers"]), (&Value::Bool(true), &40.into()), "{report}");
    assert_eq!(report["accepted"], report["orders"]);
    let clean = "nothing of the event is left in Redis but its status";
    assert!(report["invariants"].as_array().unwrap().iter().any(|check| check["name"] == clean), "{report}");
    assert!(std::fs::read_to_string(dir.path().join("report.html")).unwrap().contains("All 11 invariants hold."));
    assert!(told.contains("bcrypt cost 4") && told.contains("everything is stopped"), "{told}");
    assert_eq!(processes_of(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_demo_in_which_buyers_pay_cancel_pay_late_and_walk_away_ends_with_money_and_units_agreeing() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = demo(dir.path());
    command.args(["--scenario", "payment", "--units", "4"]);
    let output = ended(command.spawn().unwrap()).await;
    let report = object(&output);
    assert!(output.status.success(), "{report}");
    let money = "money kept is the price of the units held";
    let checks = report["invariants"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["name"] == money && check["ok"] == true), "{report}");
    assert!(report["orders"].as_u64() > Some(0) && report["accepted"].as_u64() > Some(0), "{report}");
}

#[tokio::test]
async fn a_demo_that_sells_codes_from_a_spreadsheet_ends_with_each_in_one_buyers_hands_or_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = demo(dir.path());
    command.args(["--scenario", "voucher", "--units", "4"]);
    let output = ended(command.spawn().unwrap()).await;
    let report = object(&output);
    assert!(output.status.success(), "{report}");
    let checks = report["invariants"].as_array().unwrap();
    for name in [
        "who bought reads a code for each unit, the same each time",
        "no code is sold twice, and each is from the spreadsheet",
        "every code that was not sold can be sold again",
    ] {
        assert!(checks.iter().any(|check| check["name"] == name && check["ok"] == true), "{report}");
    }
    assert!(report["accepted"].as_u64() > Some(0), "{report}");
}

#[tokio::test]
async fn a_demo_that_is_interrupted_stops_everything_and_can_be_run_again() {
    let dir = tempfile::tempdir().unwrap();
    // In the middle of starting, and in the middle of the sale.
    for (moment, signal) in [("Redis on", Signal::SIGINT), ("registering", Signal::SIGTERM)] {
        let mut child = demo(dir.path()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(moment) {
                kill(pid, signal).unwrap();
            }
        }
        let output = ended(child).await;
        assert_eq!(output.status.code(), Some(130), "at {moment}");
        let problem = object(&output);
        assert_eq!((&problem["ok"], &problem["error"]), (&Value::Bool(false), &"interrupted".into()));
        assert_eq!(processes_of(dir.path()), Vec::<String>::new(), "at {moment}");
    }
    let output = ended(demo(dir.path()).spawn().unwrap()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
