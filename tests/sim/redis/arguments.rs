//! Reading the arguments of a command from left to right.

use super::number;
use super::reply::{Bytes, SYNTAX};

/// What is left of a command's arguments.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    rest: &'a [Bytes],
}

impl<'a> Arguments<'a> {
    pub const fn new(words: &'a [Bytes]) -> Self {
        Self { rest: words }
    }

    /// The next one, whatever it is.
    pub fn word(&mut self) -> Result<&'a Bytes, String> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| SYNTAX.to_owned())?;
        self.rest = rest;
        Ok(first)
    }

    pub fn integer(&mut self) -> Result<i64, String> {
        number::integer(self.word()?)
    }

    /// Takes the next one if it is this word, in any case.
    pub fn keyword(&mut self, word: &str) -> bool {
        let found = self.rest.first().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Everything that is left.
    pub const fn rest(&self) -> &'a [Bytes] {
        self.rest
    }

    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A syntax error unless everything has been read.
    pub fn end(&self) -> Result<(), String> {
        if self.is_empty() { Ok(()) } else { Err(SYNTAX.to_owned()) }
    }
}

/// Bytes as text for a message.
pub fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
