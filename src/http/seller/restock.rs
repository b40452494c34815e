//! A seller adds units to a running sale, or withdraws them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::products::ProductPath;
use crate::app::AppState;
use crate::domain::ids::ProductId;
use crate::domain::product::UNITS_MAX;
use crate::error::{Code, Error};
use crate::http::extract::{OwnedEvent, Path, ValidJson, path_id};
use crate::http::problem::{Answer, ProblemBody};

/// Units to be added or withdrawn.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct RestockRequest {
    /// Units to add; a negative number withdraws units that nobody has.
    #[garde(range(min = -i64::from(UNITS_MAX), max = i64::from(UNITS_MAX)))]
    units: i64,
    /// The caller's name for this restocking, 1 to 64 letters, digits, `.`, `_` or `-`. The same name is the same
    /// restocking: repeating it changes nothing more.
    #[garde(length(min = 1, max = 64), custom(plain))]
    operation_id: String,
}

fn plain(text: &str, (): &()) -> garde::Result {
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return Ok(());
    }
    Err(garde::Error::new("must be letters, digits, '.', '_' or '-'"))
}

/// What a product has after a restocking.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct RestockedBody {
    message: &'static str,
    /// Units that can be reserved now.
    available_stock: u64,
    /// Units added since the sale was opened, less those withdrawn.
    restocked: i64,
}

/// Adds units to a product of a running sale, or withdraws units that are neither sold nor held; once for each operation
/// id. A product that was sold out can be bought again at once.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/products/{productId}/restock", tag = "seller",
    request_body = RestockRequest,
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "Done, now or before", body = RestockedBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event, or its sale no such product", body = ProblemBody),
    (status = 409, description = "restock_refused, or sale_not_active", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 422, description = "The operation id belongs to another restocking", body = ProblemBody),
    (status = 503, description = "A store is away: ask again with the same operation id", body = ProblemBody)))]
pub(in crate::http) async fn restock_product(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Path(path): Path<ProductPath>,
    ValidJson(request): ValidJson<RestockRequest>,
) -> Answer<Json<RestockedBody>> {
    let unknown = |_| Error::refused(Code::ProductNotFound, "product not found");
    let product: ProductId = path_id(&path.product, "").map_err(unknown)?;
    if request.units == 0 {
        return Err(Error::invalid("units", "must not be 0").into());
    }
    let sale = Arc::clone(app.sale());
    let (units, operation) = (request.units, request.operation_id);
    let work = async move { sale.restock(&event, product, operation, units).await };
    let restocked = app.tasks().complete("restocking", work).await?;
    let message = if units > 0 { "units added" } else { "units withdrawn" };
    Ok(Json(RestockedBody { message, available_stock: restocked.stock, restocked: restocked.restocked }))
}
