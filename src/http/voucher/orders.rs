//! Orders of vouchers, made by those who may order for a client.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use garde::Validate;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::inventory::{NO_PRODUCT, worth};
use crate::app::AppState;
use crate::domain::voucher::{VoucherLine, VoucherOrder, denomination_text};
use crate::error::{Error, Result};
use crate::http::extract::{Admin, Member, Paged, Path, ValidJson, next_cursor, path_id};
use crate::http::openapi::PageQuery;
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::ShownCode;

const NO_ORDER: &str = "voucher order not found";

/// An order to be made.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct VoucherOrderRequest {
    /// The client's own name for it, 1 to 64 visible ASCII characters. The same reference is the same order.
    #[garde(length(min = 1, max = 64), custom(visible))]
    reference: String,
    /// What is ordered: all of it, or nothing is given.
    #[garde(length(min = 1, max = crate::vouchers::LINES_MAX), dive)]
    items: Vec<LineRequest>,
}

pub(super) fn visible(text: &str, (): &()) -> garde::Result {
    if text.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err(garde::Error::new("must be visible ASCII characters"))
}

/// Vouchers of one kind.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct LineRequest {
    #[garde(length(max = 64))]
    product_id: String,
    /// Such as "25.00".
    #[garde(length(max = 32))]
    denomination: String,
    #[garde(range(min = 1, max = 500))]
    quantity: u32,
}

/// Vouchers of one kind.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct LineBody {
    product_id: String,
    denomination: String,
    currency: String,
    quantity: u32,
}

/// An order of vouchers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VoucherOrderBody {
    id: String,
    reference: String,
    items: Vec<LineBody>,
    /// PENDING, ALLOCATED, DELIVERED or CANCELLED.
    status: &'static str,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    created_at: DateTime<Utc>,
}

impl From<VoucherOrder> for VoucherOrderBody {
    fn from(order: VoucherOrder) -> Self {
        let line = |line: VoucherLine| LineBody {
            product_id: line.product.to_string(),
            denomination: denomination_text(line.denomination),
            currency: line.denomination.currency.code().to_owned(),
            quantity: line.quantity,
        };
        Self {
            id: order.id.to_string(),
            reference: order.reference,
            items: order.lines.into_iter().map(line).collect(),
            status: order.status.as_str(),
            reason: order.reason,
            created_at: order.created_at,
        }
    }
}

/// Orders of vouchers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VoucherOrdersBody {
    orders: Vec<VoucherOrderBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An order of the caller's client; anybody else's is as good as none.
async fn own(app: &AppState, member: &Member, id: &str) -> Result<VoucherOrder> {
    let order = app.vouchers().voucher_order(path_id(id, NO_ORDER)?).await?;
    if order.client == member.client.id { Ok(order) } else { Err(Error::not_found(NO_ORDER)) }
}

/// Orders vouchers for the caller's client. Every one of them is given, or none.
#[utoipa::path(post, path = "/api/client/voucher-orders", tag = "vouchers", request_body = VoucherOrderRequest, responses(
    (status = 201, description = "Every item has a voucher", body = VoucherOrderBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "The account orders for no client", body = ProblemBody),
    (status = 404, description = "No such product", body = ProblemBody),
    (status = 409, description = "vouchers_short, reference_reused, or voucher_state: the order of this reference was cancelled", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "A store is away: ask again with the same reference", body = ProblemBody)))]
pub(in crate::http) async fn order_vouchers(
    State(app): State<AppState>,
    member: Member,
    ValidJson(request): ValidJson<VoucherOrderRequest>,
) -> Answer<(StatusCode, Json<VoucherOrderBody>)> {
    let mut lines = Vec::new();
    for (index, line) in request.items.iter().enumerate() {
        let product = app.vouchers().product(path_id(&line.product_id, NO_PRODUCT)?).await?;
        let denomination = worth(&product, &line.denomination, &format!("items[{index}].denomination"))?;
        lines.push(VoucherLine { product: product.id, denomination, quantity: line.quantity });
    }
    let vouchers = Arc::clone(app.vouchers());
    // Finished even if the caller hangs up.
    let work = async move { vouchers.order(&member.client, &request.reference, lines).await };
    let order = app.tasks().complete("ordering vouchers", work).await?;
    Ok((StatusCode::CREATED, Json(order.into())))
}

/// The orders of the caller's client, newest first.
#[utoipa::path(get, path = "/api/client/voucher-orders", tag = "vouchers", params(PageQuery), responses(
    (status = 200, description = "A page of them", body = VoucherOrdersBody),
    (status = 400, description = "A paging parameter breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "The account orders for no client", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_voucher_orders(
    State(app): State<AppState>,
    member: Member,
    Paged(page): Paged,
) -> Answer<Json<VoucherOrdersBody>> {
    let listed = app.vouchers().voucher_orders(&member.client, page).await?;
    let orders = listed.items.into_iter().map(Into::into).collect();
    Ok(Json(VoucherOrdersBody { orders, next_cursor: next_cursor(listed.next) }))
}

