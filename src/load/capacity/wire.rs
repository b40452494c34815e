//! HTTP/1.1 over one kept connection, with as little work as can be: client and service share a machine's cores more often than
//! not, and what the client spends is missing in what it measures.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No answer of a purchase is near this.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

/// A connection that is made when it is needed, and made anew after an error.
#[derive(Debug)]
pub(super) struct Wire {
    authority: String,
    patience: Duration,
    stream: Option<TcpStream>,
    received: Vec<u8>,
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Wire {
    /// To `authority`, such as `localhost:9132`. No answer may take longer than `patience`.
    pub(super) fn new(authority: &str, patience: Duration) -> Self {
        Self { authority: authority.to_owned(), patience, stream: None, received: Vec::with_capacity(4096) }
    }

    /// Connects, if it has not.
    pub(super) async fn open(&mut self) -> io::Result<()> {
        if self.stream.is_none() {
            let stream = tokio::time::timeout(self.patience, TcpStream::connect(&self.authority)).await??;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    /// Sends a whole request and reads its answer. Nothing is sent twice.
    pub(super) async fn call(&mut self, request: &[u8]) -> io::Result<Reply<'_>> {
        self.open().await?;
        let Some(mut stream) = self.stream.take() else { return Err(broken("no connection")) };
        self.received.clear();
        let exchange = exchange(&mut stream, request, &mut self.received);
        let (status, body) = tokio::time::timeout(self.patience, exchange).await??;
        // Only a connection whose answer was read to its end is good for the next.
        self.stream = Some(stream);
        Ok(Reply { status, body: &self.received[body..] })
    }
}

/// Returns the status, and where the body begins.
async fn exchange(stream: &mut TcpStream, request: &[u8], received: &mut Vec<u8>) -> io::Result<(u16, usize)> {
    stream.write_all(request).await?;
    loop {
        if stream.read_buf(received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            if received.len() > HEAD_BYTES_MAX {
                return Err(broken("the head of the answer has no end"));
            }
            continue;
        };
        let (status, length) = head(&received[..end])?;
        let whole = end + 4 + length;
        while received.len() < whole {
            if stream.read_buf(received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if received.len() > whole {
            return Err(broken("more than the answer came"));
        }
        return Ok((status, end + 4));
    }
}

/// The status, and the length of the body.
fn head(bytes: &[u8]) -> io::Result<(u16, usize)> {
    let text = std::str::from_utf8(bytes).map_err(|_| broken("the head of the answer is no text"))?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let status: u16 = status.ok_or_else(|| broken("the answer has no status"))?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    match length {
        Some(length) if length <= BODY_BYTES_MAX => Ok((status, length)),
        Some(_) => Err(broken("the body of the answer is too long")),
        None if status == 204 => Ok((status, 0)),
        // Orbit's own answers all say how long they are.
        None => Err(broken("the answer does not say how long it is")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_status_and_length() {
        assert_eq!(head(b"HTTP/1.1 201 Created\r\nContent-Length: 12\r\nx: y").unwrap(), (201, 12));
        assert_eq!(head(b"HTTP/1.1 204 No Content\r\nx: y").unwrap(), (204, 0));
        for wrong in [&b"HTTP/1.1 200 OK"[..], b"HTTP/1.1 200 OK\r\ncontent-length: x", b"hello", b"\xff"] {
            assert!(head(wrong).is_err(), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn answers_are_read_to_their_end_over_one_connection() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut wire = Wire::new(&listener.local_addr().unwrap().to_string(), Duration::from_secs(20));
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            for pieces in [["HTTP/1.1 200 OK\r\ncontent-le", "ngth: 5\r\n\r\nhe", "llo"], ["HTTP/1.1 204 x\r\n", "\r", "\n"]] {
                let mut request = [0; 4];
                stream.read_exact(&mut request).await.unwrap();
                for piece in pieces {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        };
        let ask = async {
            let reply = wire.call(b"ask1").await.unwrap();
            assert_eq!((reply.status, reply.body), (200, &b"hello"[..]));
            let reply = wire.call(b"ask2").await.unwrap();
            assert_eq!((reply.status, reply.body), (204, &b""[..]));
        };
        tokio::join!(serve, ask);
        // The other side is gone: an error, and not the answer before.
        assert!(wire.call(b"ask3").await.is_err());
    }
}
