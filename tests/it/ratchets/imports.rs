//! Which way the code may point.

use super::{files, without_tests};

/// (folder or file, what it may use of the crate). The first match counts.
const MAY_USE: &[(&str, &[&str])] = &[
    ("src/domain/", &["domain"]),
    ("src/error.rs", &["domain"]),
    ("src/config/", &["config", "auth", "domain", "error"]),
    ("src/auth/", &["auth", "domain", "config", "error"]),
    ("src/outbound.rs", &["config", "tls"]),
    ("src/store/", &["store", "domain", "error", "config", "tls"]),
    ("src/task/", &["task", "error"]),
    ("src/telemetry/", &["telemetry", "config"]),
    ("src/supervisor/", &["supervisor"]),
    ("src/load/", &["load", "domain", "tls"]),
    ("src/doctor/", &["doctor", "store", "domain", "error", "config"]),
    ("src/sale/", &["sale", "store", "auth", "domain", "error", "task", "config", "telemetry"]),
    ("src/payment/", &["payment", "sale", "store", "auth", "domain", "error", "task", "config", "telemetry", "tls"]),
    ("src/accounts/", &["accounts", "store", "auth", "domain", "error", "task", "config", "telemetry"]),
    ("src/catalogue/", &["catalogue", "store", "auth", "domain", "error", "task", "config", "telemetry"]),
    ("src/reports/", &["reports", "store", "auth", "domain", "error", "task", "config", "telemetry"]),
    ("src/vouchers/import/", &["vouchers", "domain"]),
    ("src/webhooks/", &["webhooks", "outbound", "store", "auth", "domain", "error", "task", "config", "telemetry"]),
    (
        "src/vouchers/",
        &["vouchers", "sale", "outbound", "store", "auth", "domain", "error", "task", "config", "telemetry"],
    ),
    ("src/idempotency/", &["idempotency", "store", "auth", "domain", "error", "task", "config", "telemetry"]),
    (
        "src/http/",
        &[
            "http",
            "idempotency",
            "webhooks",
            "vouchers",
            "sale",
            "payment",
            "accounts",
            "catalogue",
            "reports",
            "auth",
            "domain",
            "error",
            "app",
            "telemetry",
            "config",
            "task",
        ],
    ),
];

/// (a crate's path, where alone it may be named).
const ONLY_IN: &[(&str, &[&str])] = &[
    ("mongodb::", &["src/store/mongo/"]),
    ("bson::", &["src/store/mongo/"]),
    ("redis::", &["src/store/live/"]),
    ("aws_sdk_s3::", &["src/store/media/"]),
    ("axum::", &["src/http/", "src/app.rs"]),
    ("tokio::spawn", &["src/task/"]),
    ("Utc::now", &["src/domain/clock.rs"]),
    ("rustls::", &["src/tls.rs"]),
    ("anyhow", &["src/bin/"]),
];

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    without_tests(text)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.starts_with("//"))
}

/// Whether a name occurs as a path of its own, not as the end of another name.
fn names(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

#[test]
fn code_points_one_way() {
    let mut wrong = Vec::new();
    for (file, text) in files("src", "rs") {
        let Some((_, may)) = MAY_USE.iter().find(|(place, _)| file.starts_with(place)) else { continue };
        for (number, line) in code_lines(&text) {
            for (at, _) in line.match_indices("crate::") {
                let rest = &line[at + "crate::".len()..];
                let module: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                // `$crate` and grouped imports (`crate::{`) have no single module here.
                if !module.is_empty() && !may.contains(&module.as_str()) {
                    wrong.push(format!("{file}:{number} uses {module}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these point the wrong way:\n{}", wrong.join("\n"));
}

#[test]
fn stores_do_not_know_each_other() {
    let stores = ["mongo", "live", "media"];
    let mut wrong = Vec::new();
    for (file, text) in files("src/store", "rs") {
        for own in stores.iter().filter(|own| file.starts_with(&format!("src/store/{own}"))) {
            for (number, line) in code_lines(&text) {
                for other in stores.iter().filter(|other| other != &own) {
                    if line.contains(&format!("store::{other}")) {
                        wrong.push(format!("{file}:{number} uses store::{other}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "a use case is where two stores meet:\n{}", wrong.join("\n"));
}

#[test]
fn drivers_stay_in_their_places() {
    let mut wrong = Vec::new();
    for (file, text) in files("src", "rs") {
        for (path, places) in ONLY_IN {
            if places.iter().any(|place| file.starts_with(place)) {
                continue;
            }
            for (number, line) in code_lines(&text) {
                if names(line, path) {
                    wrong.push(format!("{file}:{number} names {path}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these belong elsewhere:\n{}", wrong.join("\n"));
}

#[test]
fn the_rules_catch_what_they_are_for() {
    assert!(names("use redis::Client;", "redis::") && names("let x: redis::Value;", "redis::"));
    assert!(!names("use crate::supervisor::redis::Redis;", "redis::") && !names("own_redis::x", "redis::"));
}
