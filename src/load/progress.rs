//! What is going on, on standard error: a bar on a terminal, a line now and then elsewhere. Standard output is left to
//! the report.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const LINE_EVERY: Duration = Duration::from_secs(2);

/// Tells a person how far the run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    bars: bool,
}

impl Progress {
    /// Bars if standard error is a terminal and nobody asked for plain lines.
    #[must_use]
    pub fn new(plain: bool) -> Self {
        Self { bars: !plain && std::io::stderr().is_terminal() }
    }

    /// Says one sentence.
    pub fn say(&self, text: &str) {
        // A closed standard error is no reason to stop.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Begins a step of so many parts. Dropping it without [`Step::done`] leaves what it showed.
    #[must_use]
    pub fn step(&self, title: impl Into<String>, parts: usize) -> Step {
        let (title, parts) = (title.into(), parts as u64);
        let bar = self.bars.then(|| {
            let bar = ProgressBar::new(parts).with_message(title.clone());
            // The template is ours: if it does not parse, the default one is good enough.
            if let Ok(style) = ProgressStyle::with_template("  {msg:<34} {bar:30} {human_pos}/{human_len} {eta}") {
                bar.set_style(style);
            }
            bar.tick();
            bar
        });
        Step {
            progress: *self,
            title,
            parts,
            bar,
            count: AtomicU64::new(0),
            start: Instant::now(),
            told_ms: AtomicU64::new(0),
        }
    }
}

/// One step of the run.
#[derive(Debug)]
pub struct Step {
    progress: Progress,
    title: String,
    parts: u64,
    bar: Option<ProgressBar>,
    count: AtomicU64,
    start: Instant,
    told_ms: AtomicU64,
}

impl Step {
    /// One part more is done.
    pub fn inc(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.set_position(count);
        } else if self.due() {
            self.progress.say(&format!("  {}: {count} of {}", self.title, self.parts));
        }
    }

    /// The step is done; says how long it took, and something more.
    pub fn done(self, more: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let comma = if more.is_empty() { "" } else { ", " };
        self.progress.say(&format!("  {}: {:.2} s{comma}{more}", self.title, self.start.elapsed().as_secs_f64()));
    }

    /// Whether a line is due; only one of many concurrent callers is told so.
    fn due(&self) -> bool {
        let now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        let due = now_ms.saturating_sub(told_ms) >= u64::try_from(LINE_EVERY.as_millis()).unwrap_or(u64::MAX);
        due && self.told_ms.compare_exchange(told_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
