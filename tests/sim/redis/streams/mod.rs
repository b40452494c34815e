//! Streams: a log of entries with growing ids, and groups of consumers that share the reading of it.

mod groups;
mod id;
mod info;
mod log;
mod trim;

use std::collections::{BTreeMap, BTreeSet};

pub use groups::{acknowledge, autoclaim, create_group, pending, read_group};
pub use id::Id;
pub use info::info;
pub use log::{add, delete, length, range, range_reverse, set_id};
pub use trim::trim;

use super::reply::{Bytes, Reply};

/// Entries of one node at most: `stream-node-max-entries`. Small, so that approximate trimming does something even to a
/// short stream.
pub const NODE_ENTRIES_MAX: usize = 4;

/// A run of neighbouring entries: the unit of approximate trimming.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    /// The last entry that was put into it, deleted or not.
    last: Id,
    live: usize,
    deleted: usize,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stream {
    /// Names and values in turn.
    entries: BTreeMap<Id, Vec<Bytes>>,
    /// By the id of the first entry that was put into each.
    nodes: BTreeMap<Id, Node>,
    last_id: Id,
    max_deleted_id: Id,
    entries_added: u64,
    groups: BTreeMap<Bytes, Group>,
}

/// A group of consumers.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    last_id: Id,
    /// How many entries of the stream's whole history it has read, if that is known.
    entries_read: Option<u64>,
    pending: BTreeMap<Id, Pending>,
    consumers: BTreeSet<Bytes>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq)]
struct Pending {
    consumer: Bytes,
    delivered_at_ms: u64,
    deliveries: u64,
}

impl Stream {
    fn first_id(&self) -> Id {
        self.entries.keys().next().copied().unwrap_or_default()
    }

    fn append(&mut self, id: Id, fields: Vec<Bytes>) {
        match self.nodes.values_mut().next_back() {
            Some(node) if node.live + node.deleted < NODE_ENTRIES_MAX => {
                node.live += 1;
                node.last = id;
            }
            _ => {
                self.nodes.insert(id, Node { last: id, live: 1, deleted: 0 });
            }
        }
        self.entries.insert(id, fields);
        self.entries_added += 1;
        self.last_id = id;
    }

    /// Every entry with its fields, names and values in turn.
    pub fn entries(&self) -> impl Iterator<Item = (Id, &[Bytes])> {
        self.entries.iter().map(|(id, fields)| (*id, fields.as_slice()))
    }

    /// Whether the group was handed this entry and has acknowledged it. An unknown group has acknowledged nothing.
    pub fn is_acknowledged(&self, group: &[u8], id: Id) -> bool {
        self.groups.get(group).is_some_and(|group| id <= group.last_id && !group.pending.contains_key(&id))
    }

    /// Whether there was such an entry. A node goes with its last entry.
    fn remove(&mut self, id: Id) -> bool {
        let removed = self.strike(id);
        let node = self.nodes.range(..=id).next_back().map(|(first, node)| (*first, node.live));
        if let Some((first, 0)) = node
            && removed
        {
            self.nodes.remove(&first);
        }
        removed
    }

    /// As [`Self::remove`], but an empty node stays, to be filled or trimmed.
    fn strike(&mut self, id: Id) -> bool {
        if self.entries.remove(&id).is_none() {
            return false;
        }
        if let Some((_, node)) = self.nodes.range_mut(..=id).next_back() {
            node.live -= 1;
            node.deleted += 1;
        }
        true
    }

    /// Whether an entry from this id on was deleted out of the middle, as far as Redis remembers.
    fn has_tombstones_from(&self, id: Id) -> bool {
        !self.entries.is_empty() && self.max_deleted_id >= self.first_id() && id <= self.max_deleted_id
    }

    /// How many entries of the whole history come up to this id, if that can be known.
    fn distance_from_first(&self, id: Id) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if id == self.last_id || (self.entries.is_empty() && id < self.last_id) {
            return Some(self.entries_added);
        }
        let whole = self.max_deleted_id < self.first_id();
        let gone = self.entries_added.saturating_sub(self.entries.len() as u64);
        if id > self.last_id || !whole {
            return None;
        }
        match id.cmp(&self.first_id()) {
            std::cmp::Ordering::Less => Some(gone),
            std::cmp::Ordering::Equal => Some(gone + 1),
            std::cmp::Ordering::Greater => None,
        }
    }
}

/// An entry as every reading command answers it.
fn entry(id: Id, fields: &[Bytes]) -> Reply {
    Reply::Array(vec![id.reply(), Reply::list(fields.to_vec())])
}
