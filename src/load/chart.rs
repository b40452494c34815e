//! Charts as inline SVG. Colours come from the page, so that they follow its light and dark dress.

use std::fmt::Write;

use super::latency::Slice;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 48.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 10.0;

/// One bar: parts from the bottom up as (style class, count), and what to say when it is pointed at.
struct Bar {
    parts: Vec<(&'static str, u64)>,
    tip: String,
}

/// Latency classes as bars. The classes widen by a factor, so the scale is logarithmic.
pub(super) fn latency(classes: &[(f64, u64)], quantiles: &[(&str, f64)]) -> String {
    let bars: Vec<Bar> = classes
        .iter()
        .map(|(bound, count)| Bar { parts: vec![("refused", *count)], tip: format!("up to {bound:.2} ms: {count}") })
        .collect();
    let labels = ticks(classes.len(), |index| format!("{:.3}", Short(classes[index].0)));
    let marks: Vec<(f64, String)> = quantiles
        .iter()
        .map(|(name, value)| {
            let class = classes.partition_point(|(bound, _)| bound < value).min(classes.len().saturating_sub(1));
            (place(class, classes.len()), (*name).to_owned())
        })
        .collect();
    plot("Latency histogram", "ms", &bars, &labels, &marks)
}

/// Purchases answered in each slice of time.
pub(super) fn timeline(width_ms: f64, slices: &[Slice]) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
    let from = |index: usize| index as f64 * width_ms / 1000.0;
    let bars: Vec<Bar> = slices
        .iter()
        .enumerate()
        .map(|(index, slice)| Bar {
            parts: vec![("accepted", slice.accepted), ("refused", slice.refused), ("failed", slice.failed)],
            tip: format!(
                "from {:.1} s: {} accepted, {} refused, {} failed",
                from(index),
                slice.accepted,
                slice.refused,
                slice.failed
            ),
        })
        .collect();
    let labels = ticks(slices.len(), |index| format!("{:.1}", from(index)));
    plot("Purchases answered over time", "s", &bars, &labels, &[])
}

/// One bar across, divided by outcome.
pub(super) fn outcomes(parts: &[(&'static str, &str, usize)]) -> String {
    let total: usize = parts.iter().map(|(_, _, count)| count).sum();
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} 40" role="img" aria-label="Outcomes">"#);
    let mut x = 0.0;
    for (class, name, count) in parts.iter().filter(|(_, _, count)| *count > 0) {
        // Too thin to see would be a lie, too.
        let width = (share(*count as u64, total as u64) * WIDTH).max(2.0);
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{x:.1}" y="4" width="{width:.1}" height="32" rx="2"><title>{name}: {count}</title></rect>"#
        );
        x += width;
    }
    svg + "</svg>"
}

fn plot(title: &str, unit: &str, bars: &[Bar], labels: &[(f64, String)], marks: &[(f64, String)]) -> String {
    let top = bars.iter().map(|bar| bar.parts.iter().map(|(_, count)| count).sum()).max().unwrap_or(0_u64).max(1);
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#);
    let base = HEIGHT - BOTTOM;
    for line in [1.0, 0.5] {
        let y = base - (base - TOP) * line;
        #[expect(clippy::cast_precision_loss, reason = "a label")]
        let value = Short(top as f64 * line);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{WIDTH}" y2="{y:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{value:.0}</text>"#,
            LEFT - 6.0,
            y + 4.0
        );
    }
    let width = place(1, bars.len()) - place(0, bars.len());
    for (index, bar) in bars.iter().enumerate() {
        let mut y = base;
        svg.push_str("<g>");
        for (class, count) in bar.parts.iter().filter(|(_, count)| *count > 0) {
            let height = ((base - TOP) * share(*count, top)).max(1.0);
            y -= height;
            let _ = write!(
                svg,
                r#"<rect class="{class}" x="{:.2}" y="{y:.2}" width="{:.2}" height="{height:.2}"/>"#,
                place(index, bars.len()),
                (width * 0.86).max(0.5)
            );
        }
        let _ = write!(svg, "<title>{}</title></g>", bar.tip);
    }
    for (index, (x, name)) in marks.iter().enumerate() {
        svg.push_str(&mark(x + width / 2.0, index, name));
    }
    for (x, label) in labels {
        let _ = write!(svg, r#"<text x="{x:.1}" y="{:.1}">{label}</text>"#, HEIGHT - 10.0);
    }
    let _ = write!(svg, r#"<text x="{WIDTH}" y="{:.1}" text-anchor="end">{unit}</text></svg>"#, HEIGHT - 10.0);
    svg
}

/// A line down the chart with its name. Names step down, so that those of neighbours do not cover each other.
fn mark(x: f64, index: usize, name: &str) -> String {
    let base = HEIGHT - BOTTOM;
    let (side, anchor) = if x > WIDTH - 40.0 { (-3.0, "end") } else { (3.0, "start") };
    let y = TOP + 9.0 + 11.0 * f64::from(u32::try_from(index).unwrap_or(0));
    format!(
        r#"<line class="mark" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{base}"/><text class="mark" x="{:.1}" y="{y:.1}" text-anchor="{anchor}">{name}</text>"#,
        x + side
    )
}

/// Where the bar of this index begins.
#[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
fn place(index: usize, count: usize) -> f64 {
    LEFT + (WIDTH - LEFT) * index as f64 / count.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "a length in a picture")]
fn share(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

/// At most eight labels along the axis, with room for its unit at the end.
fn ticks(count: usize, label: impl Fn(usize) -> String) -> Vec<(f64, String)> {
    let every = count.div_ceil(8).max(1);
    let places = (0..count).step_by(every).map(|index| (place(index, count), index));
    places.filter(|(x, _)| *x < WIDTH - 50.0).map(|(x, index)| (x, label(index))).collect()
}

/// A number with three significant digits at most.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = if self.0 >= 100.0 {
            0
        } else if self.0 >= 10.0 {
            1
        } else {
            2
        };
        write!(f, "{:.*}", decimals.min(f.precision().unwrap_or(2)), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_a_bar_and_nothing_is_drawn_outside() {
        let classes: Vec<(f64, u64)> = (1..=40_u32).map(|n| (f64::from(n), u64::from(n))).collect();
        let svg = latency(&classes, &[("p50", 20.0), ("p99", 40.0)]);
        assert_eq!(svg.matches("<rect").count(), 40);
        assert_eq!(svg.matches("class=\"mark\" x1").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        for part in svg.split("<rect").skip(1) {
            let attribute = |name: &str| -> f64 {
                let rest = part.split_once(&format!(" {name}=\"")).unwrap().1;
                rest.split_once('"').unwrap().0.parse().unwrap()
            };
            assert!(attribute("x") >= LEFT - 0.01 && attribute("x") + attribute("width") <= WIDTH + 0.01, "{part}");
            assert!(attribute("y") >= TOP - 0.01 && attribute("height") > 0.0, "{part}");
        }
    }

    #[test]
    fn nothing_to_draw_is_an_empty_chart() {
        for svg in [latency(&[], &[("p50", 0.0)]), timeline(100.0, &[]), outcomes(&[])] {
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn a_few_among_many_can_still_be_seen() {
        let svg = outcomes(&[("accepted", "accepted", 1), ("refused", "sold out", 100_000), ("failed", "errors", 0)]);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains(r#"width="2.0""#));
    }
}
