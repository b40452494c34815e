//! What the service answers, as far as a run reads it. Other fields are ignored, and a list may be null: older servers
//! of the same contract write an empty one so.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::amount::Amount;

/// The body of a sign-up or sign-in.
#[derive(Debug, Deserialize)]
pub(super) struct Signed {
    pub user: SignedUser,
}

#[derive(Debug, Deserialize)]
pub(super) struct SignedUser {
    #[serde(rename = "_id")]
    pub id: String,
}

/// The body of anything that went wrong.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Problem {
    pub error: Option<String>,
    /// Where servers that predate error codes put the text of a refused role.
    pub message: Option<String>,
    pub code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventCreated {
    pub event_id: String,
}

/// What was entered.
#[derive(Debug, Deserialize)]
pub(super) struct Entered {
    pub id: String,
}

/// How far an import is.
#[derive(Debug, Deserialize)]
pub struct ImportState {
    /// READING, COMMITTING, DONE, REFUSED or FAILED.
    pub state: String,
    /// Vouchers that are in the inventory by now.
    pub added: u64,
    /// Why nothing came in.
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Availability {
    pub pools: Vec<PoolCount>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolCount {
    pub client_id: Option<String>,
    pub database: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Codes {
    pub codes: Vec<ShownCode>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownCode {
    pub code: String,
}

/// One page of a list.
pub(super) trait Listing {
    type Item;
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! listing {
    ($name:ident, $field:ident: $item:ty) => {
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct $name {
            $field: Option<Vec<$item>>,
            next_cursor: Option<String>,
        }

        impl Listing for $name {
            type Item = $item;
            fn into_parts(self) -> (Vec<$item>, Option<String>) {
                (self.$field.unwrap_or_default(), self.next_cursor)
            }
        }
    };
}

listing!(Pending, verifications: PendingVerification);
listing!(Products, products: ProductOnSale);
listing!(Orders, orders: Order);

/// A seller's request that waits for review.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingVerification {
    /// The request.
    pub id: String,
    /// Who asks.
    pub seller_id: String,
}

/// A product as buyers see it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProductOnSale {
    /// The product.
    pub product_id: String,
    /// Of one unit.
    pub price: Amount,
    /// Units left.
    #[serde(default)]
    pub available_stock: i64,
}

/// What a buyer is told who got a unit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Purchased {
    /// The reservation, to be found again among the orders.
    pub reservation_id: String,
    /// Of one unit.
    pub price: Amount,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedToPay {
    pub pay_url: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PaymentBody {
    pub payment: PaymentState,
}

/// What the service says of the money for a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentState {
    /// What was paid, in minor units.
    pub paid_minor: i64,
    /// What went back, in minor units.
    pub refunded_minor: i64,
    /// Whether nothing is to be done about it any more.
    pub settled: bool,
}

/// A settled reservation, as the seller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The reservation that it settles.
    pub reservation_id: String,
    /// Who bought...
    pub user_id: String,
    /// ...what.
    pub product_id: String,
    /// Of one unit.
    pub price: Amount,
    /// `CONFIRMED`, ...
    pub status: String,
    /// Units that were reserved.
    #[serde(default = "one")]
    pub quantity: u64,
    /// Units of them that went back to stock.
    #[serde(default)]
    pub returned: u64,
    /// Of one unit, in minor units.
    #[serde(default)]
    pub price_minor: i64,
}

impl Order {
    /// Units that are the buyer's.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.quantity.saturating_sub(self.returned)
    }
}

const fn one() -> u64 {
    1
}

#[derive(Debug, Deserialize)]
pub(super) struct AnalyticsBody {
    pub analytics: Analytics,
}

/// The seller's totals of an event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Analytics {
    /// Orders of the event.
    pub total_orders: u64,
    /// Their worth.
    pub total_revenue: Amount,
    /// Orders per status.
    #[serde(default)]
    pub status_breakdown: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_be_null_and_a_page_says_where_the_next_one_starts() {
        let (items, next) = serde_json::from_str::<Orders>(r#"{"orders":null}"#).unwrap().into_parts();
        assert!(items.is_empty() && next.is_none());
        let text = r#"{"orders":[{"id":"o","reservationId":"r","userId":"u","productId":"p","eventId":"e",
            "price":199.5,"status":"CONFIRMED"}],"nextCursor":"n"}"#;
        let (items, next) = serde_json::from_str::<Orders>(text).unwrap().into_parts();
        assert_eq!((items[0].quantity, items[0].price, next.as_deref()), (1, Amount::new(199, 50), Some("n")));
    }

    #[test]
    fn a_problem_has_its_text_under_one_of_two_names() {
        let read = |text: &str| serde_json::from_str::<Problem>(text).unwrap();
        assert_eq!(read(r#"{"error":"sold out","code":"sold_out"}"#).code.as_deref(), Some("sold_out"));
        assert_eq!(read(r#"{"message":"Seller access required"}"#).message.as_deref(), Some("Seller access required"));
    }
}
