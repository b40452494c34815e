//! The inventory of vouchers, kept by administrators: availability, tags, the pump, single units.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::records::NO_CLIENT;
use crate::app::AppState;
use crate::domain::ids::ClientId;
use crate::domain::money::Money;
use crate::domain::voucher::{Unit, VoucherProduct, denomination_text};
use crate::error::{Error, Result};
use crate::http::extract::{Admin, NamedUnit, NamedVoucherProduct, ValidJson, path_id};
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::Availability;

pub(in crate::http) const NO_PRODUCT: &str = "voucher product not found";

/// A denomination of a product, such as "25.00".
pub(in crate::http) fn worth(product: &VoucherProduct, text: &str, field: &str) -> Result<Money> {
    let worth = Money::parse_price(text, product.currency).map_err(|error| Error::invalid(field, error.to_string()))?;
    if !product.denominations.contains(&worth.minor) {
        return Err(Error::invalid(field, "is not one of the product's"));
    }
    Ok(worth)
}

/// Vouchers of one kind.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PoolBody {
    denomination: String,
    vendor_id: String,
    /// For whom they are kept; absent: for whoever comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    /// Available units in the database that do not expire too soon.
    database: u64,
    /// Units in the pool.
    pool: u64,
}

/// What can be had of a product.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct AvailabilityBody {
    pools: Vec<PoolBody>,
    /// Units that orders are about to get: they are in no pool.
    claims: u64,
    /// Units of the database that are neither in pools nor claimed; negative if the pools have more. Anything but 0 on a
    /// quiet system is drift, which the pump mends.
    difference: i64,
}

impl From<Availability> for AvailabilityBody {
    fn from(availability: Availability) -> Self {
        let difference = availability.difference();
        let row = |row: crate::vouchers::PoolAvailability| PoolBody {
            denomination: denomination_text(row.pool.denomination),
            vendor_id: row.pool.vendor.to_string(),
            client_id: row.pool.client.map(|id| id.to_string()),
            database: row.database,
            pool: row.pooled,
        };
        let pools = availability.pools.into_iter().map(row).collect();
        Self { pools, claims: availability.claims, difference }
    }
}

/// What can be had of a product: what the database has, and what the pools hold.
#[utoipa::path(get, path = "/api/admin/vouchers/products/{productId}/availability", tag = "vouchers",
    params(("productId" = String, Path, description = "Product id")), responses(
    (status = 200, description = "By denomination, vendor and client", body = AvailabilityBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such product", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_availability(
    State(app): State<AppState>,
    _admin: Admin,
    NamedVoucherProduct(product): NamedVoucherProduct,
) -> Answer<Json<AvailabilityBody>> {
    Ok(Json(app.vouchers().availability(product.id).await?.into()))
}

/// Vouchers to be kept for a client, or let go of.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct TagRequest {
    #[garde(length(max = 64))]
    client_id: String,
    /// Such as "25.00".
    #[garde(length(max = 32))]
    denomination: String,
    #[garde(range(min = 1, max = 1_000_000))]
    quantity: u32,
}

/// How many were changed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct TaggedBody {
    /// Fewer than asked for if there are not as many.
    units: u32,
}

async fn tagging(app: &AppState, product: &VoucherProduct, request: &TagRequest) -> Result<(Money, ClientId)> {
    let client = app.vouchers().client(path_id(&request.client_id, NO_CLIENT)?).await?;
    Ok((worth(product, &request.denomination, "denomination")?, client.id))
}

