//! The text of an event stream. Every event is absolute: `snapshot` is all that a listener asked for, `stock` the products
//! whose level is another now, `status` what the sale is doing. The `id` names what the listener knows after it.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;

use crate::domain::ids::ProductId;
use crate::domain::product::StockLevel;
use crate::sale::{WatchedState, fingerprint};

/// Sent first, so that the answer reaches its reader through every proxy at once, and says when to come back.
pub(super) const PRELUDE: Bytes = Bytes::from_static(b": watching\nretry: 2000\n\n");
/// Sent to a listener that would hear nothing otherwise.
pub(super) const HEARTBEAT: Bytes = Bytes::from_static(b": alive\n\n");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProductLine {
    product_id: String,
    /// Units that can be reserved now.
    available_stock: u64,
    /// Units that wait for payment.
    held_units: u64,
}

impl From<(&ProductId, &StockLevel)> for ProductLine {
    fn from((id, level): (&ProductId, &StockLevel)) -> Self {
        Self { product_id: id.to_string(), available_stock: level.available, held_units: level.held }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    server_time_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    products: Option<Vec<ProductLine>>,
}

fn event(text: &mut String, name: &str, id: Option<&str>, data: &Data) {
    let json = serde_json::to_string(data).unwrap_or_default();
    // Writing into a text cannot fail.
    let _ = write!(text, "event: {name}\n{}data: {json}\n\n", Id(id));
}

/// The id belongs to the last of several events only: whoever has lost the connection in between has not seen them all.
struct Id<'a>(Option<&'a str>);

impl std::fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |id| writeln!(f, "id: {id}"))
    }
}

/// All of a sale, for those who watch all of it.
pub(super) fn whole(state: &WatchedState) -> Bytes {
    state.frames.whole.get_or_init(|| snapshot(state, state.levels.iter())).clone()
}

/// What differs from the state before, for those who have that.
pub(super) fn change(state: &WatchedState) -> Bytes {
    let changed = || state.changed.iter().filter_map(|id| state.levels.get_key_value(id));
    let write = || difference(state, &whole_id(state), state.status_changed, changed().collect());
    state.frames.change.get_or_init(write).clone()
}

/// The id of all of a sale.
pub(super) fn whole_id(state: &WatchedState) -> String {
    fingerprint(state.status, &state.levels)
}

/// A snapshot of these products.
pub(super) fn snapshot<'a>(
    state: &WatchedState,
    levels: impl Iterator<Item = (&'a ProductId, &'a StockLevel)> + Clone,
) -> Bytes {
    let id = fingerprint(state.status, levels.clone());
    let data = Data {
        status: Some(state.status.as_str()),
        server_time_ms: state.at.timestamp_millis(),
        products: Some(levels.map(ProductLine::from).collect()),
    };
    let mut text = String::new();
    event(&mut text, "snapshot", Some(&id), &data);
    text.into()
}

/// The products that have changed, and the status if it has. `id` names all that the listener knows then.
pub(super) fn difference(
    state: &WatchedState,
    id: &str,
    status_changed: bool,
    changed: Vec<(&ProductId, &StockLevel)>,
) -> Bytes {
    let (mut text, server_time_ms) = (String::new(), state.at.timestamp_millis());
    if !changed.is_empty() {
        let products = Some(changed.into_iter().map(ProductLine::from).collect());
        event(
            &mut text,
            "stock",
            Some(id).filter(|_| !status_changed),
            &Data { status: None, server_time_ms, products },
        );
    }
    if status_changed {
        let status = Some(state.status.as_str());
        event(&mut text, "status", Some(id), &Data { status, server_time_ms, products: None });
    }
    text.into()
}
