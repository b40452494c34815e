//! Commands on sorted sets: ordered by score, and members of one score by their bytes.

use super::arguments::Arguments;
use super::keyspace::{Keyspace, SortedSet};
use super::number::{float, float_text};
use super::reply::{Answer, Bytes, Reply, SYNTAX};
use super::scan::Scan;

/// `ZADD key [NX | XX] score member [score member ...]`
pub fn add(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let mut arguments = Arguments::new(&words[1..]);
    let only_new = arguments.keyword("NX");
    let only_old = !only_new && arguments.keyword("XX");
    let pairs = arguments.rest();
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(SYNTAX.to_owned());
    }
    let scores: Option<Vec<f64>> = pairs.chunks_exact(2).map(|pair| float(&pair[0])).collect();
    let scores = scores.ok_or("ERR value is not a valid float")?;
    let set: &mut SortedSet = keys.make(&words[0])?;
    let mut added = 0;
    for (score, pair) in scores.into_iter().zip(pairs.chunks_exact(2)) {
        let exists = set.contains_key(&pair[1]);
        if (only_new && exists) || (only_old && !exists) {
            continue;
        }
        set.insert(pair[1].clone(), score);
        added += usize::from(!exists);
    }
    keys.tidy(&words[0]);
    Ok(Reply::count(added))
}

pub fn remove(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let set = keys.change::<SortedSet>(&words[0])?;
    let removed = set.map_or(0, |set| words[1..].iter().filter(|member| set.remove(*member).is_some()).count());
    keys.tidy(&words[0]);
    Ok(Reply::count(removed))
}

pub fn length(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Ok(Reply::count(keys.read::<SortedSet>(&words[0])?.map_or(0, SortedSet::len)))
}

pub fn score(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    let score = keys.read::<SortedSet>(&words[0])?.and_then(|set| set.get(&words[1]));
    Ok(score.map_or(Reply::Nil, |score| Reply::text(float_text(*score))))
}

/// One page holds them all, however many are asked for: Redis promises no more.
pub fn scan(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    Scan::parse(Arguments::new(&words[1..]))?;
    let set = keys.read::<SortedSet>(&words[0])?.into_iter().flatten();
    let pairs = set.flat_map(|(member, score)| [member.clone(), float_text(*score).into()]);
    Ok(Reply::Array(vec![Reply::text("0"), Reply::list(pairs.collect::<Vec<_>>())]))
}

/// What a range command selects by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Position,
    Score,
    Text,
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub fn range(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    select(keys, words, By::Position)
}

pub fn range_by_score(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    select(keys, words, By::Score)
}

pub fn range_by_text(keys: &mut Keyspace, words: &[Bytes]) -> Answer {
    select(keys, words, By::Text)
}

fn select(keys: &mut Keyspace, words: &[Bytes], mut by: By) -> Answer {
    let mut arguments = Arguments::new(&words[3..]);
    let (mut reverse, mut limit, mut with_scores) = (false, None, false);
    while !arguments.is_empty() {
        if by == By::Position && arguments.keyword("BYSCORE") {
            by = By::Score;
        } else if by == By::Position && arguments.keyword("BYLEX") {
            by = By::Text;
        } else if arguments.keyword("REV") {
            reverse = true;
        } else if arguments.keyword("LIMIT") {
            limit = Some((arguments.integer()?, arguments.integer()?));
        } else if arguments.keyword("WITHSCORES") {
            with_scores = true;
        } else {
            return Err(SYNTAX.to_owned());
        }
    }
    if limit.is_some() && by == By::Position {
        return Err("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX".to_owned());
    }
    // A reversed range is written from its upper bound to its lower one.
    let bounds = if reverse && by != By::Position { (&words[2], &words[1]) } else { (&words[1], &words[2]) };
    let bounds = Bounds::parse(by, bounds.0, bounds.1)?;
    let mut members: Vec<(f64, &Bytes)> =
        keys.read::<SortedSet>(&words[0])?.into_iter().flatten().map(|(member, score)| (*score, member)).collect();
    members.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    if reverse {
        members.reverse();
    }
    let chosen = limited(bounds.choose(&members), limit);
    Ok(Reply::list(chosen.into_iter().flat_map(|(score, member)| {
        let score = with_scores.then(|| float_text(score).into_bytes());
        std::iter::once(member.clone()).chain(score)
    })))
}

/// A negative count means no limit.
fn limited(members: Vec<(f64, &Bytes)>, limit: Option<(i64, i64)>) -> Vec<(f64, &Bytes)> {
    let Some((offset, count)) = limit else { return members };
    let Ok(offset) = usize::try_from(offset) else { return Vec::new() };
    members.into_iter().skip(offset).take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
enum Edge<T> {
    Lowest,
    Highest,
    Inclusive(T),
    Exclusive(T),
}

impl<T: PartialOrd> Edge<T> {
    fn starts_before(&self, value: &T) -> bool {
        match self {
            Self::Lowest => true,
            Self::Highest => false,
            Self::Inclusive(edge) => value >= edge,
            Self::Exclusive(edge) => value > edge,
        }
    }

    fn ends_behind(&self, value: &T) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Inclusive(edge) => value <= edge,
            Self::Exclusive(edge) => value < edge,
        }
    }
}

enum Bounds {
    Positions(i64, i64),
    Scores(Edge<f64>, Edge<f64>),
    Texts(Edge<Bytes>, Edge<Bytes>),
}

impl Bounds {
    fn parse(by: By, from: &[u8], to: &[u8]) -> Result<Self, String> {
        Ok(match by {
            By::Position => Self::Positions(super::number::integer(from)?, super::number::integer(to)?),
            By::Score => Self::Scores(score_edge(from)?, score_edge(to)?),
            By::Text => Self::Texts(text_edge(from)?, text_edge(to)?),
        })
    }

    fn choose<'a>(&self, members: &[(f64, &'a Bytes)]) -> Vec<(f64, &'a Bytes)> {
        let all = members.iter().copied();
        match self {
            Self::Positions(from, to) => {
                let length = members.len() as i64;
                let position = |index: i64| if index < 0 { index + length } else { index };
                let (from, to) = (position(*from).max(0), position(*to));
                all.enumerate()
                    .filter(|(at, _)| (from..=to).contains(&(*at as i64)))
                    .map(|(_, member)| member)
                    .collect()
            }
            Self::Scores(from, to) => {
                all.filter(|(score, _)| from.starts_before(score) && to.ends_behind(score)).collect()
            }
            Self::Texts(from, to) => {
                all.filter(|(_, member)| from.starts_before(member) && to.ends_behind(member)).collect()
            }
        }
    }
}

fn score_edge(text: &[u8]) -> Result<Edge<f64>, String> {
    let number = |text| float(text).ok_or_else(|| "ERR min or max is not a float".to_owned());
    match text.split_first() {
        Some((b'(', rest)) => number(rest).map(Edge::Exclusive),
        _ => number(text).map(Edge::Inclusive),
    }
}

fn text_edge(text: &[u8]) -> Result<Edge<Bytes>, String> {
    match text.split_first() {
        Some((b'-', [])) => Ok(Edge::Lowest),
        Some((b'+', [])) => Ok(Edge::Highest),
        Some((b'[', rest)) => Ok(Edge::Inclusive(rest.to_vec())),
        Some((b'(', rest)) => Ok(Edge::Exclusive(rest.to_vec())),
        _ => Err("ERR min or max not valid string range item".to_owned()),
    }
}
