//! The table of commands that work on data: what scripts may call, too.

use super::keyspace::Keyspace;
use super::reply::{Answer, Bytes};
use super::{hashes, keys, sets, sorted_sets, streams, strings};

/// What a command does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Read,
    /// A write that is allowed even when memory is full.
    Shrink,
    Grow,
}

/// A command.
pub struct Command {
    pub name: &'static str,
    /// Arguments besides the name, at least.
    least: usize,
    /// At most.
    most: usize,
    pub effect: Effect,
    /// Runs it with its arguments, the name left away.
    pub run: fn(&mut Keyspace, &[Bytes]) -> Answer,
}

impl Command {
    pub fn check_arity(&self, arguments: usize) -> Result<(), String> {
        if (self.least..=self.most).contains(&arguments) {
            return Ok(());
        }
        Err(format!("ERR wrong number of arguments for '{}' command", self.name.to_lowercase()))
    }
}

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    TABLE.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

const MANY: usize = usize::MAX;

const fn row(
    name: &'static str,
    least: usize,
    most: usize,
    effect: Effect,
    run: fn(&mut Keyspace, &[Bytes]) -> Answer,
) -> Command {
    Command { name, least, most, effect, run }
}

const TABLE: &[Command] = &[
    row("GET", 1, 1, Effect::Read, strings::get),
    row("SET", 2, MANY, Effect::Grow, strings::set),
    row("DEL", 1, MANY, Effect::Shrink, keys::delete),
    row("UNLINK", 1, MANY, Effect::Shrink, keys::delete),
    row("EXISTS", 1, MANY, Effect::Read, keys::exists),
    row("EXPIRE", 2, 2, Effect::Shrink, keys::expire_s),
    row("PEXPIRE", 2, 2, Effect::Shrink, keys::expire_ms),
    row("PERSIST", 1, 1, Effect::Shrink, keys::persist),
    row("TTL", 1, 1, Effect::Read, keys::ttl_s),
    row("PTTL", 1, 1, Effect::Read, keys::ttl_ms),
    row("TYPE", 1, 1, Effect::Read, keys::kind),
    row("SCAN", 1, MANY, Effect::Read, keys::scan),
    row("TIME", 0, 0, Effect::Read, keys::time),
    row("PING", 0, 1, Effect::Read, keys::ping),
    row("HGET", 2, 2, Effect::Read, hashes::get),
    row("HMGET", 2, MANY, Effect::Read, hashes::get_many),
    row("HGETALL", 1, 1, Effect::Read, hashes::get_all),
    row("HSET", 3, MANY, Effect::Grow, hashes::set),
    row("HINCRBY", 3, 3, Effect::Grow, hashes::increment),
    row("HDEL", 2, MANY, Effect::Shrink, hashes::delete),
    row("HEXISTS", 2, 2, Effect::Read, hashes::exists),
    row("HLEN", 1, 1, Effect::Read, hashes::length),
    row("HVALS", 1, 1, Effect::Read, hashes::values),
    row("SADD", 2, MANY, Effect::Grow, sets::add),
    row("SREM", 2, MANY, Effect::Shrink, sets::remove),
    row("SISMEMBER", 2, 2, Effect::Read, sets::contains),
    row("SCARD", 1, 1, Effect::Read, sets::length),
    row("SMEMBERS", 1, 1, Effect::Read, sets::members),
    row("SSCAN", 2, MANY, Effect::Read, sets::scan),
    row("ZADD", 3, MANY, Effect::Grow, sorted_sets::add),
    row("ZREM", 2, MANY, Effect::Shrink, sorted_sets::remove),
    row("ZSCAN", 2, MANY, Effect::Read, sorted_sets::scan),
    row("ZCARD", 1, 1, Effect::Read, sorted_sets::length),
    row("ZSCORE", 2, 2, Effect::Read, sorted_sets::score),
    row("ZRANGE", 3, MANY, Effect::Read, sorted_sets::range),
    row("ZRANGEBYSCORE", 3, MANY, Effect::Read, sorted_sets::range_by_score),
    row("ZRANGEBYLEX", 3, MANY, Effect::Read, sorted_sets::range_by_text),
    row("XADD", 4, MANY, Effect::Grow, streams::add),
    row("XLEN", 1, 1, Effect::Read, streams::length),
    row("XRANGE", 3, MANY, Effect::Read, streams::range),
    row("XREVRANGE", 3, MANY, Effect::Read, streams::range_reverse),
    row("XDEL", 2, MANY, Effect::Shrink, streams::delete),
    row("XTRIM", 3, MANY, Effect::Shrink, streams::trim),
    row("XSETID", 2, MANY, Effect::Grow, streams::set_id),
    row("XGROUP", 4, MANY, Effect::Grow, streams::create_group),
    row("XREADGROUP", 6, MANY, Effect::Shrink, streams::read_group),
    row("XACK", 3, MANY, Effect::Shrink, streams::acknowledge),
    row("XPENDING", 2, MANY, Effect::Read, streams::pending),
    row("XAUTOCLAIM", 5, MANY, Effect::Shrink, streams::autoclaim),
    row("XINFO", 2, MANY, Effect::Read, streams::info),
];
