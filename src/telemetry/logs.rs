//! Logs: JSON lines for machines, text for people, on standard error.

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Starts logging for the process. A second call does nothing, so that tests may each ask for it.
pub fn start(config: &Log) {
    let filter = EnvFilter::try_new(&config.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match config.format {
        LogFormat::Json => subscriber.json().flatten_event(true).with_current_span(true).try_init(),
        LogFormat::Text => subscriber.compact().try_init(),
    };
    drop(started);
}
