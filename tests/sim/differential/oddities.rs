//! What surprises people about Redis and its Lua, one by one.

use std::time::Duration;

use super::pair::Pair;
use crate::redis::Bytes;

fn words(words: &[&str]) -> Vec<Bytes> {
    words.iter().map(|word| Bytes::from(*word)).collect()
}

async fn eval(pair: &mut Pair, script: &str, more: &[&str]) {
    let mut call = words(&["EVAL", script]);
    call.extend(words(more));
    pair.agree(call).await;
}

#[tokio::test]
async fn values_cross_between_lua_and_the_protocol_as_in_redis() {
    let mut pair = Pair::start().await;
    pair.begin("values".to_owned()).await;
    let scripts = [
        "return 3.99",
        "return -3.99",
        "return 10^15",
        "return {1, 2.5, 'three', nil, 5}",
        "return {1, {2, {'3'}}, true, false, 6}",
        "return true",
        "return false",
        "return nil",
        "return {}",
        "return {ok = 'FINE'}",
        "return {err = 'MINE this went wrong'}",
        "return redis.status_reply('FINE')",
        "return redis.call('PING')",
        "return redis.call('PING').ok",
        "return redis.call('GET', 'none') == false",
        "return redis.call('HMGET', 'none', 'a', 'b')",
        "return type(redis.call('EXISTS', 'none'))",
        "return tostring(10^18)",
        "return tostring(123456789012345)",
        "return tostring(1/3)",
        "return #ARGV .. #KEYS",
        "return string.format('%d', 2^53)",
        "return tostring(nil)",
    ];
    for script in scripts {
        eval(&mut pair, script, &["0"]).await;
    }
    let written = [
        "return redis.call('SET', KEYS[1], 10^18)",
        "return redis.call('SET', KEYS[1], 2^53 + 1)",
        "return redis.call('SET', KEYS[1], 0.1)",
        "return redis.call('SET', KEYS[1], 3)",
        "return redis.call('SET', KEYS[1], -1/3)",
        "return redis.call('SET', KEYS[1], tostring(10^18))",
    ];
    for script in written {
        eval(&mut pair, script, &["1", "key"]).await;
        pair.agree(words(&["GET", "key"])).await;
    }
}

#[tokio::test]
async fn a_script_that_fails_keeps_what_it_has_written() {
    let mut pair = Pair::start().await;
    pair.begin("failures".to_owned()).await;
    pair.agree(words(&["SET", "text", "not a hash"])).await;
    let scripts = [
        "redis.call('SADD', 'set', 'before') redis.call('HSET', 'text', 'a', 'b') redis.call('SADD', 'set', 'behind')",
        "local reply = redis.pcall('HSET', 'text', 'a', 'b') redis.call('SADD', 'set', 'after') return reply",
        "local reply = redis.pcall('HSET', 'text', 'a', 'b') return reply.err",
        "return {redis.pcall('HSET', 'text', 'a', 'b'), 1}",
        "redis.call('SADD', 'set', 'x') error('gave up')",
        "redis.call('SADD', 'set', 'y') error({err = 'GAVE up'})",
        "return redis.call('SET', 'a')",
        "return redis.call('SET', 'a', {})",
        "return redis.call('NOSUCH', 'a')",
        "return redis.call()",
        "return nothing",
        "global = 1",
        "return pcall(function() return redis.call('HSET', 'text', 'a', 'b') end)",
        "local ok = pcall(function() return redis.call('HSET', 'text', 'a', 'b') end) return {ok and 1 or 2}",
    ];
    for script in scripts {
        eval(&mut pair, script, &["0"]).await;
        pair.agree_on_contents().await;
    }
    for call in [&["EVAL", "return 1", "2", "a"][..], &["EVAL", "return 1", "-1"], &["EVAL", "return 1", "x"]] {
        pair.agree(words(call)).await;
    }
}

