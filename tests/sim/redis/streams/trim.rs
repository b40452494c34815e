//! Trimming the beginning of a stream away.

use super::{Id, NODE_ENTRIES_MAX, Stream};
use crate::redis::arguments::Arguments;
use crate::redis::keyspace::Keyspace;
use crate::redis::reply::{Answer, Bytes, Reply, SYNTAX};

#[derive(Debug, Clone, Copy)]
enum Keep {
    /// This many of the newest entries.
    Newest(usize),
    /// Entries from this id on.
    From(Id),
}

/// What is to be trimmed.
#[derive(Debug, Clone, Copy)]
pub struct Trim {
    keep: Keep,
    /// Whole nodes only.
    approximate: bool,
    /// Entries that may go at most; 0 for any number.
    limit: usize,
}

impl Trim {
    /// `MAXLEN | MINID [= | ~] threshold [LIMIT count]`, if that is what comes next.
    pub fn parse(arguments: &mut Arguments<'_>) -> Result<Option<Self>, String> {
        let by_length = arguments.keyword("MAXLEN");
        if !by_length && !arguments.keyword("MINID") {
            return Ok(None);
        }
        let approximate = arguments.keyword("~");
        if !approximate {
            arguments.keyword("=");
        }
        let keep = if by_length {
            let length = arguments.integer()?;
            Keep::Newest(usize::try_from(length).map_err(|_| "ERR The MAXLEN argument must be >= 0.".to_owned())?)
        } else {
            Keep::From(Id::parse(arguments.word()?, 0)?)
        };
        let mut limit = if approximate { 100 * NODE_ENTRIES_MAX } else { 0 };
        if arguments.keyword("LIMIT") {
            let given = arguments.integer()?;
            if !approximate {
                return Err("ERR syntax error, LIMIT cannot be used without the special ~ option".to_owned());
            }
            limit = usize::try_from(given).map_err(|_| "ERR The LIMIT argument must be >= 0.".to_owned())?;
        }
        Ok(Some(Self { keep, approximate, limit }))
    }

    /// How many entries went.
    pub fn apply(self, stream: &mut Stream) -> usize {
        let mut trimmed = 0;
        while let Some((first, last, live)) = stream.nodes.iter().next().map(|(id, node)| (*id, node.last, node.live)) {
            let (done, whole) = match self.keep {
                Keep::Newest(count) => (stream.entries.len() <= count, stream.entries.len() - live >= count),
                Keep::From(id) => (false, last < id),
            };
            if done || (self.limit > 0 && trimmed + live > self.limit) {
                break;
            }
            if whole {
                stream.entries.retain(|id, _| *id > last);
                stream.nodes.remove(&first);
                trimmed += live;
            } else {
                trimmed += if self.approximate { 0 } else { self.trim_within(stream) };
                break;
            }
        }
        trimmed
    }

    /// Trims part of the first node, entry by entry.
    fn trim_within(self, stream: &mut Stream) -> usize {
        let going: Vec<Id> = match self.keep {
            Keep::Newest(count) => stream.entries.keys().take(stream.entries.len() - count).copied().collect(),
            Keep::From(id) => stream.entries.range(..id).map(|(id, _)| *id).collect(),
        };
        going.iter().filter(|id| stream.strike(**id)).count()
    }
}

/// `XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count]`
pub fn trim(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let mut arguments = Arguments::new(&words[1..]);
    let trim = Trim::parse(&mut arguments)?.ok_or_else(|| SYNTAX.to_owned())?;
    arguments.end()?;
    Ok(Reply::count(keys.change::<Stream>(&words[0])?.map_or(0, |stream| trim.apply(stream))))
}
