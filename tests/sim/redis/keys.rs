//! Commands on keys of any kind, and on the whole data set.

use super::arguments::Arguments;
use super::keyspace::{Keyspace, Value};
use super::number::integer;
use super::reply::{Answer, Bytes, Reply};
use super::scan::Scan;

pub fn delete(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::count(words.iter().filter(|key| keys.remove(key)).count()))
}

pub fn exists(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::count(words.iter().filter(|key| keys.get(key).is_some()).count()))
}

pub fn kind(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::Status(keys.get(&words[0]).map_or("none", Value::type_name).to_owned()))
}

pub fn expire_s(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    expire(keys, &words[0], integer(&words[1])?.saturating_mul(1000))
}

pub fn expire_ms(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    expire(keys, &words[0], integer(&words[1])?)
}

/// A time that has passed removes the key.
fn expire(keys: &mut Keyspace, key: &Bytes, ttl_ms: i64) -> Answer {
    if keys.get(key).is_none() {
        return Ok(Reply::Int(0));
    }
    keys.set_expiry(key, keys.now_ms().saturating_add_signed(ttl_ms));
    Ok(Reply::Int(1))
}

pub fn persist(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::Int(i64::from(keys.persist(&words[0]))))
}

pub fn ttl_ms(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::Int(match keys.expiry(&words[0]) {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => (at_ms - keys.now_ms()) as i64,
    }))
}

pub fn ttl_s(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let Reply::Int(ttl_ms) = ttl_ms(keys, words)? else { unreachable!("a time to live is a number") };
    Ok(Reply::Int(if ttl_ms < 0 { ttl_ms } else { (ttl_ms + 500) / 1000 }))
}

pub fn scan(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Scan::parse(Arguments::new(words))?.page(keys.iter().map(|(key, _)| key)))
}

pub fn time(keys: &mut Keyspace, _: &[Bytes]) -> Answer {
    let now_us = keys.now_us();
    Ok(Reply::list([(now_us / 1_000_000).to_string(), (now_us % 1_000_000).to_string()]))
}

pub fn ping(_: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(words.first().map_or_else(|| Reply::Status("PONG".to_owned()), |word| Reply::Bulk(word.clone())))
}