/// Keeps vouchers for a client: untagged ones, those that expire first.
#[utoipa::path(post, path = "/api/admin/vouchers/products/{productId}/tags", tag = "vouchers", request_body = TagRequest,
    params(("productId" = String, Path, description = "Product id")), responses(
    (status = 200, description = "Kept", body = TaggedBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such product, or client", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "A store is away: some may be kept", body = ProblemBody)))]
pub(in crate::http) async fn tag_vouchers(
    State(app): State<AppState>,
    _admin: Admin,
    NamedVoucherProduct(product): NamedVoucherProduct,
    ValidJson(request): ValidJson<TagRequest>,
) -> Answer<Json<TaggedBody>> {
    let (denomination, client) = tagging(&app, &product, &request).await?;
    let units = app.vouchers().tag(product.id, denomination, client, request.quantity).await?;
    Ok(Json(TaggedBody { units }))
}

/// Lets go of vouchers that were kept for a client: those that expire last.
#[utoipa::path(post, path = "/api/admin/vouchers/products/{productId}/untags", tag = "vouchers", request_body = TagRequest,
    params(("productId" = String, Path, description = "Product id")), responses(
    (status = 200, description = "Let go of", body = TaggedBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such product, or client", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "A store is away: some may be let go of", body = ProblemBody)))]
pub(in crate::http) async fn untag_vouchers(
    State(app): State<AppState>,
    _admin: Admin,
    NamedVoucherProduct(product): NamedVoucherProduct,
    ValidJson(request): ValidJson<TagRequest>,
) -> Answer<Json<TaggedBody>> {
    let (denomination, client) = tagging(&app, &product, &request).await?;
    let units = app.vouchers().untag(product.id, denomination, client, request.quantity).await?;
    Ok(Json(TaggedBody { units }))
}

/// What the pump found.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct PumpedBody {
    /// Available units in the database.
    units: u64,
    /// Units that were not where they belong, and are now.
    moved: u64,
    /// Members of pools that were no available units, and are gone.
    removed: u64,
}

/// Compares the pools of a product with the database now, and mends them.
#[utoipa::path(post, path = "/api/admin/vouchers/products/{productId}/pump", tag = "vouchers",
    params(("productId" = String, Path, description = "Product id")), responses(
    (status = 200, description = "Compared and mended", body = PumpedBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such product", body = ProblemBody),
    (status = 503, description = "A store is away: pumping again goes on", body = ProblemBody)))]
pub(in crate::http) async fn pump_vouchers(
    State(app): State<AppState>,
    _admin: Admin,
    NamedVoucherProduct(product): NamedVoucherProduct,
) -> Answer<Json<PumpedBody>> {
    let pumped = app.vouchers().pump(product.id).await?;
    Ok(Json(PumpedBody { units: pumped.units, moved: pumped.moved, removed: pumped.removed }))
}

/// A voucher unit, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct UnitBody {
    id: u64,
    product_id: String,
    denomination: String,
    vendor_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    expires_at: DateTime<Utc>,
    /// AVAILABLE, ALLOCATED, DELIVERED, COMPLETED, BLOCKED or REVOKED.
    status: &'static str,
    /// The order item that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
}

impl From<Unit> for UnitBody {
    fn from(unit: Unit) -> Self {
        Self {
            id: unit.id.number(),
            product_id: unit.product.to_string(),
            denomination: denomination_text(unit.denomination),
            vendor_id: unit.vendor.to_string(),
            client_id: unit.client.map(|id| id.to_string()),
            expires_at: unit.expires_at,
            status: unit.status.as_str(),
            item: unit.item,
        }
    }
}

/// Stops a voucher that nobody has seen from being sold, or shown.
#[utoipa::path(post, path = "/api/admin/vouchers/units/{unitId}/block", tag = "vouchers",
    params(("unitId" = u64, Path, description = "Number of the unit")), responses(
    (status = 200, description = "Blocked", body = UnitBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such unit", body = ProblemBody),
    (status = 409, description = "voucher_state: it was shown, or is blocked", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn block_voucher(
    State(app): State<AppState>,
    _admin: Admin,
    NamedUnit(unit): NamedUnit,
) -> Answer<Json<UnitBody>> {
    Ok(Json(app.vouchers().block(unit.id).await?.into()))
}

/// Lets a blocked voucher go on.
#[utoipa::path(post, path = "/api/admin/vouchers/units/{unitId}/unblock", tag = "vouchers",
    params(("unitId" = u64, Path, description = "Number of the unit")), responses(
    (status = 200, description = "As it was before", body = UnitBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such unit", body = ProblemBody),
    (status = 409, description = "voucher_state: it is not blocked", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn unblock_voucher(
    State(app): State<AppState>,
    _admin: Admin,
    NamedUnit(unit): NamedUnit,
) -> Answer<Json<UnitBody>> {
    Ok(Json(app.vouchers().unblock(unit.id).await?.into()))
}

/// A new expiry.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ExpiryRequest {
    /// Until when it can be used.
    #[garde(skip)]
    expires_at: DateTime<Utc>,
}

/// Corrects until when a voucher can be used, while nobody has seen its code. Its pool follows at once.
#[utoipa::path(put, path = "/api/admin/vouchers/units/{unitId}/expiry", tag = "vouchers", request_body = ExpiryRequest,
    params(("unitId" = u64, Path, description = "Number of the unit")), responses(
    (status = 200, description = "Changed", body = UnitBody),
    (status = 400, description = "Not a moment", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such unit", body = ProblemBody),
    (status = 409, description = "voucher_state: its code was shown", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn change_expiry(
    State(app): State<AppState>,
    _admin: Admin,
    NamedUnit(unit): NamedUnit,
    ValidJson(request): ValidJson<ExpiryRequest>,
) -> Answer<Json<UnitBody>> {
    Ok(Json(app.vouchers().expire_at(unit.id, request.expires_at).await?.into()))
}
