//! Those who may order vouchers for a client: whoever may not is refused before a body is read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::Session;
use crate::app::AppState;
use crate::domain::ids::UserId;
use crate::domain::voucher::Client;
use crate::http::problem::Problem;

/// Somebody who may order for a client, and the client.
#[derive(Debug)]
pub(in crate::http) struct Member {
    pub user: UserId,
    pub client: Client,
}

impl FromRequestParts<AppState> for Member {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let user = Session::from_request_parts(parts, app).await?.user();
        Ok(Self { user, client: app.vouchers().client_of(user).await? })
    }
}
