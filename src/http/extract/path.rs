//! Ids in paths: parsed before any store is touched.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::app::AppState;
use crate::domain::ids::ProductId;
use crate::domain::voucher::{Unit, UnitId, VoucherProduct};
use crate::error::{Code, Error};
use crate::http::problem::Problem;

/// Path parameters. axum's own extractor answers in plain text when one is not UTF-8; such a name names nothing.
#[derive(Debug)]
pub(in crate::http) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, app).await {
            Ok(axum::extract::Path(params)) => Ok(Self(params)),
            Err(_) => Err(Error::not_found("there is nothing of this name").into()),
        }
    }
}

/// The path parameter of this name; empty if there is none or it is no text.
pub(in crate::http) async fn path_text(parts: &mut Parts, app: &AppState, name: &str) -> String {
    let params = RawPathParams::from_request_parts(parts, app).await;
    params
        .ok()
        .and_then(|params| params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()))
        .unwrap_or_default()
}

/// The product of the path parameter `productId`, read before a body is.
#[derive(Debug)]
pub(in crate::http) struct NamedProduct(pub ProductId);

impl FromRequestParts<AppState> for NamedProduct {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let text = path_text(parts, app, "productId").await;
        let unknown = |_| Error::refused(Code::ProductNotFound, "product not found");
        Ok(Self(text.parse().map_err(unknown)?))
    }
}

/// The product of vouchers of the path parameter `productId`, read before a body is.
#[derive(Debug)]
pub(in crate::http) struct NamedVoucherProduct(pub VoucherProduct);

impl FromRequestParts<AppState> for NamedVoucherProduct {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let id = path_id(&path_text(parts, app, "productId").await, "voucher product not found")?;
        Ok(Self(app.vouchers().product(id).await?))
    }
}

/// The unit of vouchers of the path parameter `unitId`, read before a body is.
#[derive(Debug)]
pub(in crate::http) struct NamedUnit(pub Unit);

impl FromRequestParts<AppState> for NamedUnit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let number = path_text(parts, app, "unitId").await.parse();
        let id = number.map(UnitId::new).map_err(|_| Error::not_found("voucher unit not found"))?;
        Ok(Self(app.vouchers().unit(id).await?))
    }
}

/// An id from its text; what cannot be an id names nothing.
pub(in crate::http) fn path_id<T: FromStr>(text: &str, unknown: &'static str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::not_found(unknown))
}
