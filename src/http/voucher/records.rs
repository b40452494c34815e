//! Vendors, clients and products of vouchers, kept by administrators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::ids::{ClientId, VendorId, VoucherProductId};
use crate::domain::money::{Money, currency};
use crate::domain::voucher::{Client, Vendor, VoucherProduct, denomination_text};
use crate::error::{Error, FieldError, Result};
use crate::http::extract::{Admin, Paged, Path, ValidJson, next_cursor, path_id};
use crate::http::openapi::PageQuery;
use crate::http::problem::{Answer, ProblemBody};

pub(super) const NO_CLIENT: &str = "client not found";
const IDS_MAX: usize = 100;

/// Reads ids of a list; the first that is none is reported.
fn ids<T: std::str::FromStr>(field: &str, texts: &[String]) -> Result<Vec<T>> {
    let id = |(index, text): (usize, &String)| {
        let problem = |_| FieldError { field: format!("{field}[{index}]"), message: "must be an id".to_owned() };
        text.parse().map_err(|error| Error::Invalid { fields: vec![problem(error)] })
    };
    texts.iter().enumerate().map(id).collect()
}

/// A name: some text, without spaces around it.
fn tidy(text: &str, (): &()) -> garde::Result {
    if text.trim() == text && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(garde::Error::new("must have no spaces around it and no control characters"))
}

/// A new vendor.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct VendorRequest {
    /// 1 to 100 characters; no two differ only in case.
    #[garde(length(chars, min = 1, max = 100), custom(tidy))]
    name: String,
}

/// A vendor.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VendorBody {
    id: String,
    name: String,
    created_at: DateTime<Utc>,
}

impl From<Vendor> for VendorBody {
    fn from(vendor: Vendor) -> Self {
        Self { id: vendor.id.to_string(), name: vendor.name, created_at: vendor.created_at }
    }
}

/// Vendors.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VendorsBody {
    vendors: Vec<VendorBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Enters a vendor: who issues vouchers.
#[utoipa::path(post, path = "/api/admin/vouchers/vendors", tag = "vouchers", request_body = VendorRequest, responses(
    (status = 201, description = "Entered", body = VendorBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 409, description = "name_taken", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn enter_vendor(
    State(app): State<AppState>,
    _admin: Admin,
    ValidJson(request): ValidJson<VendorRequest>,
) -> Answer<(StatusCode, Json<VendorBody>)> {
    let (id, created_at) = app.vouchers().stamp();
    let vendor = Vendor { id: VendorId::from_bytes(id), name: request.name, created_at };
    Ok((StatusCode::CREATED, Json(app.vouchers().enter_vendor(vendor).await?.into())))
}

/// Vendors, oldest first.
#[utoipa::path(get, path = "/api/admin/vouchers/vendors", tag = "vouchers", params(PageQuery), responses(
    (status = 200, description = "A page of them", body = VendorsBody),
    (status = 400, description = "A paging parameter breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_vendors(
    State(app): State<AppState>,
    _admin: Admin,
    Paged(page): Paged,
) -> Answer<Json<VendorsBody>> {
    let listed = app.vouchers().vendors(page).await?;
    let vendors = listed.items.into_iter().map(Into::into).collect();
    Ok(Json(VendorsBody { vendors, next_cursor: next_cursor(listed.next) }))
}

/// A new client.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct ClientRequest {
    /// 1 to 100 characters; no two differ only in case.
    #[garde(length(chars, min = 1, max = 100), custom(tidy))]
    name: String,
    #[serde(flatten)]
    #[garde(dive)]
    terms: ClientTerms,
}

/// What may be changed of a client.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ClientTerms {
    /// Accounts that may order for it and see its codes.
    #[serde(default)]
    #[garde(length(max = IDS_MAX))]
    members: Vec<String>,
    /// Vendors whose vouchers it does not take.
    #[serde(default)]
    #[garde(length(max = IDS_MAX))]
    refuses: Vec<String>,
    /// It takes no voucher that expires in fewer days. Without it: as the service is configured.
    #[serde(default)]
    #[garde(range(max = 3650))]
    validity_days_min: Option<u32>,
}

/// A client.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ClientBody {
    id: String,
    name: String,
    members: Vec<String>,
    refuses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validity_days_min: Option<u32>,
    created_at: DateTime<Utc>,
}

impl From<Client> for ClientBody {
    fn from(client: Client) -> Self {
        Self {
            id: client.id.to_string(),
            name: client.name,
            members: client.members.iter().map(ToString::to_string).collect(),
            refuses: client.refuses.iter().map(ToString::to_string).collect(),
            validity_days_min: client.validity_days_min,
            created_at: client.created_at,
        }
    }
}

/// Clients.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ClientsBody {
    clients: Vec<ClientBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn client(id: ClientId, name: String, terms: &ClientTerms, created_at: DateTime<Utc>) -> Result<Client> {
    let (members, refuses) = (ids("members", &terms.members)?, ids("refuses", &terms.refuses)?);
    Ok(Client { id, name, members, refuses, validity_days_min: terms.validity_days_min, created_at })
}

