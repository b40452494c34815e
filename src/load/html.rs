//! The report as a page that needs nothing from anywhere: one file, to open, keep or send.

use std::fmt::Write;

use super::chart;
use super::report::Report;
use super::table::{grouped, time};

const STYLE: &str = include_str!("report.css");
/// Bars of the latency histogram.
const CLASSES: u32 = 48;

/// The whole page.
#[must_use]
pub fn page(report: &Report) -> String {
    let title = escaped(&report.headline());
    let (class, verdict) = (if report.ok { "good" } else { "bad" }, escaped(&report.verdict()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Orbit {title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Orbit flash sale</h1>\n<p class=\"lead\">{title}</p>\n<p class=\"verdict {class}\">{verdict}</p>\n"
    );
    // Writing to a String does not fail.
    let _ = write!(page, "{}{}{}{}", tiles(report), outcomes(report), latency(report), over_time(report));
    let _ = write!(page, "{}</main>\n</body>\n</html>\n", invariants(report));
    page
}

fn tiles(report: &Report) -> String {
    let tiles = [
        ("accepted", grouped(report.accepted as u64)),
        ("orders", grouped(report.orders as u64)),
        ("purchases/s", format!("{:.0}", report.purchases_per_s)),
        ("p50", time(report.latency.p50_ms)),
        ("p99", time(report.latency.p99_ms)),
        ("opening", time(report.open_ms)),
        ("settling", time(report.settle_ms)),
    ];
    let mut html = "<dl class=\"tiles\">\n".to_owned();
    for (name, value) in tiles {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    html + "</dl>\n"
}

fn outcomes(report: &Report) -> String {
    let bar = chart::outcomes(&[
        ("accepted", "accepted", report.accepted),
        ("refused", "sold out", report.sold_out),
        ("again", "already booked", report.already_booked),
        ("failed", "sale not active", report.not_active),
        ("failed", "errors", report.errors),
    ]);
    let mut html = format!("<h2>Outcomes of {} purchases</h2>\n{bar}\n<table>\n", grouped(report.attempts as u64));
    for (name, count) in report.outcomes() {
        let class = if name.starts_with(' ') { " class=\"sub\"" } else { "" };
        let (name, count) = (escaped(name.trim()), grouped(count as u64));
        let _ = writeln!(html, "<tr{class}><th>{name}</th><td>{count}</td></tr>");
    }
    for (name, value) in report.figures() {
        let _ = writeln!(html, "<tr><th>{name}</th><td>{}</td></tr>", escaped(&value));
    }
    html + "</table>\n"
}

fn latency(report: &Report) -> String {
    let quantiles = [("p50", report.latency.p50_ms), ("p95", report.latency.p95_ms), ("p99", report.latency.p99_ms)];
    let svg = chart::latency(&report.latencies.classes(CLASSES), &quantiles);
    let mut html = format!(
        "<h2>Latency, from {} to answer</h2>\n{svg}\n<table>\n<tr><th>ms</th><th>p50</th><th>p95</th><th>p99</th>\
         <th>p99.9</th><th>max</th></tr>\n",
        report.latency_from
    );
    for (name, p) in report.latency_rows() {
        let _ = writeln!(
            html,
            "<tr><th>{name}</th><td>{:.2}</td><td>{:.2}</td><td>{:.2}</td><td>{:.2}</td><td>{:.2}</td></tr>",
            p.p50_ms, p.p95_ms, p.p99_ms, p.p999_ms, p.max_ms
        );
    }
    html + "</table>\n"
}

fn over_time(report: &Report) -> String {
    let (width, slices) = &report.timeline;
    let width_ms = width.as_secs_f64() * 1000.0;
    let svg = chart::timeline(width_ms, slices);
    format!(
        "<h2>Purchases answered per {width_ms:.0} ms</h2>\n{svg}\n<p class=\"legend\"><span class=\"accepted\"></span>\
         accepted <span class=\"refused\"></span>refused <span class=\"failed\"></span>failed, or asked again</p>\n"
    )
}

fn invariants(report: &Report) -> String {
    let mut html = "<h2>Invariants</h2>\n<ul class=\"checks\">\n".to_owned();
    for check in &report.invariants {
        let (class, mark) = if check.ok { ("good", "✓") } else { ("bad", "✗") };
        let (name, detail) = (escaped(check.name), escaped(&check.detail));
        let _ = writeln!(html, "<li class=\"{class}\"><b>{mark}</b> {name} <small>{detail}</small></li>");
    }
    html + "</ul>\n"
}

/// Codes and details are the server's words, and a server may be anybody's.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::tests::sample;

    #[test]
    fn the_page_fetches_nothing_and_runs_nothing() {
        let page = page(&sample(true));
        for word in ["http:", "https:", "src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page.matches("<svg").count(), 3);
        assert_eq!(page.matches("</svg>").count(), 3);
    }

    #[test]
    fn the_servers_words_are_only_words() {
        let page = page(&sample(false));
        assert!(page.contains("&lt;script&gt;") && page.contains("nothing &lt;bad&gt;"), "{page}");
        assert!(page.contains("✗") && page.contains("verdict bad"));
    }
}
