//! Commands on sets.

use super::arguments::Arguments;
use super::keyspace::{Keyspace, Set};
use super::reply::{Answer, Bytes, Reply};
use super::scan::Scan;

pub fn add(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let set: &mut Set = keys.make(&words[0])?;
    Ok(Reply::count(words[1..].iter().filter(|member| set.insert((*member).clone())).count()))
}

pub fn remove(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let set = keys.change::<Set>(&words[0])?;
    let removed = set.map_or(0, |set| words[1..].iter().filter(|member| set.remove(*member)).count());
    keys.tidy(&words[0]);
    Ok(Reply::count(removed))
}

pub fn contains(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let found = keys.read::<Set>(&words[0])?.is_some_and(|set| set.contains(&words[1]));
    Ok(Reply::Int(i64::from(found)))
}

pub fn length(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::count(keys.read::<Set>(&words[0])?.map_or(0, Set::len)))
}

pub fn members(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::list(keys.read::<Set>(&words[0])?.into_iter().flatten().cloned()))
}

pub fn scan(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let scan = Scan::parse(Arguments::new(&words[1..]))?;
    Ok(scan.page(keys.read::<Set>(&words[0])?.into_iter().flatten()))
}
