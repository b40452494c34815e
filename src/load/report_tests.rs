use super::*;
use crate::load::amount::Amount;
use crate::load::table::grouped;

fn attempt(number: usize, outcome: Outcome) -> Attempt {
    let number_ms = Duration::from_millis(number as u64 + 1);
    Attempt {
        buyer: number,
        product: 0,
        key: String::new(),
        outcome,
        arrived: Duration::ZERO,
        sent: number_ms,
        answered: number_ms * 3,
        measured: true,
        asked_again: false,
    }
}

/// A rush of 2 accepted, 5 sold out, 1 already booked and 2 failed purchases. One who was sold out had to ask twice.
pub(in crate::load) fn sample(ok: bool) -> Report {
    let accepted = |number: usize| Outcome::Accepted { reservation_id: number.to_string(), price: Amount::default() };
    let failed = |code: &str| Outcome::Failed { code: code.to_owned(), unknown: true };
    let mut attempts: Vec<Attempt> = (0..2).map(|number| attempt(number, accepted(number))).collect();
    attempts.extend((2..7).map(|number| attempt(number, Outcome::SoldOut)));
    attempts[6].asked_again = true;
    attempts.push(attempt(7, Outcome::AlreadyBooked));
    attempts.push(attempt(8, failed("no_answer_in_time")));
    attempts.push(attempt(9, failed("<script>")));
    let plan = Plan { buyers: 10, products: 2, seed: 42, ..Plan::default() };
    let times = Measured { open: Duration::from_micros(12_345), settle: Duration::from_millis(40), orders: 2 };
    let check = Check { name: "nothing <bad>", ok, detail: "fine & well".to_owned() };
    Report::new(&plan, &attempts, times, vec![check])
}

#[test]
fn the_json_has_the_agreed_fields() {
    let text = sample(true).json();
    assert!(!text.contains('\n'));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |name: &str| json[name].as_f64().unwrap_or_else(|| panic!("{name} in {text}"));
    for (name, value) in [
        ("buyers", 10.0),
        ("accepted", 2.0),
        ("sold_out", 5.0),
        ("already_booked", 1.0),
        ("errors", 2.0),
        ("orders", 2.0),
        ("open_ms", 12.345),
        ("settle_ms", 40.0),
        ("asked_again", 1.0),
        ("attempts", 10.0),
        ("seed", 42.0),
    ] {
        assert!((number(name) - value).abs() < 1e-9, "{name} in {text}");
    }
    assert_eq!((json["ok"].as_bool(), json["scenario"].as_str()), (Some(true), Some("rush")));
    // Seven answers at the first asking until the last try ended after 30 ms.
    assert!((number("purchases_per_s") - 233.3).abs() < 0.1);
    assert!(number("p50_ms") > 0.0 && number("p99_ms") >= number("p50_ms"));
    let invariants = serde_json::json!([{ "name": "nothing <bad>", "ok": true, "detail": "fine & well" }]);
    assert_eq!(json["invariants"], invariants);
    assert_eq!(json["errors_by_code"]["no_answer_in_time"], 1);
}

#[test]
fn one_broken_invariant_makes_the_report_not_ok() {
    let report = sample(false);
    assert!(!report.ok && report.verdict().contains("BROKEN"));
    assert!(report.table().contains("✗ nothing <bad>"));
}

#[test]
fn latency_counts_from_sending_in_a_rush_and_only_first_answers_are_in_it() {
    let report = sample(true);
    assert_eq!((report.latencies.count(), report.latency_from), (7, "sending"));
    assert!((report.latency.max_ms - 16.0).abs() < 0.1, "{:?}", report.latency);
    assert!((report.latency_since_arrival.max_ms - 24.0).abs() < 0.1, "{:?}", report.latency_since_arrival);
    assert!(
        report.latency_accepted.is_some_and(|accepted| (accepted.max_ms - 4.0).abs() < 0.1),
        "{:?}",
        report.latency_accepted
    );
}

#[test]
fn the_table_is_aligned() {
    let table = sample(true).table();
    assert!(table.contains("rush: 10 buyers, 2 products of 1 unit each, seed 42"), "{table}");
    let columns: Vec<usize> = table
        .lines()
        .filter(|line| {
            line.starts_with("  accepted ") || line.starts_with("  sold out ") || line.starts_with("  errors ")
        })
        .map(str::len)
        .collect();
    assert_eq!(columns.len(), 4, "{table}");
    assert_eq!(&columns[..1], &columns[1..2]);
    assert!(table.contains("All 1 invariants hold."));
}

#[test]
fn thousands_are_grouped() {
    for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(grouped(number), text);
    }
}
