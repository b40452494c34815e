//! The accept loop. `axum::serve` sets no timers, so a client that dribbles its headers would hold a connection for
//! ever; this loop has them, caps connections, and shuts down gracefully.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Layer;

use super::layer::PeerAddress;
use super::patience::Patient;
use crate::app::App;
use crate::task::Tracker;
use crate::telemetry::metrics::CONNECTIONS;

/// A serving application.
#[derive(Debug)]
pub struct Running {
    /// The application.
    pub app: Arc<App>,
    /// Where the API listens.
    pub address: SocketAddr,
    /// Where the metrics are, if they are on.
    pub metrics_address: Option<SocketAddr>,
}

impl Running {
    /// Stops accepting, finishes running requests, openings and settlements within the grace, and closes the stores.
    /// False if something still ran when the grace was over.
    pub async fn stop(self) -> bool {
        let grace = Duration::from_millis(self.app.config().server.shutdown_grace_ms);
        let finished = self.app.tasks().stop(grace).await;
        if !finished {
            tracing::error!(running = self.app.tasks().running(), "some work did not finish within the grace");
        }
        self.app.mongo().close().await;
        finished
    }
}

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    connections_max: usize,
    header_timeout: Duration,
    write_timeout: Duration,
}

impl From<&crate::config::Server> for Limits {
    fn from(config: &crate::config::Server) -> Self {
        Self {
            connections_max: config.connections_max,
            header_timeout: Duration::from_millis(config.header_timeout_ms),
            write_timeout: Duration::from_millis(config.write_timeout_ms),
        }
    }
}

/// Serves until the tracker's shutdown, then lets running requests finish.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, tasks: Tracker) {
    let places = Arc::new(Semaphore::new(limits.connections_max));
    loop {
        // A place first, then a connection: beyond the cap, clients wait in the kernel's bounded backlog.
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let accepted = tokio::select! {
            accepted = accepted => accepted,
            () = tasks.shutdown().cancelled() => return,
        };
        match accepted {
            Some((place, Ok((stream, peer)))) => {
                let connection = connection(stream, peer, router.clone(), limits, tasks.clone(), place);
                tasks.spawn(connection);
            }
            // Out of file descriptors, or a peer that gave up: neither is a reason to spin or to stop.
            Some((_, Err(error))) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            None => return,
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    limits: Limits,
    tasks: Tracker,
    _place: OwnedSemaphorePermit,
) {
    metrics::gauge!(CONNECTIONS).increment(1.0);
    // Answers are small and must not wait for more.
    drop(stream.set_nodelay(true));
    let service = TowerToHyperService::new(Extension(PeerAddress(peer.ip())).layer(router));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(64)
        .serve_connection(TokioIo::new(Patient::new(stream, limits.write_timeout)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = tasks.shutdown().cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    metrics::gauge!(CONNECTIONS).decrement(1.0);
}
