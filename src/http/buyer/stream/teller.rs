//! What one listener is told: a snapshot first, then only what changes.

use bytes::Bytes;

use super::frames;
use crate::app::AppState;
use crate::auth::token::Claims;
use crate::domain::ids::ProductId;
use crate::domain::product::StockLevel;
use crate::domain::sale::SaleStatus;
use crate::sale::{Listener, WatchedState, fingerprint};

/// What a listener knows.
enum Told {
    /// Nothing that we know of.
    Nothing,
    /// The whole state of this number.
    Whole(u64),
    /// This much of the products that it asked for, of the state of this number.
    Part(u64, SaleStatus, Vec<(ProductId, StockLevel)>),
}

/// Tells one listener.
pub(super) struct Teller {
    listener: Listener,
    told: Told,
    /// What it is told at once, shared with everybody who is told the same.
    first: std::vec::IntoIter<Bytes>,
    session: Claims,
    app: AppState,
}

impl Teller {
    /// For a listener who may have been here before: `last` is the id of the last event that it has.
    pub(super) fn new(mut listener: Listener, last: Option<&str>, session: Claims, app: AppState) -> Self {
        let mut first = vec![frames::PRELUDE];
        let mut told = Told::Nothing;
        if let Some(state) = listener.newest() {
            let known = knowledge(&state, listener.selection.as_deref());
            if last != Some(known.id(&state).as_str()) {
                first.push(known.snapshot(&state));
            }
            told = known;
        }
        Self { listener, told, first: first.into_iter(), session, app }
    }

    /// The next piece of the stream; `None` is its end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.next() {
            return Some(first);
        }
        loop {
            if !self.listener.wait().await {
                return None;
            }
            let state = self.listener.newest()?;
            if self.told.number() == Some(state.number) {
                // A sign of life. Whoever was signed out meanwhile does not get it.
                return self.app.accounts().continues(&self.session).then_some(frames::HEARTBEAT);
            }
            if let Some(piece) = self.tell(&state) {
                return Some(piece);
            }
        }
    }

    /// What is new to the listener in this state, if anything.
    fn tell(&mut self, state: &WatchedState) -> Option<Bytes> {
        let known = knowledge(state, self.listener.selection.as_deref());
        let piece = match (&self.told, &known) {
            (Told::Whole(before), Told::Whole(number)) if before + 1 == *number => Some(frames::change(state)),
            (Told::Part(_, status, before), Told::Part(_, _, levels)) => {
                let changed: Vec<_> =
                    levels.iter().filter(|level| !before.contains(level)).map(|(id, level)| (id, level)).collect();
                let status_changed = *status != state.status;
                let new = status_changed || !changed.is_empty();
                new.then(|| frames::difference(state, &known.id(state), status_changed, changed))
            }
            _ => Some(known.snapshot(state)),
        };
        self.told = known;
        piece
    }
}

/// All that a listener can know of a state.
fn knowledge(state: &WatchedState, selection: Option<&[ProductId]>) -> Told {
    match selection {
        None if state.complete => Told::Whole(state.number),
        selection => {
            let selection = selection.unwrap_or_default().iter();
            let levels = selection.filter_map(|id| state.levels.get_key_value(id)).map(|(id, level)| (*id, *level));
            Told::Part(state.number, state.status, levels.collect())
        }
    }
}

impl Told {
    const fn number(&self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::Whole(number) | Self::Part(number, ..) => Some(*number),
        }
    }

    fn id(&self, state: &WatchedState) -> String {
        match self {
            Self::Nothing | Self::Whole(_) => frames::whole_id(state),
            Self::Part(_, status, levels) => fingerprint(*status, levels.iter().map(|(id, level)| (id, level))),
        }
    }

    fn snapshot(&self, state: &WatchedState) -> Bytes {
        match self {
            Self::Nothing | Self::Whole(_) => frames::whole(state),
            Self::Part(_, _, levels) => frames::snapshot(state, levels.iter().map(|(id, level)| (id, level))),
        }
    }
}
