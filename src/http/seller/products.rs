//! An event's products.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::voucher_offer::{self, VoucherOfferBody};
use crate::app::AppState;
use crate::catalogue::{ProductDraft, ProductEdit};
use crate::domain::ids::ProductId;
use crate::domain::money::{self, Money};
use crate::domain::product::{PER_BUYER_LIMIT_MAX, Product, UNITS_MAX};
use crate::error::{Code, Error};
use crate::http::auth::MessageBody;
use crate::http::extract::{Fields, Form, OwnedEvent, Paged, Path, next_cursor, path_id};
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::ITEMS_MAX;

const TITLE_CHARS: std::ops::RangeInclusive<usize> = 2..=100;
const DESCRIPTION_CHARS: std::ops::RangeInclusive<usize> = 10..=500;
const UNKNOWN: &str = "product not found";

/// The part of the path that [`OwnedEvent`] does not read.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct ProductPath {
    #[serde(rename = "productId")]
    pub(super) product: String,
}

/// A product, for its seller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProductItem {
    id: String,
    seller_id: String,
    event_id: String,
    title: String,
    description: String,
    /// Major units.
    #[schema(value_type = f64)]
    price: serde_json::Number,
    price_minor: i64,
    /// ISO 4217.
    currency: &'static str,
    /// Units for sale.
    frequency: u32,
    per_buyer_limit: u32,
    /// Present if its units are vouchers.
    #[serde(skip_serializing_if = "Option::is_none")]
    voucher: Option<VoucherOfferBody>,
    image: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Product> for ProductItem {
    fn from(product: Product) -> Self {
        Self {
            id: product.id.to_string(),
            seller_id: product.seller.to_string(),
            event_id: product.event.to_string(),
            title: product.title,
            description: product.description,
            price: product.price.major_number(),
            price_minor: product.price.minor,
            currency: product.price.currency.code(),
            frequency: product.units,
            per_buyer_limit: product.per_buyer_limit,
            voucher: product.voucher.map(Into::into),
            image: product.image_url,
            created_at: product.created_at,
            updated_at: product.updated_at,
        }
    }
}

/// A product's form.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents the form")]
pub(in crate::http) struct ProductForm {
    /// 2 to 100 characters.
    title: String,
    /// 10 to 500 characters.
    description: String,
    /// Major units, above 0, no finer than the currency.
    price: f64,
    /// Units for sale, from 1.
    frequency: u32,
    /// ISO 4217; the server's default if it is left out.
    currency: Option<String>,
    /// Units that one buyer may reserve; 1 if it is left out.
    #[schema(rename = "perBuyerLimit")]
    per_buyer_limit: Option<u32>,
    /// If its units are vouchers: of what. They are taken from what is kept for the client for which the seller may order;
    /// the sale opens if that has one for each unit. It cannot be changed afterwards.
    #[schema(rename = "voucherProductId")]
    voucher_product_id: Option<String>,
    /// And worth what, such as "25.00".
    #[schema(rename = "voucherDenomination")]
    voucher_denomination: Option<String>,
    /// And issued by whom: ids with commas between them; any that issues them if it is left out.
    #[schema(rename = "voucherVendorIds")]
    voucher_vendor_ids: Option<String>,
    /// JPEG or PNG, at most 4 MiB and 5000x5000.
    #[schema(format = Binary, value_type = String)]
    image: Vec<u8>,
}

/// A new product.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ProductCreatedBody {
    message: &'static str,
    product_id: String,
}

/// Adds a product to an event whose sale has not been opened.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/registerProducts", tag = "seller",
    request_body(content = ProductForm, content_type = "multipart/form-data"),
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 201, description = "Added", body = ProductCreatedBody),
    (status = 400, description = "A field breaks a rule, or the image is not acceptable", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller; or units are to be vouchers, and the seller orders for no client", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The sale has been opened", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not a form", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn register_product(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    mut form: Form,
) -> Answer<(StatusCode, Json<ProductCreatedBody>)> {
    let image = form.take_file("image");
    let mut fields = form.fields();
    let edit = read_fields(&mut fields, &app.config().catalogue.currency);
    let title = fields.require("title", edit.title);
    let description = fields.require("description", edit.description);
    let price = fields.require("price", edit.price);
    let units = fields.require("frequency", edit.units);
    let voucher = voucher_offer::read(&mut fields);
    if voucher.is_some() {
        check_limit(&mut fields, edit.per_buyer_limit);
    }
    fields.finish()?;
    let image = image.ok_or_else(|| Error::refused(Code::ImageRejected, "product image is required"))?;
    let (Some(title), Some(description), Some(price), Some(units)) = (title, description, price, units) else {
        return Err(Error::invalid("title", "is required").into());
    };
    let per_buyer_limit = edit.per_buyer_limit.unwrap_or(1);
    let voucher = match voucher {
        Some(sent) => Some(voucher_offer::resolve(&app, event.seller, sent).await?),
        None => None,
    };
    let draft = ProductDraft { title, description, price, units, per_buyer_limit, voucher, image };
    let id = app.catalogue().add_product(&event, draft).await?;
    let body = ProductCreatedBody { message: "product registered successfully", product_id: id.to_string() };
    Ok((StatusCode::CREATED, Json(body)))
}

