//! `orbit-load` as a command: what it prints, and how it ends.

use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

use super::shop::{ADMIN, Fault, Shop};

async fn run(url: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orbit-load"));
    command.args(["rush", "--url", url, "--admin-email", ADMIN, "--buyers", "30", "--products", "3"]).args(more);
    command.env("ORBIT_ADMIN_PASSWORD", "x").kill_on_drop(true).output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn a_sound_service_ends_it_with_success_a_table_and_a_page() {
    let shop = Shop::open(None).await;
    let page = tempfile::NamedTempFile::new().unwrap();
    let output = run(&shop.address(), &["--html", page.path().to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("All 10 invariants hold."));
    assert!(!text(&output.stdout).contains("signing up"), "progress is not for standard output");
    assert!(std::fs::read_to_string(page.path()).unwrap().starts_with("<!doctype html>"));
}

#[tokio::test]
async fn a_broken_promise_ends_it_with_failure_and_the_json_says_which() {
    let shop = Shop::open(Some(Fault::Oversells)).await;
    let output = run(&shop.address(), &["--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], false);
    let broken = report["invariants"].as_array().unwrap().iter().filter(|check| check["ok"] == false);
    assert!(broken.map(|check| &check["name"]).any(|name| name == "no product sold beyond its units"), "{report}");
}

#[tokio::test]
async fn a_service_that_is_not_there_ends_it_with_two_and_a_reason() {
    let port = orbit::supervisor::free_port().unwrap();
    let output = run(&format!("http://127.0.0.1:{port}"), &["--json"]).await;
    assert_eq!(output.status.code(), Some(2));
    let problem: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(problem["error"].as_str().unwrap().contains("Connection refused"), "{problem}");
    assert!(text(&output.stderr).contains("Connection refused"));
}
