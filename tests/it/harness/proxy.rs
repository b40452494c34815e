//! A TCP proxy in front of a store that loses answers, holds requests, cuts connections and fails over to another server.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// What the proxy does with what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Nothing.
    Pass = 0,
    /// Closes every connection, and each new one at once.
    Cut = 1,
}

/// The proxy; it and its connections are gone when this is dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    /// Dropped, and so aborted, together with the proxy.
    _accepting: JoinSet<()>,
}

struct Shared {
    target: AtomicU16,
    mode: AtomicU8,
    /// What marks the requests whose answers are dropped, and how many of those are still to come.
    doomed: Mutex<(String, usize)>,
    dropped: AtomicUsize,
    /// What marks the requests that are held.
    held: Mutex<Option<String>>,
    /// How many have been.
    holds: AtomicUsize,
    /// One for each request that may go on.
    passes: Semaphore,
    /// Counts how often all were let go on.
    freed: watch::Sender<u64>,
    cut: watch::Sender<u64>,
}

impl Shared {
    /// Waits with a request that is to be held, and with everything behind it on its connection.
    async fn hold(&self, request: &[u8]) {
        // Before looking: whoever is let go on later is let go on here.
        let mut freed = self.freed.subscribe();
        let marked = {
            let held = self.held.lock().unwrap();
            held.as_ref().is_some_and(|marker| request.windows(marker.len()).any(|part| part == marker.as_bytes()))
        };
        if marked {
            self.holds.fetch_add(1, Ordering::SeqCst);
            tokio::select! {
                pass = self.passes.acquire() => pass.unwrap().forget(),
                changed = freed.changed() => changed.unwrap(),
            }
        }
    }

    /// Whether the answer to this request is to be dropped; that is one less then.
    fn dooms(&self, request: &[u8]) -> bool {
        let mut doomed = self.doomed.lock().unwrap();
        let (marker, left) = &*doomed;
        let found = *left > 0 && request.windows(marker.len()).any(|part| part == marker.as_bytes());
        doomed.1 -= usize::from(found);
        found
    }

    fn mode(&self) -> Mode {
        match self.mode.load(Ordering::SeqCst) {
            0 => Mode::Pass,
            _ => Mode::Cut,
        }
    }
}

impl Proxy {
    /// A proxy to this port of 127.0.0.1.
    pub async fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = AtomicU8::new(Mode::Pass as u8);
        let doomed = Mutex::new((String::new(), 0));
        let shared = Shared {
            target: AtomicU16::new(target),
            mode,
            doomed,
            dropped: AtomicUsize::new(0),
            held: Mutex::new(None),
            holds: AtomicUsize::new(0),
            passes: Semaphore::new(0),
            freed: watch::Sender::new(0),
            cut: watch::Sender::new(0),
        };
        let shared = Arc::new(shared);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Self { port, shared, _accepting: accepting }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Changes what happens from now on; connections stay open unless they are cut.
    pub fn set(&self, mode: Mode) {
        self.shared.mode.store(mode as u8, Ordering::SeqCst);
        if mode == Mode::Cut {
            self.shared.cut.send_modify(|times| *times += 1);
        }
    }

    /// Cuts every connection; new ones reach another server, as when a replica has been promoted.
    pub fn fail_over(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
        self.shared.cut.send_modify(|times| *times += 1);
    }

    /// Lets the next so many requests with this text in them through to the server, and closes the connection in place
    /// of the answer.
    pub fn drop_answers(&self, marker: &str, times: usize) {
        *self.shared.doomed.lock().unwrap() = (marker.to_owned(), times);
    }

    /// Holds each request with this text in it from now on, before the server has it.
    pub fn hold(&self, marker: &str) {
        *self.shared.held.lock().unwrap() = Some(marker.to_owned());
    }

    /// How many requests have been held so far.
    pub fn holds(&self) -> usize {
        self.shared.holds.load(Ordering::SeqCst)
    }

    /// Lets one request go on that is held now, or that comes next.
    pub fn pass_one(&self) {
        self.shared.passes.add_permits(1);
    }

    /// Holds nothing more, and lets everything go on that is held now.
    pub fn pass_all(&self) {
        *self.shared.held.lock().unwrap() = None;
        self.shared.freed.send_modify(|times| *times += 1);
    }

    /// The same server through this proxy, by an address that leads to it directly.
    pub fn instead_of(&self, address: &str) -> String {
        let direct = format!(":{}", self.shared.target.load(Ordering::SeqCst));
        assert!(address.contains(&direct), "{address} does not lead to the server behind the proxy");
        address.replace(&direct, &format!(":{}", self.port))
    }

    /// Whether every answer that was to be dropped has been.
    pub fn settled(&self) -> bool {
        self.shared.doomed.lock().unwrap().1 == 0
    }

    /// How many answers were dropped.
    pub fn dropped(&self) -> usize {
        self.shared.dropped.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped, and so aborted, together with this task.
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        if shared.mode() != Mode::Cut {
            connections.spawn(relay(client, Arc::clone(&shared)));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Ends when either side closes, or is cut; then both sides are closed.
async fn relay(client: TcpStream, shared: Arc<Shared>) {
    let mut cut = shared.cut.subscribe();
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target.load(Ordering::SeqCst))).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Whether a request has passed whose answer is to be dropped.
    let doomed = AtomicBool::new(false);
    tokio::select! {
        () = requests(from_client, to_server, &shared, &doomed) => {}
        () = answers(from_server, to_client, &shared, &doomed) => {}
        _ = cut.changed() => {}
    }
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, doomed: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        if shared.dooms(&buffer[..length]) {
            doomed.store(true, Ordering::SeqCst);
        }
        shared.hold(&buffer[..length]).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, doomed: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        if doomed.load(Ordering::SeqCst) {
            shared.dropped.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