/// Enters a client: somebody for whom vouchers are kept and ordered.
#[utoipa::path(post, path = "/api/admin/vouchers/clients", tag = "vouchers", request_body = ClientRequest, responses(
    (status = 201, description = "Entered", body = ClientBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 409, description = "name_taken", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn enter_client(
    State(app): State<AppState>,
    _admin: Admin,
    ValidJson(request): ValidJson<ClientRequest>,
) -> Answer<(StatusCode, Json<ClientBody>)> {
    let (id, created_at) = app.vouchers().stamp();
    let client = client(ClientId::from_bytes(id), request.name, &request.terms, created_at)?;
    Ok((StatusCode::CREATED, Json(app.vouchers().enter_client(client).await?.into())))
}

/// Clients, oldest first.
#[utoipa::path(get, path = "/api/admin/vouchers/clients", tag = "vouchers", params(PageQuery), responses(
    (status = 200, description = "A page of them", body = ClientsBody),
    (status = 400, description = "A paging parameter breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_clients(
    State(app): State<AppState>,
    _admin: Admin,
    Paged(page): Paged,
) -> Answer<Json<ClientsBody>> {
    let listed = app.vouchers().clients(page).await?;
    let clients = listed.items.into_iter().map(Into::into).collect();
    Ok(Json(ClientsBody { clients, next_cursor: next_cursor(listed.next) }))
}

/// Changes who may order for a client, and what it takes.
#[utoipa::path(put, path = "/api/admin/vouchers/clients/{clientId}", tag = "vouchers", request_body = ClientTerms,
    params(("clientId" = String, Path, description = "Client id")), responses(
    (status = 200, description = "Changed", body = ClientBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such client", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn change_client(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
    ValidJson(terms): ValidJson<ClientTerms>,
) -> Answer<Json<ClientBody>> {
    let before = app.vouchers().client(path_id(&id, NO_CLIENT)?).await?;
    let client = client(before.id, before.name, &terms, before.created_at)?;
    Ok(Json(app.vouchers().change_client(client).await?.into()))
}

/// A new product of vouchers.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct VoucherProductRequest {
    /// 1 to 100 characters; no two differ only in case.
    #[garde(length(chars, min = 1, max = 100), custom(tidy))]
    name: String,
    /// ISO 4217.
    #[garde(length(equal = 3))]
    currency: String,
    /// What its vouchers can be worth, such as "25.00".
    #[garde(length(min = 1, max = IDS_MAX))]
    denominations: Vec<String>,
    /// Who issues it.
    #[garde(length(min = 1, max = IDS_MAX))]
    vendors: Vec<String>,
}

/// A product of vouchers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VoucherProductBody {
    id: String,
    name: String,
    currency: String,
    denominations: Vec<String>,
    vendors: Vec<String>,
    created_at: DateTime<Utc>,
}

impl From<VoucherProduct> for VoucherProductBody {
    fn from(product: VoucherProduct) -> Self {
        let worth = |minor: &i64| denomination_text(Money { minor: *minor, currency: product.currency });
        Self {
            id: product.id.to_string(),
            currency: product.currency.code().to_owned(),
            denominations: product.denominations.iter().map(worth).collect(),
            vendors: product.vendors.iter().map(ToString::to_string).collect(),
            name: product.name,
            created_at: product.created_at,
        }
    }
}

/// Products of vouchers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VoucherProductsBody {
    products: Vec<VoucherProductBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Enters a product of vouchers.
#[utoipa::path(post, path = "/api/admin/vouchers/products", tag = "vouchers", request_body = VoucherProductRequest,
    responses(
    (status = 201, description = "Entered", body = VoucherProductBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 409, description = "name_taken", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn enter_voucher_product(
    State(app): State<AppState>,
    _admin: Admin,
    ValidJson(request): ValidJson<VoucherProductRequest>,
) -> Answer<(StatusCode, Json<VoucherProductBody>)> {
    let currency = currency(&request.currency).ok_or_else(|| Error::invalid("currency", "must be an ISO 4217 code"))?;
    let mut denominations = Vec::new();
    for (index, text) in request.denominations.iter().enumerate() {
        let worth = Money::parse_price(text, currency)
            .map_err(|error| Error::invalid(&format!("denominations[{index}]"), error.to_string()))?;
        if denominations.contains(&worth.minor) {
            return Err(Error::invalid(&format!("denominations[{index}]"), "is there twice").into());
        }
        denominations.push(worth.minor);
    }
    let vendors = ids("vendors", &request.vendors)?;
    let (id, created_at) = app.vouchers().stamp();
    let id = VoucherProductId::from_bytes(id);
    let product = VoucherProduct { id, name: request.name, currency, denominations, vendors, created_at };
    Ok((StatusCode::CREATED, Json(app.vouchers().enter_product(product).await?.into())))
}

/// Products of vouchers, oldest first.
#[utoipa::path(get, path = "/api/admin/vouchers/products", tag = "vouchers", params(PageQuery), responses(
    (status = 200, description = "A page of them", body = VoucherProductsBody),
    (status = 400, description = "A paging parameter breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_voucher_products(
    State(app): State<AppState>,
    _admin: Admin,
    Paged(page): Paged,
) -> Answer<Json<VoucherProductsBody>> {
    let listed = app.vouchers().products(page).await?;
    let products = listed.items.into_iter().map(Into::into).collect();
    Ok(Json(VoucherProductsBody { products, next_cursor: next_cursor(listed.next) }))
}
