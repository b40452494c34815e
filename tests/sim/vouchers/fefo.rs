//! Which units `lua/allocate.lua` takes, compared with a model that is plain enough to be right.

use std::collections::{BTreeMap, BTreeSet};

use orbit::store::live::scripts::SOURCES;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::redis::{Bytes, Redis, Reply};

const RESERVED: usize = 3;
const POOLS: usize = 7;
const ITEMS: u8 = 8;
const DAYS: u64 = 12;
/// By the clock of the server, in milliseconds.
const NOW_MS: u64 = 1_000;

/// Some order: its items, the first day on which what it gets may expire, and whether each pool is one of its vendors'.
#[derive(Debug, Clone)]
struct Request {
    items: Vec<u8>,
    from: u64,
    pools: Vec<bool>,
}

impl Request {
    fn pools(&self) -> impl Iterator<Item = usize> {
        (0..POOLS).filter(|pool| self.pools[*pool])
    }
}

/// In which pool a unit is, and on which day it expires.
fn stock() -> impl Strategy<Value = Vec<(usize, u64)>> {
    proptest::collection::vec((0..POOLS, 0..DAYS), 0..40)
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let items = proptest::sample::subsequence((0..ITEMS).collect::<Vec<_>>(), 1..=6).prop_shuffle();
    let pools = proptest::collection::vec(proptest::bool::weighted(0.8), POOLS);
    let request = (items, 0..DAYS, pools).prop_map(|(items, from, pools)| Request { items, from, pools });
    proptest::collection::vec(request, 1..6)
}

fn score(day: u64) -> u64 {
    1_800_000_000 + day * 86_400
}

fn item(number: u8) -> String {
    format!("order-1-{number:04}")
}

/// What should be.
struct Model {
    /// What is in each pool: score and member.
    pools: Vec<BTreeSet<(u64, String)>>,
    /// Item: member, score, and the letter of the pools that it came from.
    claims: BTreeMap<u8, [String; 3]>,
}

impl Model {
    fn new(stock: &[(usize, u64)]) -> Self {
        let mut pools = vec![BTreeSet::new(); POOLS];
        for (number, (pool, day)) in stock.iter().enumerate() {
            pools[*pool].insert((score(*day), format!("inv-{number:012}")));
        }
        Self { pools, claims: BTreeMap::new() }
    }

    fn allocate(&mut self, request: &Request) -> Vec<String> {
        let open: Vec<u8> = request.items.iter().copied().filter(|item| !self.claims.contains_key(item)).collect();
        let members = request.pools().flat_map(|pool| {
            self.pools[pool].iter().map(move |(score, member)| (pool >= RESERVED, *score, member.clone(), pool))
        });
        let mut units: Vec<_> = members.filter(|(_, expires, ..)| *expires >= score(request.from)).collect();
        units.sort_unstable();
        if units.len() < open.len() {
            let could = units.len() + request.items.len() - open.len();
            return vec!["SHORT".to_owned(), could.to_string()];
        }
        for (item, (general, score, member, pool)) in open.into_iter().zip(units) {
            self.pools[pool].remove(&(score, member.clone()));
            let phase = if general { "G" } else { "R" };
            self.claims.insert(item, [member, score.to_string(), phase.to_owned()]);
        }
        let claims = request.items.iter().flat_map(|item| self.claims[item].clone());
        ["CLAIMED".to_owned()].into_iter().chain(claims).collect()
    }

    /// The claims as they are written.
    fn claims(&self) -> Vec<String> {
        let written = |(number, [member, score, phase]): (&u8, &[String; 3])| {
            [item(*number), format!("{member} {score} {NOW_MS} {phase}")]
        };
        self.claims.iter().flat_map(written).collect()
    }
}

fn pool_key(pool: usize) -> String {
    format!("pool-{pool}")
}

fn ask(server: &mut Redis, words: &[String]) -> Vec<String> {
    let words: Vec<Bytes> = words.iter().map(|word| word.clone().into_bytes()).collect();
    let text = |reply: Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?} is no text"),
    };
    match server.execute(&words) {
        Reply::Array(items) => items.into_iter().map(text).collect(),
        other => vec![format!("{other:?}")],
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(ToOwned::to_owned).collect()
}

fn allocate(server: &mut Redis, request: &Request) -> Vec<String> {
    let source = SOURCES.iter().find(|(name, _)| *name == "allocate").unwrap().1;
    let mut call = vec!["EVAL".to_owned(), source.to_owned(), (1 + request.pools().count()).to_string()];
    call.push("claims".to_owned());
    call.extend(request.pools().map(pool_key));
    call.push(request.pools().filter(|pool| *pool < RESERVED).count().to_string());
    call.push(score(request.from).to_string());
    call.extend(request.items.iter().map(|number| item(*number)));
    ask(server, &call)
}

/// The script and the model agree on every answer, and on what is left.
fn agree(stock: &[(usize, u64)], requests: &[Request], patch: Patch) -> Result<(), TestCaseError> {
    let mut server = Redis::new(Box::new(|| NOW_MS * 1_000));
    server.patch_scripts(patch);
    let mut model = Model::new(stock);
    for (pool, members) in model.pools.iter().enumerate() {
        for (score, member) in members {
            ask(&mut server, &words(&format!("ZADD {} {score} {member}", pool_key(pool))));
        }
    }
    for request in requests {
        prop_assert_eq!(allocate(&mut server, request), model.allocate(request), "{:?}", request);
        for (pool, members) in model.pools.iter().enumerate() {
            let left = ask(&mut server, &words(&format!("ZRANGE {} 0 -1 WITHSCORES", pool_key(pool))));
            let expected: Vec<String> =
                members.iter().flat_map(|(score, member)| [member.clone(), score.to_string()]).collect();
            prop_assert_eq!(left, expected, "pool {} after {:?}", pool, request);
        }
        prop_assert_eq!(ask(&mut server, &words("HGETALL claims")), model.claims(), "claims after {:?}", request);
    }
    Ok(())
}

type Patch = &'static [(&'static str, &'static str)];

/// What is the matter, with the smallest example, if the script with these changes is not as the model.
fn compared(patch: Patch) -> Result<(), String> {
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let cases = (stock(), requests());
    let outcome = runner.run(&cases, |(stock, requests)| agree(&stock, &requests, patch));
    outcome.map_err(|error| error.to_string())
}

#[test]
fn the_script_takes_what_a_plain_model_takes() {
    compared(&[]).unwrap();
}

#[test]
fn one_vendor_after_the_other_is_found() {
    const ACROSS: &str = "if a.score ~= b.score then";
    const ONE_BY_ONE: &str = "if a.pool ~= b.pool then return a.pool < b.pool end if a.score ~= b.score then";
    compared(&[(ACROSS, ONE_BY_ONE)]).unwrap_err();
}

#[test]
fn an_allocation_of_some_items_only_is_found() {
    compared(&[("if #taken < #open then\n  return", "if #taken < 1 then\n  return")]).unwrap_err();
}

#[test]
fn a_unit_that_expires_too_soon_is_found() {
    compared(&[("KEYS[pool], lowest, '+inf'", "KEYS[pool], '-inf', '+inf'")]).unwrap_err();
}
