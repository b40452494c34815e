//! Random commands on a few keys of every kind.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::redis::Bytes;

/// A command, as one would type it: right most of the time.
pub fn command(random: &mut StdRng) -> Vec<Bytes> {
    let family = [strings, keys, hashes, sets, sorted_sets, log, log, groups, groups];
    let line = pick(random, &family)(random);
    line.into_iter().map(Bytes::from).collect()
}

type Line = Vec<String>;

fn pick<'a, T>(random: &mut StdRng, from: &'a [T]) -> &'a T {
    &from[random.random_range(0..from.len())]
}

fn word(random: &mut StdRng, from: &[&str]) -> String {
    (*pick(random, from)).to_owned()
}

/// A key that holds this kind of value, or now and then any other.
fn key(random: &mut StdRng, kind: &str) -> String {
    const KINDS: [&str; 5] = ["string", "hash", "set", "zset", "stream"];
    let kind = if random.random_bool(0.05) { word(random, &KINDS) } else { kind.to_owned() };
    format!("{kind}{}", random.random_range(0..2))
}

fn value(random: &mut StdRng) -> String {
    word(random, &["", "a", "b", "1", "10", "-3", "1.5", "9223372036854775807", "007", "1e3", "text with spaces"])
}

fn member(random: &mut StdRng) -> String {
    format!("m{}", random.random_range(0..6))
}

fn whole(random: &mut StdRng) -> String {
    word(random, &["1", "2", "-1", "0", "5", "-7", "1.5", "x", "", "9223372036854775807", "+1", "01"])
}

/// A time to live: one that has passed, or one that outlives the test.
fn ttl(random: &mut StdRng) -> String {
    word(random, &["0", "-1", "100000000", "200000000", "x"])
}

