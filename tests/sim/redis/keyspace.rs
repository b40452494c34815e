//! The data set: values under keys, some of which expire.

use std::collections::{BTreeMap, BTreeSet};

use super::reply::{Bytes, WRONG_TYPE};
use super::streams::Stream;

pub type Hash = BTreeMap<Bytes, Bytes>;
pub type Set = BTreeSet<Bytes>;
/// Members with their scores; the order is made when somebody asks for it.
pub type SortedSet = BTreeMap<Bytes, f64>;

/// A plain string.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Text(pub Bytes);

/// What a key holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(Text),
    Hash(Hash),
    Set(Set),
    Sorted(SortedSet),
    Stream(Stream),
}

impl Value {
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::Set(_) => "set",
            Self::Sorted(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    /// A stream may be empty; a key of any other kind goes with its last element.
    fn is_gone(&self) -> bool {
        match self {
            Self::Text(_) | Self::Stream(_) => false,
            Self::Hash(hash) => hash.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::Sorted(set) => set.is_empty(),
        }
    }
}

/// One kind of value.
pub trait Kind: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn wrap(self) -> Value;
}

macro_rules! kinds {
    ($($variant:ident($kind:ty)),+ $(,)?) => {$(
        impl Kind for $kind {
            fn of(value: &Value) -> Option<&Self> {
                if let Value::$variant(kind) = value { Some(kind) } else { None }
            }
            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$variant(kind) = value { Some(kind) } else { None }
            }
            fn wrap(self) -> Value {
                Value::$variant(self)
            }
        }
    )+};
}

kinds! { Text(Text), Hash(Hash), Set(Set), Sorted(SortedSet), Stream(Stream) }

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    value: Value,
    expires_at_ms: Option<u64>,
}

/// Every key, and the time: it stands still while a command or a script runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keyspace {
    entries: BTreeMap<Bytes, Entry>,
    now_us: u64,
}

impl Keyspace {
    /// Once before each command.
    pub const fn set_now_us(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    pub const fn now_us(&self) -> u64 {
        self.now_us
    }

    pub const fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    fn alive(&self, entry: &Entry) -> bool {
        entry.expires_at_ms.is_none_or(|at| at > self.now_ms())
    }

    pub fn get(&self, key: &[u8]) -> Option<&Value> {
        self.entries.get(key).filter(|entry| self.alive(entry)).map(|entry| &entry.value)
    }

    /// The value of this kind, if there is a key.
    pub fn read<K: Kind>(&self, key: &[u8]) -> Result<Option<&K>, String> {
        self.get(key).map(|value| K::of(value).ok_or_else(|| WRONG_TYPE.to_owned())).transpose()
    }

    /// The value of this kind to be changed, if there is a key. [`Self::tidy`] after taking something away.
    pub fn change<K: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut K>, String> {
        self.bury(key);
        let entry = self.entries.get_mut(key);
        entry.map(|entry| K::of_mut(&mut entry.value).ok_or_else(|| WRONG_TYPE.to_owned())).transpose()
    }

    /// The value of this kind to be added to, made if there is no key.
    pub fn make<K: Kind>(&mut self, key: &[u8]) -> Result<&mut K, String> {
        self.bury(key);
        let fresh = || Entry { value: K::default().wrap(), expires_at_ms: None };
        let entry = self.entries.entry(key.to_vec()).or_insert_with(fresh);
        K::of_mut(&mut entry.value).ok_or_else(|| WRONG_TYPE.to_owned())
    }

    /// Removes the key if nothing is left in it.
    pub fn tidy(&mut self, key: &[u8]) {
        if self.entries.get(key).is_some_and(|entry| entry.value.is_gone()) {
            self.entries.remove(key);
        }
    }

    pub fn put(&mut self, key: &[u8], value: Value, expires_at_ms: Option<u64>) {
        self.entries.insert(key.to_vec(), Entry { value, expires_at_ms });
    }

    /// Whether there was such a key.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.bury(key);
        self.entries.remove(key).is_some()
    }

    fn bury(&mut self, key: &[u8]) {
        if self.entries.get(key).is_some_and(|entry| !self.alive(entry)) {
            self.entries.remove(key);
        }
    }

    /// When the key expires: `None` if there is no key, `Some(None)` if it never does.
    pub fn expiry(&self, key: &[u8]) -> Option<Option<u64>> {
        self.entries.get(key).filter(|entry| self.alive(entry)).map(|entry| entry.expires_at_ms)
    }

    pub fn set_expiry(&mut self, key: &[u8], at_ms: u64) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.expires_at_ms = Some(at_ms);
        }
        self.bury(key);
    }

    /// The key expires no more; whether it would have.
    pub fn persist(&mut self, key: &[u8]) -> bool {
        self.bury(key);
        self.entries.get_mut(key).is_some_and(|entry| entry.expires_at_ms.take().is_some())
    }

    /// Every key with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Value)> {
        self.entries.iter().filter(|(_, entry)| self.alive(entry)).map(|(key, entry)| (key, &entry.value))
    }
}
