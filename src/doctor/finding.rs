//! What was found, and what to do about it.

use std::fmt;

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and somebody should look.
    Warn,
    /// It does not work, or not safely.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word or two.
    pub check: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do; there is something unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fail, found: found.into(), advice: Some(advice.into()) }
    }
}

/// One line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        // Drivers word their errors in more than one line.
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "{word:<4}  {:<15}  {}", self.check, one_line(&self.found))?;
        match &self.advice {
            Some(advice) => write!(f, " -> {}", one_line(advice)),
            None => Ok(()),
        }
    }
}

/// Everything that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Nothing failed.
    pub ok: bool,
    /// In the order in which a service needs them.
    pub checks: Vec<Finding>,
}

impl Report {
    pub(super) fn of(checks: Vec<Finding>) -> Self {
        Self { ok: checks.iter().all(|finding| finding.verdict != Verdict::Fail), checks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_and_a_report_with_a_failure_is_not_ok() {
        let fine = Finding::ok("redis", "it\nanswers");
        let away = Finding::fail("mongodb", "away", "start it");
        assert_eq!(fine.to_string(), "ok    redis            it answers");
        assert_eq!(away.to_string(), "FAIL  mongodb          away -> start it");
        assert!(Report::of(vec![fine.clone(), Finding::warn("media", "full", "make room")]).ok);
        assert!(!Report::of(vec![fine, away]).ok);
    }
}
