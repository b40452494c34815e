//! A product whose units are vouchers, in its seller's form and answers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::ids::{UserId, VendorId};
use crate::domain::product::VoucherOffer;
use crate::domain::voucher::denomination_text;
use crate::error::{Error, Result};
use crate::http::extract::{Fields, path_id};
use crate::http::voucher::{NO_PRODUCT, worth};

/// The fields of the form.
pub(super) const FIELDS: [&str; 3] = ["voucherProductId", "voucherDenomination", "voucherVendorIds"];
const ID_CHARS: std::ops::RangeInclusive<usize> = 1..=64;

/// Which vouchers a product's units are.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VoucherOfferBody {
    product_id: String,
    /// Such as "25.00".
    denomination: String,
    currency: &'static str,
    /// Issued by one of these; none: by any.
    vendor_ids: Vec<String>,
}

impl From<VoucherOffer> for VoucherOfferBody {
    fn from(offer: VoucherOffer) -> Self {
        Self {
            product_id: offer.product.to_string(),
            denomination: denomination_text(offer.denomination),
            currency: offer.denomination.currency.code(),
            vendor_ids: offer.vendors.iter().map(ToString::to_string).collect(),
        }
    }
}

/// As it was sent.
pub(super) struct VoucherFields {
    product: String,
    denomination: String,
    vendors: Vec<String>,
}

/// `None` if the product is not of vouchers. Complaints are among the form's.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<VoucherFields> {
    let [product, denomination, vendors] = FIELDS;
    let given = fields.text(product, ID_CHARS);
    let worth = fields.text(denomination, 1..=32);
    let vendors = fields.text(vendors, 1..=2_000);
    if given.is_none() && worth.is_none() && vendors.is_none() {
        return None;
    }
    let given = fields.require(product, given);
    let worth = fields.require(denomination, worth);
    let vendors = vendors.unwrap_or_default();
    Some(VoucherFields {
        product: given?,
        denomination: worth?,
        vendors: vendors.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect(),
    })
}

/// Looks up what was sent: the vouchers are those that are kept for the client for which the seller may order.
pub(super) async fn resolve(app: &AppState, seller: UserId, sent: VoucherFields) -> Result<VoucherOffer> {
    let [field, denomination, vendors] = FIELDS;
    let unknown = |_| Error::invalid(field, "there is no such voucher product");
    let id = path_id(&sent.product, NO_PRODUCT).map_err(unknown)?;
    let product = app.vouchers().product(id).await.map_err(|error| match error.code() {
        crate::error::Code::NotFound => unknown(error),
        _ => error,
    })?;
    let mut issued_by: Vec<VendorId> = Vec::new();
    for id in &sent.vendors {
        let id = path_id(id, "vendor not found").ok().filter(|id| product.vendors.contains(id));
        issued_by.push(id.ok_or_else(|| Error::invalid(vendors, "one of them does not issue this product"))?);
    }
    Ok(VoucherOffer {
        denomination: worth(&product, &sent.denomination, denomination)?,
        product: product.id,
        client: app.vouchers().client_of(seller).await?.id,
        vendors: issued_by,
    })
}
