//! What is said between us and a vendor, as JSON.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::stock::BoughtVoucher;
use super::vendor::{Availability, OrderOutcome, Refusal, VendorOrder};
use crate::config::{ExposeSecret, SecretString};
use crate::domain::prefetch::DISCOUNT_BP_MAX;

/// Bytes of a code, a pin, a link or a reference.
const SECRET_BYTES_MAX: usize = 4096;
/// Bytes of a vendor's word for a refusal.
const REASON_BYTES_MAX: usize = 64;

/// What is wrong with an answer. It never says what the answer was: there are codes in it.
pub(super) type Unreadable = String;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderBody<'a> {
    external_id: &'a str,
    product: &'a str,
    denomination_minor: i64,
    currency: &'a str,
    count: u32,
}

impl<'a> From<&VendorOrder<'a>> for OrderBody<'a> {
    fn from(order: &VendorOrder<'a>) -> Self {
        Self {
            external_id: order.external_id,
            product: order.product_ref,
            denomination_minor: order.denomination.minor,
            currency: order.denomination.currency.code(),
            count: order.count,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AvailabilityAnswer {
    units: u64,
    discount_bp: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderAnswer {
    external_id: String,
    status: Status,
    #[serde(default)]
    vouchers: Vec<VoucherAnswer>,
    #[serde(default)]
    permanent: bool,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Fulfilled,
    Pending,
    Refused,
    NotFound,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VoucherAnswer {
    code: Option<SecretString>,
    pin: Option<SecretString>,
    claim_url: Option<SecretString>,
    reference: Option<SecretString>,
    expires_at: Option<DateTime<Utc>>,
}

/// Reads what a vendor has.
pub(super) fn availability(body: &[u8]) -> Result<Availability, Unreadable> {
    let answer: AvailabilityAnswer = parse(body)?;
    if answer.discount_bp.is_some_and(|discount| discount > DISCOUNT_BP_MAX) {
        return Err("the discount is more than everything".to_owned());
    }
    let units = u32::try_from(answer.units).unwrap_or(u32::MAX);
    Ok(Availability { units, discount_bp: answer.discount_bp })
}

/// Reads what became of an order; `None` if the vendor says that it has none of this name.
pub(super) fn outcome(body: &[u8], external_id: &str) -> Result<Option<OrderOutcome>, Unreadable> {
    let answer: OrderAnswer = parse(body)?;
    if answer.external_id != external_id {
        return Err("the answer is about another order".to_owned());
    }
    Ok(Some(match answer.status {
        Status::NotFound => return Ok(None),
        Status::Pending => OrderOutcome::Pending,
        Status::Refused => {
            OrderOutcome::Refused(Refusal { permanent: answer.permanent, reason: reason(&answer.reason) })
        }
        // It is paid for: without its codes it is no short delivery that could be made up for elsewhere.
        Status::Fulfilled if answer.vouchers.is_empty() => return Err("what was sold is not in the answer".to_owned()),
        Status::Fulfilled => {
            OrderOutcome::Fulfilled(answer.vouchers.into_iter().map(voucher).collect::<Result<_, _>>()?)
        }
    }))
}

/// serde's own words quote what they cannot read.
fn parse<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(body).map_err(|error| {
        let (kind, line, column) = (error.classify(), error.line(), error.column());
        format!("the answer cannot be read: {kind:?} error at line {line}, column {column}")
    })
}

/// A vendor's word, if it is one: a sentence may quote what is nobody's business.
fn reason(text: &str) -> String {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=REASON_BYTES_MAX).contains(&text.len()) && text.bytes().all(word) {
        text.to_owned()
    } else {
        "unspecified".to_owned()
    }
}

fn voucher(answer: VoucherAnswer) -> Result<BoughtVoucher, Unreadable> {
    let code = present(answer.code)?;
    let claim_url = present(answer.claim_url)?;
    if code.is_none() && claim_url.is_none() {
        return Err("a voucher has neither a code nor a link".to_owned());
    }
    let (pin, reference) = (present(answer.pin)?, present(answer.reference)?);
    Ok(BoughtVoucher { code, pin, claim_url, reference, expires_at: answer.expires_at })
}

/// An empty text is none.
fn present(text: Option<SecretString>) -> Result<Option<SecretString>, Unreadable> {
    match &text {
        Some(secret) if secret.expose_secret().len() > SECRET_BYTES_MAX => Err("a voucher is too long".to_owned()),
        Some(secret) if secret.expose_secret().is_empty() => Ok(None),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreadable(body: &str) -> String {
        outcome(body.as_bytes(), "a-1").unwrap_err()
    }

    #[test]
    fn an_outcome_is_read() {
        let body = r#"{"externalId":"a-1","status":"fulfilled","more":1,"vouchers":[
            {"code":"0042","pin":"","expiresAt":"2030-01-31T23:59:59+05:30"},{"claimUrl":"https://v.example/1"}]}"#;
        let Some(OrderOutcome::Fulfilled(vouchers)) = outcome(body.as_bytes(), "a-1").unwrap() else {
            panic!("{body}")
        };
        assert_eq!(vouchers[0].code.as_ref().unwrap().expose_secret(), "0042");
        assert!(vouchers[0].pin.is_none() && vouchers[1].code.is_none());
        assert_eq!(vouchers[0].expires_at.unwrap().to_rfc3339(), "2030-01-31T18:29:59+00:00");
        let refused = br#"{"externalId":"a-1","status":"refused","permanent":true,"reason":"out_of_stock"}"#;
        let expected = Refusal { permanent: true, reason: "out_of_stock".to_owned() };
        assert!(
            matches!(outcome(refused, "a-1").unwrap(), Some(OrderOutcome::Refused(refusal)) if refusal == expected)
        );
        assert!(outcome(br#"{"externalId":"a-1","status":"not_found"}"#, "a-1").unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_read_is_not_repeated() {
        for body in [
            r#"{"externalId":"a-1","status":"SECRET"}"#,
            r#"{"externalId":"a-1","status":"fulfilled","vouchers":"SECRET"}"#,
            r#"{"externalId":"a-1","status":"fulfilled","vouchers":[{"code":"x","expiresAt":"SECRET"}]}"#,
            r#"{"externalId":"a-1","status":"fulfilled","vouchers":[{"pin":"SECRET"}]}"#,
            r#"{"externalId":"SECRET","status":"pending"}"#,
            "SECRET",
            "",
        ] {
            assert!(!unreadable(body).contains("SECRET"), "{}", unreadable(body));
        }
    }

    #[test]
    fn what_is_sold_is_told_with_its_codes() {
        for body in [
            r#"{"externalId":"a-1","status":"fulfilled"}"#,
            r#"{"externalId":"a-1","status":"fulfilled","vouchers":[]}"#,
        ] {
            assert_eq!(unreadable(body), "what was sold is not in the answer");
        }
    }

    #[test]
    fn a_reason_is_a_word_and_no_sentence() {
        assert_eq!(reason("out_of_stock"), "out_of_stock");
        for text in ["", "your code is 1234", "ä", &"x".repeat(65)] {
            assert_eq!(reason(text), "unspecified");
        }
    }

    #[test]
    fn what_a_vendor_has_is_bounded() {
        let available = availability(br#"{"units":99999999999,"discountBp":350}"#).unwrap();
        assert_eq!(available, Availability { units: u32::MAX, discount_bp: Some(350) });
        assert_eq!(availability(br#"{"units":7}"#).unwrap().discount_bp, None);
        assert!(availability(br#"{"units":7,"discountBp":10001}"#).is_err());
        assert!(availability(br#"{"units":-1}"#).is_err());
    }
}
