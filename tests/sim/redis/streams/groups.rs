//! Commands on groups of consumers.

use std::collections::BTreeMap;

use super::{Group, Id, Pending, Stream, entry};
use crate::redis::arguments::{Arguments, shown};
use crate::redis::keyspace::Keyspace;
use crate::redis::reply::{Answer, Bytes, Reply, SYNTAX};

/// `XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD count]`
pub fn create_group(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let mut arguments = Arguments::new(words);
    if !arguments.keyword("CREATE") {
        return Err("ERR unknown subcommand or wrong number of arguments for 'xgroup' command".to_owned());
    }
    let (key, name, from) = (arguments.word()?, arguments.word()?, arguments.word()?);
    let (mut make, mut entries_read) = (false, None);
    while !arguments.is_empty() {
        if arguments.keyword("MKSTREAM") {
            make = true;
        } else if arguments.keyword("ENTRIESREAD") {
            entries_read = u64::try_from(arguments.integer()?).ok();
        } else {
            return Err(SYNTAX.to_owned());
        }
    }
    if keys.read::<Stream>(key)?.is_none() && !make {
        return Err(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                    MKSTREAM option to create an empty stream automatically."
                .to_owned(),
        );
    }
    let from = if from == b"$" { None } else { Some(Id::parse(from, 0)?) };
    let stream: &mut Stream = keys.make(key)?;
    if stream.groups.contains_key(name) {
        return Err("BUSYGROUP Consumer Group name already exists".to_owned());
    }
    let last_id = from.unwrap_or(stream.last_id);
    let group = Group { last_id, entries_read, pending: BTreeMap::new(), consumers: Default::default() };
    stream.groups.insert(name.clone(), group);
    Ok(Reply::ok())
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK ms] [NOACK] STREAMS key id`; it never waits.
pub fn read_group(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let mut arguments = Arguments::new(words);
    if !arguments.keyword("GROUP") {
        return Err(SYNTAX.to_owned());
    }
    let (name, consumer) = (arguments.word()?, arguments.word()?);
    let (mut count, mut keep) = (usize::MAX, true);
    while !arguments.keyword("STREAMS") {
        if arguments.keyword("COUNT") {
            count = usize::try_from(arguments.integer()?).ok().filter(|count| *count > 0).unwrap_or(usize::MAX);
        } else if arguments.keyword("BLOCK") {
            arguments.integer()?;
        } else if arguments.keyword("NOACK") {
            keep = false;
        } else {
            return Err(SYNTAX.to_owned());
        }
    }
    let (key, from) = (arguments.word()?, arguments.word()?);
    arguments.end()?;
    let now_ms = keys.now_ms();
    let missing = || {
        let (key, name) = (shown(key), shown(name));
        format!("NOGROUP No such key '{key}' or consumer group '{name}' in XREADGROUP with GROUP option")
    };
    let stream = keys.change::<Stream>(key)?.ok_or_else(missing)?;
    let mut group = stream.groups.get(name).cloned().ok_or_else(missing)?;
    let from = if from == b">" { None } else { Some(Id::parse(from, 0)?) };
    let entries = match from {
        None => deliver_new(stream, &mut group, consumer, count, keep.then_some(now_ms)),
        Some(from) => deliver_again(stream, &mut group, consumer, from, count, now_ms),
    };
    let nothing_new = from.is_none() && entries.is_empty();
    if !nothing_new {
        group.consumers.insert(consumer.clone());
    }
    stream.groups.insert(name.clone(), group);
    if nothing_new {
        return Ok(Reply::Nil);
    }
    Ok(Reply::Array(vec![Reply::Array(vec![Reply::Bulk(key.clone()), Reply::Array(entries)])]))
}

/// Entries that the group has not seen. Without a time they count as acknowledged at once.
fn deliver_new(
    stream: &Stream,
    group: &mut Group,
    consumer: &Bytes,
    count: usize,
    pending_from_ms: Option<u64>,
) -> Vec<Reply> {
    let Some(from) = group.last_id.next() else { return Vec::new() };
    let mut delivered = Vec::new();
    for (id, fields) in stream.entries.range(from..).take(count) {
        group.entries_read = match group.entries_read {
            Some(read) if !stream.has_tombstones_from(*id) => Some(read + 1),
            _ => stream.distance_from_first(*id),
        };
        group.last_id = *id;
        if let Some(now_ms) = pending_from_ms {
            let pending = Pending { consumer: consumer.clone(), delivered_at_ms: now_ms, deliveries: 1 };
            group.pending.insert(*id, pending);
        }
        delivered.push(entry(*id, fields));
    }
    delivered
}

/// Entries that this consumer has not acknowledged. One that was deleted meanwhile comes without its fields.
fn deliver_again(
    stream: &Stream,
    group: &mut Group,
    consumer: &Bytes,
    behind: Id,
    count: usize,
    now_ms: u64,
) -> Vec<Reply> {
    let Some(from) = behind.next() else { return Vec::new() };
    let own = group.pending.range_mut(from..).filter(|(_, pending)| pending.consumer == *consumer);
    own.take(count)
        .map(|(id, pending)| match stream.entries.get(id) {
            None => Reply::Array(vec![id.reply(), Reply::Nil]),
            Some(fields) => {
                pending.delivered_at_ms = now_ms;
                pending.deliveries += 1;
                entry(*id, fields)
            }
        })
        .collect()
}

/// `XACK key group id [id ...]`
pub fn acknowledge(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let stream = keys.change::<Stream>(&words[0])?;
    let Some(group) = stream.and_then(|stream| stream.groups.get_mut(&words[1])) else { return Ok(Reply::Int(0)) };
    let ids: Vec<Id> = words[2..].iter().map(|text| Id::parse(text, 0)).collect::<Result<_, _>>()?;
    Ok(Reply::count(ids.iter().filter(|id| group.pending.remove(id).is_some()).count()))
}

fn no_group(key: &[u8], group: &[u8]) -> String {
    format!("NOGROUP No such key '{}' or consumer group '{}'", shown(key), shown(group))
}

/// `XPENDING key group [[IDLE ms] from to count [consumer]]`
pub fn pending(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let (key, name) = (&words[0], &words[1]);
    let mut arguments = Arguments::new(&words[2..]);
    let summary = arguments.is_empty();
    let idle_ms = if arguments.keyword("IDLE") { arguments.integer()? } else { 0 };
    let range = if summary {
        None
    } else {
        let (from, to) = (Id::parse_from(arguments.word()?)?, Id::parse_to(arguments.word()?)?);
        Some((from, to, usize::try_from(arguments.integer()?).unwrap_or(0)))
    };
    let consumer = if arguments.is_empty() { None } else { Some(arguments.word()?) };
    arguments.end()?;
    let now_ms = keys.now_ms();
    let stream = keys.read::<Stream>(key)?;
    let group = stream.and_then(|stream| stream.groups.get(name)).ok_or_else(|| no_group(key, name))?;
    let Some((from, to, count)) = range else { return Ok(pending_summary(group)) };
    let chosen = group
        .pending
        .iter()
        .filter(|(id, _)| (from..=to).contains(*id))
        .filter(|(_, pending)| consumer.is_none_or(|consumer| pending.consumer == *consumer))
        .filter(|(_, pending)| idle(pending, now_ms) >= idle_ms)
        .take(count);
    Ok(Reply::Array(
        chosen
            .map(|(id, pending)| {
                let (idle_ms, deliveries) = (idle(pending, now_ms), pending.deliveries as i64);
                let consumer = Reply::Bulk(pending.consumer.clone());
                Reply::Array(vec![id.reply(), consumer, Reply::Int(idle_ms), Reply::Int(deliveries)])
            })
            .collect(),
    ))
}

/// 0 when the clock was set back meanwhile.
const fn idle(pending: &Pending, now_ms: u64) -> i64 {
    now_ms.saturating_sub(pending.delivered_at_ms) as i64
}

fn pending_summary(group: &Group) -> Reply {
    let mut counts: BTreeMap<&Bytes, usize> = BTreeMap::new();
    for pending in group.pending.values() {
        *counts.entry(&pending.consumer).or_default() += 1;
    }
    let edge = |id: Option<&Id>| id.map_or(Reply::Nil, |id| id.reply());
    let consumers =
        counts.into_iter().map(|(consumer, count)| Reply::list([consumer.clone(), count.to_string().into()]));
    let consumers = if group.pending.is_empty() { Reply::Nil } else { Reply::Array(consumers.collect()) };
    let (first, last) = (edge(group.pending.keys().next()), edge(group.pending.keys().next_back()));
    Reply::Array(vec![Reply::count(group.pending.len()), first, last, consumers])
}

/// `XAUTOCLAIM key group consumer min-idle-ms from [COUNT count] [JUSTID]`
pub fn autoclaim(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let (key, name, consumer) = (&words[0], &words[1], &words[2]);
    let mut arguments = Arguments::new(&words[3..]);
    let min_idle_ms = arguments.integer()?.max(0);
    let from = Id::parse_from(arguments.word()?)?;
    let (mut count, mut only_ids) = (100, false);
    while !arguments.is_empty() {
        if arguments.keyword("COUNT") {
            let wanted = usize::try_from(arguments.integer()?).ok().filter(|count| *count > 0);
            count = wanted.ok_or("ERR COUNT must be > 0")?;
        } else if arguments.keyword("JUSTID") {
            only_ids = true;
        } else {
            return Err(SYNTAX.to_owned());
        }
    }
    let now_ms = keys.now_ms();
    let stream = keys.change::<Stream>(key)?.ok_or_else(|| no_group(key, name))?;
    let group = stream.groups.get_mut(name).ok_or_else(|| no_group(key, name))?;
    let candidates: Vec<Id> = group.pending.range(from..).map(|(id, _)| *id).collect();
    let (mut claimed, mut deleted, mut looked_at) = (Vec::new(), Vec::new(), 0);
    for id in &candidates {
        if looked_at == count * 10 || claimed.len() + deleted.len() == count {
            break;
        }
        looked_at += 1;
        let Some(fields) = stream.entries.get(id) else {
            group.pending.remove(id);
            deleted.push(id.reply());
            continue;
        };
        let Some(pending) = group.pending.get_mut(id) else { continue };
        if min_idle_ms > 0 && idle(pending, now_ms) < min_idle_ms {
            continue;
        }
        group.consumers.insert(consumer.clone());
        pending.consumer = consumer.clone();
        pending.delivered_at_ms = now_ms;
        pending.deliveries += u64::from(!only_ids);
        claimed.push(if only_ids { id.reply() } else { entry(*id, fields) });
    }
    let next = candidates.get(looked_at).copied().unwrap_or_default();
    Ok(Reply::Array(vec![next.reply(), Reply::Array(claimed), Reply::Array(deleted)]))
}