/// An order of the caller's client.
#[utoipa::path(get, path = "/api/client/voucher-orders/{orderId}", tag = "vouchers",
    params(("orderId" = String, Path, description = "Order id")), responses(
    (status = 200, description = "The order", body = VoucherOrderBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "The account orders for no client", body = ProblemBody),
    (status = 404, description = "The client has no such order", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_voucher_order(
    State(app): State<AppState>,
    member: Member,
    Path(id): Path<String>,
) -> Answer<Json<VoucherOrderBody>> {
    Ok(Json(own(&app, &member, &id).await?.into()))
}

/// Cancels an order: vouchers that nobody has seen are sold again, those that were shown are revoked. Repeating it changes
/// nothing.
#[utoipa::path(post, path = "/api/client/voucher-orders/{orderId}/cancel", tag = "vouchers",
    params(("orderId" = String, Path, description = "Order id")), responses(
    (status = 200, description = "Cancelled, now or before", body = VoucherOrderBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "The account orders for no client", body = ProblemBody),
    (status = 404, description = "The client has no such order", body = ProblemBody),
    (status = 503, description = "A store is away: cancel again", body = ProblemBody)))]
pub(in crate::http) async fn cancel_voucher_order(
    State(app): State<AppState>,
    member: Member,
    Path(id): Path<String>,
) -> Answer<Json<VoucherOrderBody>> {
    let order = own(&app, &member, &id).await?;
    let vouchers = Arc::clone(app.vouchers());
    let work = async move { vouchers.cancel(&order, "cancelled by the client").await };
    Ok(Json(app.tasks().complete("cancelling a voucher order", work).await?.into()))
}

/// A voucher with its secrets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct CodeBody {
    denomination: String,
    currency: String,
    vendor_id: String,
    expires_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    voucher_reference: Option<String>,
}

impl From<ShownCode> for CodeBody {
    fn from(shown: ShownCode) -> Self {
        let text = |secret: Option<SecretString>| secret.map(|secret| secret.expose_secret().to_owned());
        Self {
            denomination: denomination_text(shown.unit.denomination),
            currency: shown.unit.denomination.currency.code().to_owned(),
            vendor_id: shown.unit.vendor.to_string(),
            expires_at: shown.unit.expires_at,
            code: text(shown.secrets.code),
            pin: text(shown.secrets.pin),
            claim_url: text(shown.secrets.claim_url),
            voucher_reference: text(shown.secrets.reference),
        }
    }
}

/// The codes of an order.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct CodesBody {
    /// In the order of the items; the same every time.
    codes: Vec<CodeBody>,
}

impl From<Vec<ShownCode>> for CodesBody {
    fn from(shown: Vec<ShownCode>) -> Self {
        Self { codes: shown.into_iter().map(Into::into).collect() }
    }
}

/// Shows the codes of an order. Who looked is recorded; from then on a cancellation revokes them.
#[utoipa::path(get, path = "/api/client/voucher-orders/{orderId}/codes", tag = "vouchers",
    params(("orderId" = String, Path, description = "Order id")), responses(
    (status = 200, description = "The codes", body = CodesBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "The account orders for no client", body = ProblemBody),
    (status = 404, description = "The client has no such order", body = ProblemBody),
    (status = 409, description = "voucher_state: the order has no vouchers, or one of them is blocked", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_codes(
    State(app): State<AppState>,
    member: Member,
    Path(id): Path<String>,
) -> Answer<([(HeaderName, &'static str); 1], Json<CodesBody>)> {
    let order = own(&app, &member, &id).await?;
    let shown = app.vouchers().show_codes(&order, member.user).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(shown.into())))
}

/// Says that the client has what it ordered.
#[utoipa::path(post, path = "/api/client/voucher-orders/{orderId}/complete", tag = "vouchers",
    params(("orderId" = String, Path, description = "Order id")), responses(
    (status = 200, description = "Its vouchers are done with", body = VoucherOrderBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "The account orders for no client", body = ProblemBody),
    (status = 404, description = "The client has no such order", body = ProblemBody),
    (status = 409, description = "voucher_state: its codes were not shown", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn complete_voucher_order(
    State(app): State<AppState>,
    member: Member,
    Path(id): Path<String>,
) -> Answer<Json<VoucherOrderBody>> {
    let order = own(&app, &member, &id).await?;
    app.vouchers().complete(&order).await?;
    Ok(Json(order.into()))
}

/// Takes back what an order has and gives its items other vouchers, if none was shown.
#[utoipa::path(post, path = "/api/admin/vouchers/orders/{orderId}/reset", tag = "vouchers",
    params(("orderId" = String, Path, description = "Order id")), responses(
    (status = 200, description = "Every item has another voucher", body = VoucherOrderBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such order", body = ProblemBody),
    (status = 409, description = "voucher_state: a voucher was shown, or vouchers_short", body = ProblemBody),
    (status = 503, description = "A store is away: it is finished by itself", body = ProblemBody)))]
pub(in crate::http) async fn reset_voucher_order(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
) -> Answer<Json<VoucherOrderBody>> {
    let id = path_id(&id, NO_ORDER)?;
    let vouchers = Arc::clone(app.vouchers());
    let work = async move { vouchers.reset(id).await };
    Ok(Json(app.tasks().complete("resetting a voucher order", work).await?.into()))
}
