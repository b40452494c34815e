//! A reader that gives each piece of a file no more than its share of memory.

use std::io::{self, BufRead, Read};

use super::fault::ImportFault;

/// Parsers gather one record or one tag at a time, however long it is. This reader ends in an error when they have taken
/// more than `max` bytes since [`Bounded::next_piece`].
#[derive(Debug)]
pub(super) struct Bounded<R> {
    inner: R,
    left: usize,
    max: usize,
}

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R, max: usize) -> Self {
        Self { inner, left: max, max }
    }

    pub(super) const fn next_piece(&mut self) {
        self.left = self.max;
    }

    fn check(&self) -> io::Result<()> {
        if self.left > 0 { Ok(()) } else { Err(ImportFault::CellTooLong { bytes_max: self.max }.through_io()) }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        let share = buffer.len().min(self.left);
        let read = self.inner.read(&mut buffer[..share])?;
        self.left -= read;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        let available = self.inner.fill_buf()?;
        Ok(&available[..available.len().min(self.left)])
    }

    fn consume(&mut self, amount: usize) {
        self.left -= amount.min(self.left);
        self.inner.consume(amount);
    }
}
