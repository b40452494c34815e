//! Cursors of SCAN and SSCAN.
//!
//! Redis promises little: what is there from the first page to the last is returned, at least once. This one keeps that
//! promise and no more. It goes through the elements in the order of a hash, so that coming and going elements do not
//! disturb the rest, and every page but the first begins with an element that was returned before.

use super::arguments::Arguments;
use super::glob;
use super::number::unsigned;
use super::reply::{Bytes, Reply, SYNTAX};

/// The options of a scanning command.
pub struct Scan {
    cursor: u64,
    count: usize,
    pattern: Option<Bytes>,
}

impl Scan {
    pub fn parse(mut arguments: Arguments<'_>) -> Result<Self, String> {
        let cursor = unsigned_cursor(arguments.word()?)?;
        let (mut count, mut pattern) = (10, None);
        while !arguments.is_empty() {
            if arguments.keyword("COUNT") {
                count = unsigned(arguments.word()?)? as usize;
            } else if arguments.keyword("MATCH") {
                pattern = Some(arguments.word()?.clone());
            } else {
                return Err(SYNTAX.to_owned());
            }
        }
        if count == 0 {
            return Err(SYNTAX.to_owned());
        }
        Ok(Self { cursor, count, pattern })
    }

    /// One page: the next cursor and the elements.
    pub fn page<'a>(&self, elements: impl Iterator<Item = &'a Bytes>) -> Reply {
        let mut ordered: Vec<(u64, &Bytes)> = elements.map(|element| (hash(element), element)).collect();
        ordered.sort_unstable();
        let from = ordered.partition_point(|(hash, _)| *hash < self.cursor);
        let mut to = ordered.len().min(from + self.count);
        // Elements of one hash have one cursor: they come together.
        while to < ordered.len() && to > from && ordered[to].0 == ordered[to - 1].0 {
            to += 1;
        }
        let next = ordered.get(to).map_or(0, |(hash, _)| *hash);
        let page = ordered[from.saturating_sub(1)..to].iter().map(|(_, element)| *element);
        let wanted = page.filter(|element| self.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, element)));
        Reply::Array(vec![Reply::text(next.to_string()), Reply::list(wanted.cloned())])
    }
}

fn unsigned_cursor(text: &[u8]) -> Result<u64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| "ERR invalid cursor".to_owned())
}

/// FNV-1a; never 0, which is where a scan begins and ends.
fn hash(element: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    element.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)).max(1)
}
