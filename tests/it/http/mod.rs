//! What HTTP itself demands: routes, bodies, connections, browsers, health, and the process around it.

mod bodies;
mod browsers;
mod connections;
mod dependencies;
mod health;
mod idempotency;
mod process;
mod routes;

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Everything that the server says until it closes the connection or has said this.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut said = String::new();
    let reading = async {
        let mut piece = [0; 4096];
        while !said.contains(end) {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(count) => said.push_str(&String::from_utf8_lossy(&piece[..count])),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the server neither answers nor closes");
    said
}
