//! An endpoint of a seller: it records what it is sent, and misbehaves as it is told.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::harness::eventually;

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub enum Behave {
    /// With this status.
    Answer(u16),
    /// With a redirect to a path of its own.
    Redirect,
    /// Never.
    Hang,
    /// By closing the connection.
    Close,
    /// With 200 and a body that does not end.
    Flood,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Received {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub fn timestamp(&self) -> i64 {
        self.headers["webhook-timestamp"].parse().unwrap()
    }

    pub fn signatures(&self) -> Vec<&str> {
        self.headers["webhook-signature"].split(' ').collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    /// Whether one of its signatures is of this secret: reckoned here, from what the standard says.
    pub fn signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{}.{}.{}", self.id(), self.timestamp(), self.body).as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.signatures().contains(&expected.as_str())
    }
}

#[derive(Debug, Default)]
struct Shared {
    received: Vec<Received>,
    next: VecDeque<Behave>,
    open: usize,
    open_max: usize,
}

/// An endpoint; it and its connections are gone when this is dropped.
pub struct Receiver {
    scheme: &'static str,
    port: u16,
    shared: Arc<Mutex<Shared>>,
    _accepting: JoinSet<()>,
}

impl Receiver {
    /// One that always behaves like this.
    pub async fn start(always: Behave) -> Self {
        Self::listen(always, None).await
    }

    /// As [`Self::start`], over HTTPS.
    pub async fn start_secure(always: Behave, tls: TlsAcceptor) -> Self {
        Self::listen(always, Some(tls)).await
    }

    async fn listen(always: Behave, tls: Option<TlsAcceptor>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let state = Arc::clone(&shared);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, state) = (tls.clone(), Arc::clone(&state));
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, state, always).await,
                        // A client that does not trust us hangs up in the middle of the handshake.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, state, always).await;
                            }
                        }
                    }
                });
            }
        });
        Self { scheme, port, shared, _accepting: accepting }
    }

    /// Behaves like these first.
    pub fn first(self, behave: &[Behave]) -> Self {
        self.shared.lock().unwrap().next.extend(behave);
        self
    }

    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}/hooks?shop=1", self.scheme, self.port)
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().unwrap().received.clone()
    }

    pub fn of_kind(&self, kind: &str) -> Vec<Received> {
        self.received().into_iter().filter(|one| one.kind() == kind).collect()
    }

    pub fn ids(&self) -> HashSet<String> {
        self.received().iter().map(|one| one.id().to_owned()).collect()
    }

    /// The most requests that were open at once.
    pub fn open_max(&self) -> usize {
        self.shared.lock().unwrap().open_max
    }

    /// Waits until it has had this many requests.
    pub async fn until(&self, count: usize) -> Vec<Received> {
        eventually(&format!("{count} requests"), || async { self.received().len() >= count }).await;
        self.received()
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Mutex<Shared>>, always: Behave) {
    let Some(received) = read(&mut stream).await else { return };
    let behave = {
        let mut shared = shared.lock().unwrap();
        shared.received.push(received);
        shared.open += 1;
        shared.open_max = shared.open_max.max(shared.open);
        shared.next.pop_front().unwrap_or(always)
    };
    let answer = |status: u16| format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    match behave {
        Behave::Answer(status) => drop(stream.write_all(answer(status).as_bytes()).await),
        Behave::Redirect => {
            let redirect = "HTTP/1.1 302 X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            drop(stream.write_all(redirect.as_bytes()).await);
        }
        Behave::Hang => {
            // Until the other side gives up.
            drop(stream.read(&mut [0; 16]).await);
        }
        Behave::Close => {}
        Behave::Flood => {
            drop(stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 1000000000\r\n\r\n").await);
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    // Over TLS, what was written is on its way only after this.
    drop(stream.shutdown().await);
    drop(stream);
    shared.lock().unwrap().open -= 1;
}

/// A request with a body of the length that it says.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let path = lines.next()?.split(' ').nth(1)?.to_owned();
            let header =
                |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
            let headers: HashMap<_, _> = lines.filter_map(header).collect();
            if body.len() >= headers.get("content-length")?.parse().ok()? {
                return Some(Received { path, headers, body: body.to_owned() });
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}
