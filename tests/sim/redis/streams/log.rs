//! Commands on the log itself.

use super::trim::Trim;
use super::{Id, Stream, entry};
use crate::redis::arguments::Arguments;
use crate::redis::keyspace::Keyspace;
use crate::redis::reply::{Answer, Bytes, Reply, SYNTAX};

/// `XADD key [NOMKSTREAM] [MAXLEN | MINID [= | ~] threshold [LIMIT count]] id field value [field value ...]`
pub fn add(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let key = &words[0];
    let mut arguments = Arguments::new(&words[1..]);
    let (mut make, mut trim) = (true, None);
    loop {
        if arguments.keyword("NOMKSTREAM") {
            make = false;
        } else if let Some(parsed) = Trim::parse(&mut arguments)? {
            trim = Some(parsed);
        } else {
            break;
        }
    }
    let wanted = Wanted::parse(arguments.word()?)?;
    let fields = arguments.rest();
    if fields.is_empty() || !fields.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'xadd' command".to_owned());
    }
    if matches!(wanted, Wanted::Exactly(Id::ZERO)) {
        return Err("ERR The ID specified in XADD must be greater than 0-0".to_owned());
    }
    let now_ms = keys.now_ms();
    let id = match keys.read::<Stream>(key)? {
        None if !make => return Ok(Reply::Nil),
        // Checked before the key is made: a refused entry leaves none.
        stream => wanted.choose(stream.map_or(Id::ZERO, |stream| stream.last_id), now_ms)?,
    };
    let stream: &mut Stream = keys.make(key)?;
    stream.append(id, fields.to_vec());
    if let Some(trim) = trim {
        trim.apply(stream);
    }
    Ok(id.reply())
}

/// The id that an entry is to have.
enum Wanted {
    Any,
    AnyWithin(u64),
    Exactly(Id),
}

impl Wanted {
    fn parse(text: &[u8]) -> Result<Self, String> {
        if text == b"*" {
            return Ok(Self::Any);
        }
        if let Some(ms) = text.strip_suffix(b"-*") {
            return Ok(Self::AnyWithin(Id::parse(ms, 0)?.ms));
        }
        Id::parse(text, 0).map(Self::Exactly)
    }

    /// An id above the last one. A clock that was set back does not lower ids.
    fn choose(self, last: Id, now_ms: u64) -> Result<Id, String> {
        let id = match self {
            Self::Any if now_ms > last.ms => Some(Id { ms: now_ms, seq: 0 }),
            Self::Any => last.next(),
            Self::AnyWithin(ms) if ms == last.ms => last.seq.checked_add(1).map(|seq| Id { ms, seq }),
            Self::AnyWithin(ms) => Some(Id { ms, seq: 0 }),
            Self::Exactly(id) => Some(id),
        };
        id.filter(|id| *id > last).ok_or_else(|| {
            "ERR The ID specified in XADD is equal or smaller than the target stream top item".to_owned()
        })
    }
}

pub fn length(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::count(keys.read::<Stream>(&words[0])?.map_or(0, |stream| stream.entries.len())))
}

/// `XRANGE key from to [COUNT count]`
pub fn range(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let (from, to) = (Id::parse_from(&words[1])?, Id::parse_to(&words[2])?);
    let count = count(Arguments::new(&words[3..]))?;
    let stream = keys.read::<Stream>(&words[0])?;
    let Some(stream) = stream.filter(|_| from <= to) else { return Ok(Reply::Array(Vec::new())) };
    let chosen = stream.entries.range(from..=to).take(count);
    Ok(Reply::Array(chosen.map(|(id, fields)| entry(*id, fields)).collect()))
}

/// `XREVRANGE key to from [COUNT count]`
pub fn range_reverse(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let (from, to) = (Id::parse_from(&words[2])?, Id::parse_to(&words[1])?);
    let count = count(Arguments::new(&words[3..]))?;
    let stream = keys.read::<Stream>(&words[0])?;
    let Some(stream) = stream.filter(|_| from <= to) else { return Ok(Reply::Array(Vec::new())) };
    let chosen = stream.entries.range(from..=to).rev().take(count);
    Ok(Reply::Array(chosen.map(|(id, fields)| entry(*id, fields)).collect()))
}

fn count(mut arguments: Arguments<'_>) -> Result<usize, String> {
    if arguments.is_empty() {
        return Ok(usize::MAX);
    }
    if !arguments.keyword("COUNT") {
        return Err(SYNTAX.to_owned());
    }
    let count = arguments.integer()?;
    arguments.end()?;
    Ok(usize::try_from(count).unwrap_or(0))
}

pub fn delete(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let Some(stream) = keys.change::<Stream>(&words[0])? else { return Ok(Reply::Int(0)) };
    let ids: Vec<Id> = words[1..].iter().map(|text| Id::parse(text, 0)).collect::<Result<_, _>>()?;
    let mut deleted = 0;
    for id in ids {
        if stream.remove(id) {
            deleted += 1;
            stream.max_deleted_id = stream.max_deleted_id.max(id);
        }
    }
    Ok(Reply::Int(deleted))
}

/// `XSETID key last-id [ENTRIESADDED count MAXDELETEDID id]`
pub fn set_id(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let last = Id::parse(&words[1], 0)?;
    let mut arguments = Arguments::new(&words[2..]);
    let (mut added, mut max_deleted) = (None, None);
    while !arguments.is_empty() {
        if arguments.keyword("ENTRIESADDED") {
            let count = u64::try_from(arguments.integer()?);
            added = Some(count.map_err(|_| "ERR entries_added must be positive".to_owned())?);
        } else if arguments.keyword("MAXDELETEDID") {
            max_deleted = Some(Id::parse(arguments.word()?, 0)?);
        } else {
            return Err(SYNTAX.to_owned());
        }
    }
    if max_deleted.is_some_and(|id| last < id) {
        return Err("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id".to_owned());
    }
    let stream = keys.change::<Stream>(&words[0])?.ok_or("ERR no such key")?;
    if stream.entries.keys().next_back().is_some_and(|top| last < *top) {
        return Err("ERR The ID specified in XSETID is smaller than the target stream top item".to_owned());
    }
    if added.is_some_and(|added| (stream.entries.len() as u64) > added) {
        return Err("ERR The entries_added specified in XSETID is smaller than the target stream length".to_owned());
    }
    stream.last_id = last;
    stream.entries_added = added.unwrap_or(stream.entries_added);
    stream.max_deleted_id = max_deleted.filter(|id| *id != Id::ZERO).unwrap_or(stream.max_deleted_id);
    Ok(Reply::ok())
}
