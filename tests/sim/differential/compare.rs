//! When two answers mean the same.

use redis::Value;

use crate::redis::{Bytes, Reply};

/// Times to live are read one after the other, on a clock that runs.
const TTL_TOLERANCE: u64 = 60_000;

/// What the driver read, as a reply.
pub fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Int(number),
        Value::BulkString(bytes) => Reply::Bulk(bytes),
        Value::SimpleString(text) => Reply::Status(text),
        Value::Okay => Reply::ok(),
        Value::Array(items) => Reply::Array(items.into_iter().map(reply).collect()),
        Value::ServerError(error) => {
            let details = error.details().unwrap_or_default();
            Reply::Error(format!("{} {details}", error.code()).trim().to_owned())
        }
        other => panic!("{other:?} is not of protocol version 2"),
    }
}

/// A command as one would type it.
pub fn shown(words: &[Bytes]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| match String::from_utf8_lossy(word) {
            text if text.len() > 200 => "'...'".to_owned(),
            text => format!("'{text}'"),
        })
        .collect();
    words.join(" ")
}

fn name(words: &[Bytes]) -> String {
    String::from_utf8_lossy(&words[0]).to_uppercase()
}

/// An answer without what need not agree: order where there is none, times, and where in a script an error was.
pub fn comparable(words: &[Bytes], answer: Reply) -> Reply {
    let answer = without_times(answer);
    match (name(words).as_str(), answer) {
        ("EVAL" | "EVALSHA", Reply::Error(text)) => Reply::Error(error_in_script(&text)),
        ("HGETALL", Reply::Array(items)) => Reply::Array(in_order(&items)),
        ("ZSCAN", Reply::Array(mut page)) => {
            if let Some(Reply::Array(items)) = page.get_mut(1) {
                *items = in_order(items);
            }
            Reply::Array(page)
        }
        ("SMEMBERS" | "HVALS", Reply::Array(mut items)) => {
            items.sort_by_key(|item| format!("{item:?}"));
            Reply::Array(items)
        }
        ("XPENDING", Reply::Array(items)) => Reply::Array(items.into_iter().map(without_idle_time).collect()),
        ("XINFO", Reply::Array(items)) => Reply::Array(without_field(items, b"radix-tree-nodes")),
        (_, answer) => answer,
    }
}

/// Pairs that have no order, in one.
fn in_order(items: &[Reply]) -> Vec<Reply> {
    let mut pairs: Vec<&[Reply]> = items.chunks(2).collect();
    pairs.sort_by_key(|pair| format!("{pair:?}"));
    pairs.concat()
}

/// Replaces the time of day, and stream ids made from it, in each word. It has thirteen digits, and nothing else here has.
fn without_times(answer: Reply) -> Reply {
    match answer {
        Reply::Bulk(bytes) => {
            let words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').map(without_time).collect();
            Reply::Bulk(words.join(&b' '))
        }
        Reply::Array(items) => Reply::Array(items.into_iter().map(without_times).collect()),
        other => other,
    }
}

fn without_time(word: &[u8]) -> &[u8] {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match word.get(13) {
        None if digits == 13 => b"<ms>",
        Some(b'-') if digits == 13 => b"<id>",
        _ => word,
    }
}

/// `[id, consumer, idle, deliveries]`; anything else is left alone.
fn without_idle_time(item: Reply) -> Reply {
    match item {
        Reply::Array(mut parts) if parts.len() == 4 => {
            parts[2] = Reply::Int(0);
            Reply::Array(parts)
        }
        other => other,
    }
}

fn without_field(mut items: Vec<Reply>, name: &[u8]) -> Vec<Reply> {
    if let Some(at) = items.iter().position(|item| matches!(item, Reply::Bulk(bytes) if bytes == name)) {
        items.drain(at..at + 2);
    }
    items
}

/// The error itself: Redis adds the script's hash and the line.
fn error_in_script(text: &str) -> String {
    let text = text.split(" script: ").next().unwrap_or_default();
    let text = text.split(", on @user_script").next().unwrap_or_default();
    text.to_owned()
}

/// Whether two comparable answers mean the same.
pub fn same(words: &[Bytes], real: &Reply, fake: &Reply) -> bool {
    match (name(words).as_str(), real, fake) {
        ("TTL" | "PTTL", Reply::Int(real), Reply::Int(fake)) if *real > 0 && *fake > 0 => {
            real.abs_diff(*fake) <= TTL_TOLERANCE
        }
        _ => real == fake,
    }
}