fn read_fields(fields: &mut Fields<'_>, default_currency: &str) -> ProductEdit {
    let given = fields.parse("currency", |code| money::currency(code).ok_or("must be an ISO 4217 code such as INR"));
    let currency = given.or_else(|| money::currency(default_currency));
    let price = fields.parse("price", |text| match currency {
        Some(currency) => Money::parse_price(text, currency).map_err(|error| error.to_string()),
        None => Err("has no currency".to_owned()),
    });
    // The same number in another currency is another price: it must be said.
    let price = if given.is_some() { fields.require("price", price) } else { price };
    ProductEdit {
        title: fields.text("title", TITLE_CHARS),
        description: fields.text("description", DESCRIPTION_CHARS),
        price,
        units: fields.parse("frequency", |text| count(text, UNITS_MAX)),
        per_buyer_limit: fields.parse("perBuyerLimit", |text| count(text, PER_BUYER_LIMIT_MAX)),
        image: None,
    }
}

/// The vouchers of a reservation are allocated together.
fn check_limit(fields: &mut Fields<'_>, limit: Option<u32>) {
    if limit.is_some_and(|limit| limit as usize > ITEMS_MAX) {
        fields.broken("perBuyerLimit", format!("is at most {ITEMS_MAX} for vouchers"));
    }
}

fn count(text: &str, max: u32) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(count) if (1..=max).contains(&count) => Ok(count),
        _ => Err(format!("must be a whole number from 1 to {max}")),
    }
}

/// An event's products.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ProductsBody {
    products: Vec<ProductItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists an event's products, oldest first.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/getProducts", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Products", body = ProductsBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_products(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Paged(page): Paged,
) -> Answer<Json<ProductsBody>> {
    let listed = app.catalogue().products_of(event.id, page).await?;
    let products = listed.items.into_iter().map(ProductItem::from).collect();
    Ok(Json(ProductsBody { products, next_cursor: next_cursor(listed.next) }))
}

/// One product.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ProductBody {
    product: ProductItem,
}

/// Shows one product of an event.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/getProduct/{productId}", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "The product", body = ProductBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The event has no such product", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_product(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Path(path): Path<ProductPath>,
) -> Answer<Json<ProductBody>> {
    let id: ProductId = path_id(&path.product, UNKNOWN)?;
    Ok(Json(ProductBody { product: app.catalogue().product(event.id, id).await?.into() }))
}

/// Changes a product of an event whose sale has not been opened. Fields that are left out stay as they are.
#[utoipa::path(put, path = "/api/seller/events/{eventId}/updateProduct/{productId}", tag = "seller",
    request_body(content = ProductForm, content_type = "multipart/form-data", description = "Every field is optional"),
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "Changed", body = MessageBody),
    (status = 400, description = "A field breaks a rule, or there is none", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The event has no such product", body = ProblemBody),
    (status = 409, description = "The sale has been opened", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not a form or JSON", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn update_product(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Path(path): Path<ProductPath>,
    mut form: Form,
) -> Answer<Json<MessageBody>> {
    let id: ProductId = path_id(&path.product, UNKNOWN)?;
    let image = form.take_file("image");
    // A price without a currency is in the product's own.
    let product = app.catalogue().product(event.id, id).await?;
    let mut fields = form.fields();
    let edit = read_fields(&mut fields, product.price.currency.code());
    if product.voucher.is_some() {
        check_limit(&mut fields, edit.per_buyer_limit);
    }
    if voucher_offer::read(&mut fields).is_some() {
        let message = "cannot be changed: delete the product and add it anew";
        fields.broken(voucher_offer::FIELDS[0], message.to_owned());
    }
    fields.finish()?;
    let edit = ProductEdit { image, ..edit };
    let nothing = edit.title.is_none()
        && edit.description.is_none()
        && edit.price.is_none()
        && edit.units.is_none()
        && edit.per_buyer_limit.is_none()
        && edit.image.is_none();
    if nothing {
        return Err(Error::refused(Code::ValidationFailed, "no fields provided for update").into());
    }
    app.catalogue().edit_product(&event, id, edit).await?;
    Ok(Json(MessageBody { message: "product updated successfully" }))
}

/// Deletes a product: before its sale is opened, or after it is settled. Its orders stay.
#[utoipa::path(delete, path = "/api/seller/events/{eventId}/deleteProduct/{productId}", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), ("productId" = String, Path, description = "Product id")),
    responses(
    (status = 200, description = "Deleted", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The event has no such product", body = ProblemBody),
    (status = 409, description = "The sale is open, or not settled yet", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn delete_product(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    Path(path): Path<ProductPath>,
) -> Answer<Json<MessageBody>> {
    let id: ProductId = path_id(&path.product, UNKNOWN)?;
    app.catalogue().delete_product(&event, id).await?;
    Ok(Json(MessageBody { message: "product deleted successfully" }))
}
