//! Logs: JSON lines for machines, text for people, on standard error or in a file.

use std::fs::File;
use std::io::IsTerminal;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{Log, LogFormat};

/// Starts logging for the process. A second call does nothing, so that tests may each ask for it.
pub fn start(config: &Log) {
    start_with(config, std::io::stderr, std::io::stderr().is_terminal());
}

/// As [`start`], into a file: for a program whose terminal shows something else.
pub fn start_in(config: &Log, file: File) {
    start_with(config, Mutex::new(file), false);
}

fn start_with<W>(config: &Log, writer: W, colours: bool)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(&config.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colours);
    let started = match config.format {
        LogFormat::Json => subscriber.json().flatten_event(true).with_current_span(true).try_init(),
        LogFormat::Text => subscriber.compact().try_init(),
    };
    drop(started);
}
