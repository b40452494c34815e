//! A running sale in numbers, as its seller is shown it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::product::UnitCount;
use crate::http::extract::next_cursor;
use crate::sale::{Counters, Totals};

/// Which numbers.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct CountersQuery {
    /// `true`: the totals also of a sale of more than 2,000 products.
    pub(super) totals: Option<String>,
}

/// A running sale in numbers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CountersBody {
    /// A page of the products in the live store, in the order of their ids; empty unless the sale runs.
    counters: Vec<CounterItem>,
    /// Present if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Over all products; present while the sale runs, of more than 2,000 products only with `totals=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<TotalsBody>,
}

/// What has become of a product's units.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CounterItem {
    product_id: String,
    /// Units at the start, with those added since.
    units: u64,
    /// Units that can be reserved.
    stock: u64,
    /// Units that wait for payment.
    held: u64,
    /// Units that are sold.
    confirmed: u64,
    /// Of one unit.
    price_minor: i64,
    /// What the sold units cost; never what waits for payment.
    revenue_minor: i64,
    /// ISO 4217.
    currency: &'static str,
}

/// Sums over all products.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TotalsBody {
    units: u64,
    stock: u64,
    held: u64,
    confirmed: u64,
    /// What the sold units cost, in minor units, by currency.
    revenue_by_currency: BTreeMap<&'static str, i64>,
}

impl From<UnitCount> for CounterItem {
    fn from(count: UnitCount) -> Self {
        Self {
            product_id: count.id.to_string(),
            units: count.units,
            stock: count.stock,
            held: count.held,
            confirmed: count.confirmed,
            price_minor: count.price.minor,
            revenue_minor: count.revenue().minor,
            currency: count.price.currency.code(),
        }
    }
}

impl From<Totals> for TotalsBody {
    fn from(totals: Totals) -> Self {
        let Totals { units, stock, held, confirmed, revenue } = totals;
        Self { units, stock, held, confirmed, revenue_by_currency: revenue }
    }
}

impl From<Counters> for CountersBody {
    fn from(counters: Counters) -> Self {
        Self {
            counters: counters.products.items.into_iter().map(CounterItem::from).collect(),
            next_cursor: next_cursor(counters.products.next),
            totals: counters.totals.map(TotalsBody::from),
        }
    }
}
