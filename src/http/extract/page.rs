//! Paging: `?limit=` and `?cursor=`. Without a limit a list is whole, up to the configured cap.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::AppState;
use crate::domain::page::{Cursor, Page};
use crate::error::Error;
use crate::http::problem::Problem;

/// Which rows of a list.
pub(in crate::http) struct Paged(pub Page);

/// Paging parameters.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// At most this many items; without it the list is whole up to the server's cap.
    limit: Option<String>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

impl FromRequestParts<AppState> for Paged {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let cap = app.config().server.list_items_max;
        let Query(query) = Query::<PageQuery>::from_request_parts(parts, app)
            .await
            .map_err(|_| Error::invalid("limit", "the query cannot be read"))?;
        let limit = match query.limit {
            None => cap,
            Some(text) => match text.parse::<u32>() {
                Ok(limit) if (1..=cap).contains(&limit) => limit,
                _ => return Err(Error::invalid("limit", format!("must be a number from 1 to {cap}")).into()),
            },
        };
        let after = match query.cursor.filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(
                text.parse::<Cursor>().map_err(|_| Error::invalid("cursor", "must be a nextCursor that we gave"))?,
            ),
        };
        Ok(Self(Page { limit, after }))
    }
}

/// The text of `nextCursor`.
pub(in crate::http) fn next_cursor(next: Option<Cursor>) -> Option<String> {
    next.map(|cursor| cursor.to_string())
}
