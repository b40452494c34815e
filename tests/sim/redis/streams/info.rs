//! What a stream says of itself.

use super::{Group, Stream, entry};
use crate::redis::arguments::Arguments;
use crate::redis::keyspace::Keyspace;
use crate::redis::reply::{Answer, Bytes, Reply};

/// `XINFO STREAM key` and `XINFO GROUPS key`
pub fn info(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let mut arguments = Arguments::new(words);
    let of_stream = arguments.keyword("STREAM");
    if !of_stream && !arguments.keyword("GROUPS") {
        return Err("ERR unknown subcommand or wrong number of arguments for 'xinfo' command".to_owned());
    }
    let key = arguments.word()?;
    arguments.end()?;
    let stream = keys.read::<Stream>(key)?.ok_or("ERR no such key")?;
    if of_stream {
        return Ok(stream_info(stream));
    }
    Ok(Reply::Array(stream.groups.iter().map(|(name, group)| group_info(stream, name, group)).collect()))
}

fn record(fields: Vec<(&str, Reply)>) -> Reply {
    Reply::Array(fields.into_iter().flat_map(|(name, value)| [Reply::text(name), value]).collect())
}

fn number(value: Option<u64>) -> Reply {
    value.map_or(Reply::Nil, |value| Reply::Int(value as i64))
}

fn stream_info(stream: &Stream) -> Reply {
    let edge = |found: Option<(&super::Id, &Vec<Bytes>)>| found.map_or(Reply::Nil, |(id, fields)| entry(*id, fields));
    record(vec![
        ("length", Reply::count(stream.entries.len())),
        ("radix-tree-keys", Reply::count(stream.nodes.len())),
        // How the tree branches is nobody's business.
        ("radix-tree-nodes", Reply::count(stream.nodes.len() + 1)),
        ("last-generated-id", stream.last_id.reply()),
        ("max-deleted-entry-id", stream.max_deleted_id.reply()),
        ("entries-added", number(Some(stream.entries_added))),
        ("recorded-first-entry-id", stream.first_id().reply()),
        ("groups", Reply::count(stream.groups.len())),
        ("first-entry", edge(stream.entries.iter().next())),
        ("last-entry", edge(stream.entries.iter().next_back())),
    ])
}

fn group_info(stream: &Stream, name: &Bytes, group: &Group) -> Reply {
    record(vec![
        ("name", Reply::Bulk(name.clone())),
        ("consumers", Reply::count(group.consumers.len())),
        ("pending", Reply::count(group.pending.len())),
        ("last-delivered-id", group.last_id.reply()),
        ("entries-read", number(group.entries_read)),
        ("lag", lag(stream, group).map_or(Reply::Nil, Reply::Int)),
    ])
}

/// How many entries the group has still to read, if that can be known. Negative when the count was set back.
fn lag(stream: &Stream, group: &Group) -> Option<i64> {
    let read = match group.entries_read {
        _ if stream.entries_added == 0 => return Some(0),
        Some(read) if !stream.has_tombstones_from(group.last_id) => read,
        _ => stream.distance_from_first(group.last_id)?,
    };
    Some(stream.entries_added as i64 - read as i64)
}
