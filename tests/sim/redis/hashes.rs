//! Commands on hashes.

use super::keyspace::{Hash, Keyspace};
use super::number::integer;
use super::reply::{Answer, Bytes, Reply};

fn field(hash: Option<&Hash>, name: &Bytes) -> Reply {
    hash.and_then(|hash| hash.get(name)).map_or(Reply::Nil, |value| Reply::Bulk(value.clone()))
}

pub fn get(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(field(keys.read(&words[0])?, &words[1]))
}

pub fn get_many(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let hash = keys.read(&words[0])?;
    Ok(Reply::Array(words[1..].iter().map(|name| field(hash, name)).collect()))
}

pub fn get_all(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let fields = keys.read::<Hash>(&words[0])?.into_iter().flatten();
    Ok(Reply::list(fields.flat_map(|(name, value)| [name.clone(), value.clone()])))
}

pub fn set(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    if words.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'hset' command".to_owned());
    }
    let hash: &mut Hash = keys.make(&words[0])?;
    let added = words[1..].chunks_exact(2).filter(|pair| hash.insert(pair[0].clone(), pair[1].clone()).is_none());
    Ok(Reply::count(added.count()))
}

pub fn increment(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let by = integer(&words[2])?;
    let current = match keys.read::<Hash>(&words[0])?.and_then(|hash| hash.get(&words[1])) {
        None => 0,
        Some(text) => integer(text).map_err(|_| "ERR hash value is not an integer".to_owned())?,
    };
    let sum = current.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
    keys.make::<Hash>(&words[0])?.insert(words[1].clone(), sum.to_string().into_bytes());
    Ok(Reply::Int(sum))
}

pub fn delete(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let hash = keys.change::<Hash>(&words[0])?;
    let removed = hash.map_or(0, |hash| words[1..].iter().filter(|name| hash.remove(*name).is_some()).count());
    keys.tidy(&words[0]);
    Ok(Reply::count(removed))
}

pub fn exists(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let found = keys.read::<Hash>(&words[0])?.is_some_and(|hash| hash.contains_key(&words[1]));
    Ok(Reply::Int(i64::from(found)))
}

pub fn length(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::count(keys.read::<Hash>(&words[0])?.map_or(0, Hash::len)))
}

pub fn values(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let values = keys.read::<Hash>(&words[0])?.into_iter().flat_map(|hash| hash.values().cloned());
    Ok(Reply::list(values.collect::<Vec<_>>()))
}
