//! Whether this machine, with this configuration, can run the service: one finding for each thing that it stands on.
//!
//! For an operator before a deployment, and when something is wrong. It changes nothing: no folder is made, nothing is
//! migrated. Scripts are loaded into Redis, which any process does. A server that is away costs its own findings only, and
//! every question has a deadline.

mod clocks;
mod database;
mod finding;
mod live;
mod machine;
mod media;

use std::future::Future;
use std::time::Duration;

pub use finding::{Finding, Report, Verdict};

use crate::config::{Config, ConfigError};
use crate::domain::clock::Clock;
use crate::error::{Dependency, Error, Result};

/// No question takes longer, whatever the deadlines in the configuration are.
const QUESTION_DEADLINE: Duration = Duration::from_secs(10);

/// Examines everything that can be examined.
pub async fn examine(config: Result<Config, ConfigError>, clock: &dyn Clock) -> Report {
    let config = match config {
        Ok(config) => config,
        Err(error) => return Report::of(problems(&error)),
    };
    let (live, database, media) = tokio::join!(
        live::examine(&config.live, clock),
        database::examine(&config.mongo, clock),
        media::examine(&config.media),
    );
    let findings = [configuration(&config), live, database, media, machine::examine(&config)];
    Report::of(findings.into_iter().flatten().collect())
}

fn configuration(config: &Config) -> Vec<Finding> {
    let warnings = config.warnings().into_iter().map(|warning| {
        Finding::warn("configuration", warning, "leave it if that is what you mean; configs/default.toml tells more")
    });
    match config.validate() {
        Ok(()) => {
            let valid = Finding::ok("configuration", "every setting can be used");
            std::iter::once(valid).chain(warnings).collect()
        }
        Err(error) => problems(&error).into_iter().chain(warnings).collect(),
    }
}

fn problems(error: &ConfigError) -> Vec<Finding> {
    let advice = "change it in the file or in the environment; configs/default.toml tells what each setting means";
    error.problems.iter().map(|problem| Finding::fail("configuration", problem, advice)).collect()
}

async fn within<T>(
    dependency: Dependency,
    doing: &'static str,
    question: impl Future<Output = Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(QUESTION_DEADLINE, question).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::timed_out(dependency, doing)),
    }
}
