//! What the server answers, and how that looks on the wire.

/// A Redis string: any bytes.
pub type Bytes = Vec<u8>;

/// What a command came to; the text of an error starts with its code.
pub type Answer = Result<Reply, String>;

pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub const SYNTAX: &str = "ERR syntax error";
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// A value of the protocol, version 2.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    Nil,
    Int(i64),
    Status(String),
    Error(String),
    Bulk(Bytes),
    Array(Vec<Self>),
}

impl Reply {
    pub fn ok() -> Self {
        Self::Status("OK".to_owned())
    }

    pub fn text(text: impl Into<Bytes>) -> Self {
        Self::Bulk(text.into())
    }

    /// An array of strings.
    pub fn list<T: Into<Bytes>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::Array(items.into_iter().map(Self::text).collect())
    }

    /// A number of things.
    pub fn count(number: usize) -> Self {
        Self::Int(number as i64)
    }

    /// Appends the bytes that a client would receive.
    pub fn encode(&self, out: &mut Bytes) {
        match self {
            Self::Nil => out.extend(b"$-1\r\n"),
            Self::Int(number) => out.extend(format!(":{number}\r\n").bytes()),
            Self::Status(text) => out.extend(format!("+{text}\r\n").bytes()),
            Self::Error(text) => out.extend(format!("-{text}\r\n").bytes()),
            Self::Bulk(bytes) => {
                out.extend(format!("${}\r\n", bytes.len()).bytes());
                out.extend(bytes);
                out.extend(b"\r\n");
            }
            Self::Array(items) => {
                out.extend(format!("*{}\r\n", items.len()).bytes());
                for item in items {
                    item.encode(out);
                }
            }
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nil => f.write_str("nil"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Status(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Bulk(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Self::Array(items) => f.debug_list().entries(items).finish(),
        }
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        answer.unwrap_or_else(Self::Error)
    }
}
