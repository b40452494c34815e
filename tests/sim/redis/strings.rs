//! Commands on strings.

use super::arguments::Arguments;
use super::keyspace::{Keyspace, Text, Value};
use super::reply::{Answer, Bytes, Reply, SYNTAX};

pub fn get(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(keys.read::<Text>(&words[0])?.map_or(Reply::Nil, |text| Reply::Bulk(text.0.clone())))
}

/// `SET key value [NX | XX] [EX seconds | PX milliseconds]`
pub fn set(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let (key, value) = (&words[0], &words[1]);
    let mut options = Arguments::new(&words[2..]);
    let (mut only_new, mut only_old, mut ttl_ms) = (false, false, None);
    while !options.is_empty() {
        if !only_old && options.keyword("NX") {
            only_new = true;
        } else if !only_new && options.keyword("XX") {
            only_old = true;
        } else if ttl_ms.is_none() && options.keyword("EX") {
            ttl_ms = Some(options.integer()?.saturating_mul(1000));
        } else if ttl_ms.is_none() && options.keyword("PX") {
            ttl_ms = Some(options.integer()?);
        } else {
            return Err(SYNTAX.to_owned());
        }
    }
    if ttl_ms.is_some_and(|ttl_ms| ttl_ms <= 0) {
        return Err("ERR invalid expire time in 'set' command".to_owned());
    }
    let exists = keys.get(key).is_some();
    if (only_new && exists) || (only_old && !exists) {
        return Ok(Reply::Nil);
    }
    let expires_at_ms = ttl_ms.map(|ttl_ms| keys.now_ms().saturating_add_signed(ttl_ms));
    keys.put(key, Value::Text(Text(value.clone())), expires_at_ms);
    Ok(Reply::ok())
}
