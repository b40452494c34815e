//! What processes of this machine use, from `/proc`.

use std::time::Duration;

use serde::Serialize;

/// `/proc` counts processor time in these, on every architecture.
const TICKS_PER_S: f64 = 100.0;

/// A process that is watched.
#[derive(Debug, Clone)]
pub struct Watched {
    /// What it is: `api`, `redis`, `mongo`.
    pub name: &'static str,
    /// Its id.
    pub pid: u32,
}

/// What a process used while something was done.
#[derive(Debug, Clone, Serialize)]
pub struct Used {
    /// What it is.
    pub process: &'static str,
    /// Cores that it kept busy, on average.
    pub cores: f64,
    /// Memory that it held at the end, in MiB.
    pub rss_mib: f64,
}

/// Processor time in seconds, of each that is still there.
pub(super) fn processor_s(watched: &[Watched]) -> Vec<Option<f64>> {
    watched.iter().map(|process| ticks(&read(process.pid, "stat")?).map(|ticks| ticks / TICKS_PER_S)).collect()
}

/// What they used since `before` was taken.
pub(super) fn since(watched: &[Watched], before: &[Option<f64>], took: Duration) -> Vec<Used> {
    let now = processor_s(watched);
    let used = |((process, now), before): ((&Watched, Option<f64>), &Option<f64>)| {
        let cores = (now? - (*before)?) / took.as_secs_f64().max(f64::EPSILON);
        Some(Used { process: process.name, cores: hundredths(cores), rss_mib: memory_mib(process.pid, "VmRSS")? })
    };
    watched.iter().zip(now).zip(before).filter_map(used).collect()
}

/// The memory that a process holds (`VmRSS`), or the most that it has held (`VmHWM`), in MiB.
pub(super) fn memory_mib(pid: u32, field: &str) -> Option<f64> {
    let status = read(pid, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| hundredths(kib / 1024.0))
}

fn read(pid: u32, file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

/// User and system time. The name of the program comes before them, in brackets, and may contain anything.
fn ticks(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?)
}

pub(super) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 10 0 0 0 150 25 0 0 20 0 4 0 100 0 0";
        assert_eq!(ticks(stat), Some(175.0));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn this_process_can_be_watched_and_one_that_is_gone_is_left_out() {
        let watched = [Watched { name: "api", pid: std::process::id() }, Watched { name: "gone", pid: u32::MAX }];
        let used = since(&watched, &processor_s(&watched), Duration::from_secs(1));
        assert_eq!(used.iter().map(|used| used.process).collect::<Vec<_>>(), ["api"]);
        assert!(used[0].rss_mib > 1.0 && memory_mib(std::process::id(), "VmHWM") >= Some(used[0].rss_mib));
    }
}