#[tokio::test]
async fn scripts_are_known_by_their_hash_until_they_are_flushed() {
    let mut pair = Pair::start().await;
    pair.begin("hashes".to_owned()).await;
    let script = "return {KEYS[1], ARGV[1], #ARGV}";
    let hash = redis::Script::new(script).get_hash().to_owned();
    let call = words(&["EVALSHA", &hash, "1", "key", "a", "b"]);
    pair.agree(call.clone()).await;
    pair.agree(words(&["SCRIPT", "LOAD", script])).await;
    pair.agree(words(&["SCRIPT", "EXISTS", &hash, "0000"])).await;
    pair.agree(call.clone()).await;
    pair.agree(words(&["SCRIPT", "FLUSH"])).await;
    pair.agree(call.clone()).await;
    eval(&mut pair, script, &["1", "key"]).await;
    pair.agree(call).await;
}

#[tokio::test]
async fn full_memory_refuses_the_first_write_of_a_script_and_no_later_one() {
    let mut pair = Pair::start().await;
    pair.begin("full memory".to_owned()).await;
    for setup in [&["HSET", "hash", "n", "5"][..], &["SET", "text", "a"], &["XADD", "stream", "1-1", "a", "b"]] {
        pair.agree(words(setup)).await;
    }
    pair.real(&words(&["CONFIG", "SET", "maxmemory", "1"])).await;
    pair.fake.set_full(true);
    let scripts = [
        "return redis.call('HINCRBY', 'hash', 'n', -1)",
        "redis.call('DEL', 'text') return redis.call('HINCRBY', 'hash', 'n', -1)",
        "redis.pcall('HINCRBY', 'hash', 'n', -1) redis.call('SADD', 'set', 'a') return 1",
        "return redis.call('HGET', 'hash', 'n')",
        "redis.call('SREM', 'none', 'a') return redis.call('SADD', 'set', 'a')",
    ];
    for script in scripts {
        eval(&mut pair, script, &["0"]).await;
    }
    let commands = [
        &["SET", "a", "b"][..],
        &["HSET", "hash", "a", "b"],
        &["HDEL", "hash", "a"],
        &["SADD", "set", "b"],
        &["ZADD", "zset", "1", "b"],
        &["XADD", "stream", "2-1", "a", "b"],
        &["XGROUP", "CREATE", "stream", "g", "0"],
        &["EXPIRE", "hash", "100000"],
        &["XTRIM", "stream", "MAXLEN", "0"],
        &["DEL", "text"],
    ];
    for command in commands {
        pair.agree(words(command)).await;
    }
    pair.real(&words(&["CONFIG", "SET", "maxmemory", "0"])).await;
    pair.fake.set_full(false);
    pair.agree_on_contents().await;
}

#[tokio::test]
async fn what_has_expired_is_gone_for_every_command() {
    let mut pair = Pair::start().await;
    pair.begin("expiry".to_owned()).await;
    let setups = [
        &["SET", "text", "a", "PX", "30"][..],
        &["HSET", "hash", "a", "b"],
        &["PEXPIRE", "hash", "30"],
        &["SADD", "set", "a"],
        &["PEXPIRE", "set", "-5"],
        &["SET", "kept", "a"],
    ];
    for setup in setups {
        pair.agree(words(setup)).await;
    }
    tokio::time::sleep(Duration::from_millis(60)).await;
    let commands = [
        &["GET", "text"][..],
        &["EXISTS", "text", "hash", "set", "kept"],
        &["TTL", "text"],
        &["TYPE", "hash"],
        &["DEL", "text"],
        &["SET", "text", "b", "XX"],
        &["HSET", "hash", "c", "d"],
        &["HGETALL", "hash"],
        &["TTL", "hash"],
        &["SET", "text", "b", "NX"],
    ];
    for command in commands {
        pair.agree(words(command)).await;
    }
    pair.agree_on_contents().await;
}

#[tokio::test]
async fn a_scan_returns_what_stays() {
    let mut pair = Pair::start().await;
    pair.begin("scans".to_owned()).await;
    for number in 0..300 {
        pair.agree(words(&["SADD", "set", &format!("member-{number}")])).await;
        pair.agree(words(&["SET", &format!("key-{number}"), "a"])).await;
    }
    // Compares the keys that a whole SCAN of each server finds.
    pair.agree_on_contents().await;
    let mut members = pair.fake_scan(&words(&["SSCAN", "set"]), |fake| {
        fake.execute(&words(&["SREM", "set", "member-1", "member-2"]));
    });
    members.retain(|member| member != b"member-1" && member != b"member-2");
    members.sort_unstable();
    members.dedup();
    assert_eq!(members.len(), 298);
}
