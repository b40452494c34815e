//! What Redis and MongoDB have in common here: one directory, one port, and one process at a time.

use std::path::Path;

use super::error::{ServerName, SupervisorError};
use super::home::Home;
use super::port::free_port;
use super::process::{Launch, Process};
use super::readiness::{self, Sign};

/// Between choosing a free port and the server's binding it, another process can take the port.
const PORT_ATTEMPTS: usize = 3;

/// A server that can be ended and started again in the same place.
#[derive(Debug)]
pub(super) struct Server {
    // Before `home`, so that the process is gone when the directory is given up.
    process: Option<Process>,
    launch: Launch,
    port: u16,
    sign: Sign,
    home: Home,
}

impl Server {
    /// Starts a server in `dir` on `port`, or on a free one. `launch` says how, given both.
    pub(super) async fn start(
        name: ServerName,
        dir: &Path,
        port: Option<u16>,
        sign: Sign,
        launch: impl Fn(&Path, u16) -> Launch,
    ) -> Result<Self, SupervisorError> {
        let home = Home::claim(name, dir).await?;
        let mut attempts = if port.is_some() { 1 } else { PORT_ATTEMPTS };
        loop {
            let port = port.map_or_else(free_port, Ok)?;
            let launch = launch(home.dir(), port);
            attempts -= 1;
            match start_process(&home, &launch, port, sign).await {
                Ok(process) => {
                    return Ok(Self { process: Some(process), launch, port, sign, home });
                }
                Err(error) if attempts > 0 && error.lost_the_port() => {
                    tracing::warn!(server = %name, port, "another process took the port first; trying another one");
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub(super) async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill().await;
            self.home.remove_pid();
        }
    }

    pub(super) async fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await;
            self.home.remove_pid();
            tracing::info!(server = %self.home.server(), port = self.port, "stopped");
        }
    }

    pub(super) async fn restart(&mut self) -> Result<(), SupervisorError> {
        self.stop().await;
        self.process = Some(start_process(&self.home, &self.launch, self.port, self.sign).await?);
        Ok(())
    }
}

async fn start_process(home: &Home, launch: &Launch, port: u16, sign: Sign) -> Result<Process, SupervisorError> {
    let process = Process::spawn(home, launch)?;
    let process = readiness::wait(home, process, port, sign).await?;
    tracing::info!(
        server = %home.server(), port, pid = process.pid(), program = %launch.program.display(),
        dir = %home.dir().display(), "started",
    );
    Ok(process)
}
