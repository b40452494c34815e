//! The table of Lua scripts, and the shape that all of them answer in.
//!
//! A script answers an array of strings whose first is a tag. Each script has one Rust file that calls it and decodes
//! every tag; an unknown tag or a missing field is an error, never a guess.

use redis::Script;

use super::link::Wire;
use crate::domain::ids::{EventId, ProductId, UserId};
use crate::domain::money::{self, Money};
use crate::domain::order::OrderStatus;
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};

/// Every script: its name and its text.
pub const SOURCES: [(&str, &str); 12] = [
    ("reserve", include_str!("../../../lua/reserve.lua")),
    ("transition", include_str!("../../../lua/transition.lua")),
    ("project", include_str!("../../../lua/project.lua")),
    ("remove", include_str!("../../../lua/remove.lua")),
    ("acknowledge", include_str!("../../../lua/acknowledge.lua")),
    ("hold", include_str!("../../../lua/hold.lua")),
    ("restore", include_str!("../../../lua/restore.lua")),
    ("confirm", include_str!("../../../lua/confirm.lua")),
    ("release", include_str!("../../../lua/release.lua")),
    ("restock", include_str!("../../../lua/restock.lua")),
    ("allocate", include_str!("../../../lua/allocate.lua")),
    ("place", include_str!("../../../lua/place.lua")),
];

/// The scripts, hashed once. A call runs EVALSHA, and loads the script again if the server has lost it.
#[derive(Debug)]
pub(super) struct Scripts {
    pub reserve: Script,
    pub transition: Script,
    pub project: Script,
    pub remove: Script,
    pub acknowledge: Script,
    pub hold: Script,
    pub restore: Script,
    pub confirm: Script,
    pub release: Script,
    pub restock: Script,
    pub allocate: Script,
    pub place: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let [
            reserve,
            transition,
            project,
            remove,
            acknowledge,
            hold,
            restore,
            confirm,
            release,
            restock,
            allocate,
            place,
        ] = SOURCES.map(|(_, source)| Script::new(source));
        Self {
            reserve,
            transition,
            project,
            remove,
            acknowledge,
            hold,
            restore,
            confirm,
            release,
            restock,
            allocate,
            place,
        }
    }

    pub(super) fn all(&self) -> [&Script; SOURCES.len()] {
        let Self {
            reserve,
            transition,
            project,
            remove,
            acknowledge,
            hold,
            restore,
            confirm,
            release,
            restock,
            allocate,
            place,
        } = self;
        [reserve, transition, project, remove, acknowledge, hold, restore, confirm, release, restock, allocate, place]
    }
}

/// Runs a script and returns its answer. The driver loads a script that the server has forgotten, once; the server may
/// forget it again before it runs. A script that was not found has not run, so trying again is safe.
pub(super) async fn run(call: &redis::ScriptInvocation<'_>, mut wire: impl Wire) -> redis::RedisResult<Vec<String>> {
    const ATTEMPTS_MAX: usize = 10;
    for _ in 1..ATTEMPTS_MAX {
        match call.invoke_async(&mut wire).await {
            Err(error) if error.kind() == redis::ErrorKind::Server(redis::ServerErrorKind::NoScript) => {}
            answer => return answer,
        }
    }
    call.invoke_async(&mut wire).await
}

/// What a script answered.
#[derive(Debug)]
pub(super) struct Reply {
    script: &'static str,
    parts: Vec<String>,
}

impl Reply {
    pub(super) const fn new(script: &'static str, parts: Vec<String>) -> Self {
        Self { script, parts }
    }

    pub(super) fn tag(&self) -> &str {
        self.parts.first().map_or("", String::as_str)
    }

    /// The field behind the tag, counted from 1.
    pub(super) fn field(&self, index: usize) -> Result<&str> {
        self.parts.get(index).map(String::as_str).ok_or_else(|| self.damaged("a field is missing"))
    }

    /// The field, parsed.
    pub(super) fn parse<T: std::str::FromStr>(&self, index: usize) -> Result<T> {
        self.field(index)?.parse().map_err(|_| self.damaged("a field cannot be read"))
    }

    /// A sale status, parsed.
    pub(super) fn status(&self, index: usize) -> Result<crate::domain::sale::SaleStatus> {
        crate::domain::sale::SaleStatus::parse(self.field(index)?).ok_or_else(|| self.damaged("unknown status"))
    }

    /// The nine fields of a reservation, the first at `at`: reservationId quantity price currency status bookedAt expiresAt
    /// revision returned.
    pub(super) fn reservation(&self, at: usize, of: (UserId, ProductId, EventId)) -> Result<Reservation> {
        let (user, product, event) = of;
        let currency = money::currency(self.field(at + 3)?).ok_or_else(|| self.damaged("unknown currency"))?;
        let expires = self.field(at + 6)?;
        Ok(Reservation {
            id: self.field(at)?.to_owned(),
            user,
            product,
            event,
            quantity: self.parse(at + 1)?,
            price: Money { minor: self.parse(at + 2)?, currency },
            status: OrderStatus::parse(self.field(at + 4)?).ok_or_else(|| self.damaged("unknown order status"))?,
            booked_at_ms: self.parse(at + 5)?,
            expires_at_ms: if expires.is_empty() { None } else { Some(self.parse(at + 6)?) },
            returned: self.parse(at + 8)?,
            slot_kept: false,
            revision: self.parse(at + 7)?,
            idempotency_key: String::new(),
            operation: String::new(),
        })
    }

    /// Every field behind the tag.
    pub(super) fn rest(&self) -> &[String] {
        self.parts.get(1..).unwrap_or_default()
    }

    pub(super) fn damaged(&self, what: &str) -> Error {
        Error::Damaged { doing: self.script, detail: format!("{what}: {:?}", self.parts) }
    }
}
