//! Clients that hang up in the middle of a request.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::proxy::Proxy;
use super::{Actor, eventually};

/// A request over a connection of its own, of which nobody reads the answer.
pub struct Pending {
    socket: TcpStream,
    actor: Actor,
}

impl Pending {
    /// Sends it.
    pub async fn send(actor: &Actor, path: &str, body: &Value) -> Self {
        let mut socket = TcpStream::connect(actor.address()).await.unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: orbit\r\ncookie: token={}\r\ncontent-type: application/json\r\ncontent-length: \
             {}\r\n\r\n{body}",
            actor.token.as_ref().unwrap(),
            body.len(),
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        Self { socket, actor: actor.clone() }
    }

    /// Lets all before the `step`-th request to the store pass that the proxy holds, and waits until that one is held. False
    /// if there was an answer before: the request has no such step.
    pub async fn until_held(&mut self, proxies: &[&Proxy], step: usize) -> bool {
        let held = || proxies.iter().map(|proxy| proxy.holds()).sum::<usize>();
        let mut seen: Vec<usize> = proxies.iter().map(|proxy| proxy.holds()).collect();
        let mut first_byte = [0];
        for nth in 1..=step {
            let before: usize = seen.iter().sum();
            let what = format!("step {nth}");
            let reached = eventually(&what, || async { held() > before });
            tokio::select! {
                read = self.socket.read(&mut first_byte) => {
                    assert_eq!(read.unwrap(), 1, "the server hung up");
                    return false;
                }
                () = reached => {}
            }
            if nth < step {
                let stopped = proxies.iter().zip(&seen).find(|(proxy, seen)| proxy.holds() > **seen).unwrap().0;
                seen = proxies.iter().map(|proxy| proxy.holds()).collect();
                stopped.pass_one();
            }
        }
        true
    }

    /// Hangs up. The server has noticed when this returns: it deals with what comes later only after that.
    pub async fn hang_up(self) {
        drop(self.socket);
        for _ in 0..3 {
            self.actor.get("/health/live").await.expect(200);
        }
    }
}
