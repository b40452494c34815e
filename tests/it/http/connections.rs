//! Connections: slow ones end, and there are only so many.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::read_until;
use crate::harness::{TestApp, config};

#[tokio::test]
async fn clients_that_dribble_their_headers_are_cut_off_while_others_are_served() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 5).await;
    let buyer = app.buyer().await;
    let address = app.running.address;
    let dribbling = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n").await.unwrap();
        let started = Instant::now();
        let mut pace = tokio::time::interval(Duration::from_millis(50));
        let mut piece = [0; 1024];
        loop {
            assert!(started.elapsed() < Duration::from_secs(15), "the connection is still open");
            tokio::select! {
                read = stream.read(&mut piece) => if matches!(read, Ok(0) | Err(_)) { break },
                _ = pace.tick() => if stream.write_all(b"X-A: b\r\n").await.is_err() { break },
            }
        }
        started.elapsed()
    };
    let slow = futures::future::join_all((0..50).map(|_| dribbling()));
    let served = async {
        app.anonymous().get("/health/live").await.expect(200);
        buyer.post(&sale.purchase(0)).await.expect(201);
    };
    let (lasted, ()) = tokio::join!(slow, served);
    let limit = Duration::from_millis(app.config().server.header_timeout_ms);
    assert!(lasted.iter().all(|time| *time >= limit / 2), "cut off too early: {lasted:?}");
    app.finish().await;
}

#[tokio::test]
async fn beyond_the_cap_a_connection_waits_until_another_closes() {
    let mut config = config().await;
    config.server.connections_max = 2;
    config.server.header_timeout_ms = 60_000;
    let app = TestApp::with(config).await;
    let request = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";
    let open = async || {
        let mut stream = TcpStream::connect(app.running.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream
    };
    let (mut first, mut second) = (open().await, open().await);
    for stream in [&mut first, &mut second] {
        assert!(read_until(stream, "live\"").await.starts_with("HTTP/1.1 200"));
    }
    let mut third = open().await;
    let mut piece = [0; 64];
    let early = tokio::time::timeout(Duration::from_millis(500), third.read(&mut piece)).await;
    assert!(early.is_err(), "the third connection was served beside two others");
    // Those that are in are served on.
    first.write_all(request).await.unwrap();
    assert!(read_until(&mut first, "live\"").await.starts_with("HTTP/1.1 200"));
    drop(second);
    assert!(read_until(&mut third, "live\"").await.starts_with("HTTP/1.1 200"));
    drop((first, third));
    app.finish().await;
}

#[tokio::test]
async fn an_absurd_request_head_is_refused_and_the_server_lives_on() {
    let app = TestApp::start().await;
    let many: String = (0..200).map(|number| format!("X-{number}: a\r\n")).collect();
    for head in [
        format!("GET /health/live HTTP/1.1\r\nHost: x\r\n{many}\r\n"),
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1_000_000)),
        "nonsense\r\n\r\n".to_owned(),
        "GET /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
    ] {
        let mut stream = TcpStream::connect(app.running.address).await.unwrap();
        // The server may close before it has read all of it.
        drop(stream.write_all(head.as_bytes()).await);
        let said = read_until(&mut stream, "\r\n\r\n").await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    app.anonymous().get("/health/live").await.expect(200);
    app.finish().await;
}
