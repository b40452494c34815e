//! The report in words and columns.

use std::fmt::Write;

use super::report::{Percentiles, Report};

impl Report {
    /// What was played, in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let plural = |count: u64, one: &str| format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" });
        let (buyers, products) = (plural(self.buyers as u64, "buyer"), plural(self.products as u64, "product"));
        let units = plural(u64::from(self.units), "unit");
        format!("{}: {buyers}, {products} of {units} each, seed {}", self.scenario, self.seed)
    }

    /// The counts with their names, the errors one by one.
    #[must_use]
    pub fn outcomes(&self) -> Vec<(String, usize)> {
        let mut rows = vec![
            ("accepted".to_owned(), self.accepted),
            ("sold out".to_owned(), self.sold_out),
            ("already booked".to_owned(), self.already_booked),
        ];
        if self.not_active > 0 {
            rows.push(("sale not active".to_owned(), self.not_active));
        }
        rows.push(("errors".to_owned(), self.errors));
        rows.extend(self.errors_by_code.iter().map(|(code, count)| (format!("  {code}"), *count)));
        rows
    }

    /// The latency rows of the table and of the page; none for what did not happen.
    #[must_use]
    pub fn latency_rows(&self) -> Vec<(String, Percentiles)> {
        let other = if self.latency_from == "sending" {
            ("all, from the common start".to_owned(), self.latency_since_arrival)
        } else {
            ("all, from sending".to_owned(), self.latency_since_sent)
        };
        let mut rows = vec![(format!("all, from {}", self.latency_from), self.latency)];
        rows.extend(self.latency_accepted.map(|accepted| ("accepted".to_owned(), accepted)));
        rows.extend(self.latency_refused.map(|refused| ("refused".to_owned(), refused)));
        rows.push(other);
        rows
    }

    /// Speeds and times, as label and value.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let answered = grouped(self.answered as u64);
        let mut rows = vec![
            (
                "purchases per second",
                format!("{:.0} ({answered} in {:.2} s)", self.purchases_per_s, self.duration_ms / 1000.0),
            ),
            ("orders after the end", grouped(self.orders as u64)),
            ("opening the sale", time(self.open_ms)),
            ("ending and settling", time(self.settle_ms)),
        ];
        if self.asked_again > 0 {
            rows.push(("buyers who asked again", grouped(self.asked_again as u64)));
        }
        if self.accepted_before > 0 {
            rows.push(("sold outside the measured time", grouped(self.accepted_before as u64)));
        }
        rows
    }

    /// How the invariants came out, in one sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let broken = self.invariants.iter().filter(|check| !check.ok).count();
        let all = self.invariants.len();
        if broken == 0 {
            format!("All {all} invariants hold.")
        } else {
            format!("{broken} of {all} invariants are BROKEN.")
        }
    }

    /// The table for a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("\n{}\n\n", self.headline());
        // Writing to a String does not fail.
        for (name, count) in self.outcomes() {
            let _ = writeln!(text, "  {name:<28} {:>9}", grouped(count as u64));
        }
        let _ = writeln!(
            text,
            "\n  {:<28} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "latency in ms", "p50", "p95", "p99", "p99.9", "max"
        );
        for (name, p) in self.latency_rows() {
            let _ = writeln!(
                text,
                "  {name:<28} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
                p.p50_ms, p.p95_ms, p.p99_ms, p.p999_ms, p.max_ms
            );
        }
        text.push('\n');
        for (name, value) in self.figures() {
            let _ = writeln!(text, "  {name:<28} {value}");
        }
        text.push('\n');
        let width = self.invariants.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for check in &self.invariants {
            let mark = if check.ok { '✓' } else { '✗' };
            let _ = writeln!(text, "  {mark} {:<width$}  {}", check.name, check.detail);
        }
        let _ = writeln!(text, "\n{}", self.verdict());
        text
    }
}

/// A time in the unit that a person would say it in.
#[must_use]
pub fn time(ms: f64) -> String {
    if ms < 1_000.0 { format!("{ms:.1} ms") } else { format!("{:.2} s", ms / 1_000.0) }
}

/// 1234567 as 1,234,567.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