fn line(words: &[&str]) -> Line {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn strings(random: &mut StdRng) -> Line {
    let key = key(random, "string");
    let mut words = match random.random_range(0..4) {
        0 => return line(&["GET", &key]),
        _ => line(&["SET", &key, &value(random)]),
    };
    if random.random_bool(0.3) {
        words.push(word(random, &["NX", "XX", "nx", "BAD"]));
    }
    if random.random_bool(0.3) {
        words.push(word(random, &["EX", "PX", "px"]));
        words.push(ttl(random));
    }
    words
}

fn keys(random: &mut StdRng) -> Line {
    let kind = word(random, &["string", "hash", "set", "zset", "stream", "none"]);
    let (key, other) = (key(random, &kind), key(random, "hash"));
    match random.random_range(0..11) {
        10 => line(&["PERSIST", &key]),
        0 => line(&["DEL", &key, &other]),
        1 => line(&["UNLINK", &key]),
        2 => line(&["EXISTS", &key, &other, &key]),
        3 => line(&["EXPIRE", &key, &ttl(random)]),
        4 => line(&["PEXPIRE", &key, &ttl(random)]),
        5 => line(&["TTL", &key]),
        6 => line(&["PTTL", &key]),
        7 => line(&["TYPE", &key]),
        8 => line(&["GET"]),
        _ => line(&["PING"]),
    }
}

fn hashes(random: &mut StdRng) -> Line {
    let (key, field, other) = (key(random, "hash"), member(random), member(random));
    match random.random_range(0..11) {
        10 => line(&["HVALS", &key]),
        0 => line(&["HGET", &key, &field]),
        1 => line(&["HMGET", &key, &field, &other, &field]),
        2 => line(&["HGETALL", &key]),
        3 => line(&["HSET", &key, &field, &value(random)]),
        4 => line(&["HSET", &key, &field, &value(random), &other, &value(random)]),
        5 => line(&["HSET", &key, &field, &value(random), &other]),
        6 => line(&["HINCRBY", &key, &field, &whole(random)]),
        7 => line(&["HDEL", &key, &field, &other]),
        8 => line(&["HEXISTS", &key, &field]),
        _ => line(&["HLEN", &key]),
    }
}

fn sets(random: &mut StdRng) -> Line {
    let (key, first, second) = (key(random, "set"), member(random), member(random));
    match random.random_range(0..6) {
        0 | 1 => line(&["SADD", &key, &first, &second]),
        2 => line(&["SREM", &key, &first, &second]),
        3 => line(&["SISMEMBER", &key, &first]),
        4 => line(&["SCARD", &key]),
        _ => line(&["SMEMBERS", &key]),
    }
}

fn score(random: &mut StdRng) -> String {
    word(random, &["0", "0", "0", "1", "-2", "1.5", "0.1", "1e20", "9007199254740993", "x"])
}

fn sorted_sets(random: &mut StdRng) -> Line {
    let (key, first, second) = (key(random, "zset"), member(random), member(random));
    match random.random_range(0..12) {
        0..=2 => line(&["ZADD", &key, &score(random), &first, &score(random), &second]),
        3 => line(&["ZADD", &key, &word(random, &["NX", "XX"]), &score(random), &first]),
        11 => line(&["ZSCAN", &key, &word(random, &["0", "0", "0", "x"])]),
        4 => line(&["ZREM", &key, &first, &second]),
        5 => line(&["ZCARD", &key]),
        6 => line(&["ZSCORE", &key, &first]),
        7 => {
            let edge = |random: &mut StdRng| word(random, &["-inf", "+inf", "0", "(0", "1", "(1.5", "x"]);
            let mut words = line(&["ZRANGEBYSCORE", &key, &edge(random), &edge(random), "WITHSCORES"]);
            limit(random, &mut words);
            words
        }
        8 => {
            let mut words = line(&["ZRANGE", &key, &whole(random), &whole(random)]);
            words.extend(random.random_bool(0.5).then(|| word(random, &["WITHSCORES", "REV", "LIMIT"])));
            words
        }
        // Only where every score is equal is an order by text defined.
        9 => {
            let mut words = line(&["ZRANGE", "level", "-", "+", "BYLEX"]);
            limit(random, &mut words);
            words
        }
        _ => {
            let edge = |random: &mut StdRng| word(random, &["-", "+", "[m1", "(m1", "(m4", "m1"]);
            if random.random_bool(0.5) {
                return line(&["ZADD", "level", "0", &first, "0", &second]);
            }
            let mut words = line(&["ZRANGEBYLEX", "level", &edge(random), &edge(random)]);
            limit(random, &mut words);
            words
        }
    }
}

fn limit(random: &mut StdRng, words: &mut Line) {
    if random.random_bool(0.5) {
        words.push("LIMIT".to_owned());
        words.push(word(random, &["0", "1", "-1"]));
        words.push(word(random, &["2", "10", "-1", "0"]));
    }
}

/// An id in a small range, so that commands meet each other's entries.
fn id(random: &mut StdRng) -> String {
    match random.random_range(0..20) {
        0 => "0".to_owned(),
        1 => "0-0".to_owned(),
        2 => word(random, &["x", "1-x", "18446744073709551615-1"]),
        _ => format!("{}-{}", random.random_range(1..9), random.random_range(0..3)),
    }
}

fn edge(random: &mut StdRng) -> String {
    match random.random_range(0..6) {
        0 => "-".to_owned(),
        1 => "+".to_owned(),
        2 => format!("({}", id(random)),
        3 => random.random_range(0..9).to_string(),
        _ => id(random),
    }
}

fn trimming(random: &mut StdRng) -> Line {
    let mut words = if random.random_bool(0.5) {
        line(&["MAXLEN", "", &word(random, &["0", "1", "3", "8", "-1"])])
    } else {
        line(&["MINID", "", &id(random)])
    };
    words[1] = word(random, &["~", "=", ""]);
    words.retain(|word| !word.is_empty());
    if random.random_bool(0.3) {
        words.push("LIMIT".to_owned());
        words.push(word(random, &["0", "1", "4", "6", "100"]));
    }
    words
}

fn log(random: &mut StdRng) -> Line {
    let key = key(random, "stream");
    match random.random_range(0..14) {
        0..=4 => line(&["XADD", &key, &id(random), "n", &value(random), "m", &member(random)]),
        5 => {
            let mut words = line(&["XADD", &key]);
            words.extend(random.random_bool(0.3).then(|| "NOMKSTREAM".to_owned()));
            words.extend(trimming(random));
            words.extend(line(&[&format!("{}-*", random.random_range(1..9)), "n", "1"]));
            words
        }
        6 => line(&["XADD", &key, &id(random), "n", "1", "m"]),
        7 => line(&["XLEN", &key]),
        8 => line(&["XRANGE", &key, &edge(random), &edge(random)]),
        9 => line(&["XREVRANGE", &key, &edge(random), &edge(random), "COUNT", &word(random, &["1", "3"])]),
        10 | 11 => line(&["XDEL", &key, &id(random), &id(random)]),
        12 => {
            let mut words = line(&["XSETID", &key, &id(random)]);
            if random.random_bool(0.7) {
                words.extend(line(&["ENTRIESADDED", &random.random_range(0..20).to_string()]));
                words.extend(line(&["MAXDELETEDID", &word(random, &["0-0", "0-0", "2-1"])]));
            }
            words
        }
        _ => {
            let mut words = line(&["XTRIM", &key]);
            words.extend(trimming(random));
            words
        }
    }
}

fn groups(random: &mut StdRng) -> Line {
    let key = key(random, "stream");
    let (group, consumer) = (word(random, &["g", "h"]), word(random, &["c", "d"]));
    match random.random_range(0..12) {
        0 | 1 => {
            let mut words = line(&["XGROUP", "CREATE", &key, &group, &word(random, &["0", "$", "3-1"])]);
            words.extend(random.random_bool(0.5).then(|| "MKSTREAM".to_owned()));
            words
        }
        2..=4 => {
            let mut words = line(&["XREADGROUP", "GROUP", &group, &consumer]);
            words.extend(line(&["COUNT", &word(random, &["1", "2", "10"])]));
            words.extend(random.random_bool(0.2).then(|| "NOACK".to_owned()));
            words.extend(line(&["STREAMS", &key]));
            words.push(if random.random_bool(0.7) { ">".to_owned() } else { id(random) });
            words
        }
        5 | 6 => line(&["XACK", &key, &group, &id(random), &id(random)]),
        7 => line(&["XPENDING", &key, &group]),
        8 => {
            let mut words = line(&["XPENDING", &key, &group, &edge(random), &edge(random), "10"]);
            words.extend(random.random_bool(0.5).then_some(consumer));
            words
        }
        9 => {
            // Idle for a day nothing is, and for no time everything.
            let idle = word(random, &["0", "86400000"]);
            let mut words = line(&["XAUTOCLAIM", &key, &group, &consumer, &idle, &id(random)]);
            words.extend(line(&["COUNT", &word(random, &["1", "2", "10", "0"])]));
            words.extend(random.random_bool(0.3).then(|| "JUSTID".to_owned()));
            words
        }
        10 => line(&["XINFO", "STREAM", &key]),
        _ => line(&["XINFO", "GROUPS", &key]),
    }
}
