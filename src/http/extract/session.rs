//! Sessions: the role is in the handler's signature.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum_extra::extract::CookieJar;

use crate::app::AppState;
use crate::auth::token::Claims;
use crate::domain::account::{Role, Standing};
use crate::domain::ids::UserId;
use crate::error::{Code, Error};
use crate::http::problem::Problem;

/// The session cookie's name, which existing clients read.
pub(in crate::http) const COOKIE: &str = "token";

/// Anybody who is signed in.
#[derive(Debug)]
pub(in crate::http) struct Session {
    pub claims: Claims,
    /// What the account may do at this moment.
    pub standing: Standing,
}

impl Session {
    pub const fn user(&self) -> UserId {
        self.claims.user
    }

    fn require(self, role: Role, refusal: &'static str) -> Result<Self, Problem> {
        if self.standing.role == role { Ok(self) } else { Err(Error::refused(Code::RoleRequired, refusal).into()) }
    }
}

impl FromRequestParts<AppState> for Session {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let bearer = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")))
            .map(str::trim)
            .map(ToOwned::to_owned);
        let token = bearer
            .or_else(|| CookieJar::from_headers(&parts.headers).get(COOKIE).map(|cookie| cookie.value().to_owned()));
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Err(Error::refused(Code::Unauthenticated, "Token is not present").into());
        };
        let (claims, standing) = app.accounts().session(&token)?;
        Ok(Self { claims, standing })
    }
}

macro_rules! role {
    ($(#[$doc:meta])* $name:ident, $role:expr, $refusal:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(in crate::http) struct $name(pub Session);

        impl FromRequestParts<AppState> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
                Session::from_request_parts(parts, app).await?.require($role, $refusal).map(Self)
            }
        }
    };
}

role!(
    /// A buyer.
    Buyer, Role::Buyer, "buyer access required"
);
role!(
    /// A seller, approved or not: an unapproved one may prepare, but not open a sale.
    Seller, Role::Seller, "Seller access required"
);
role!(
    /// An administrator.
    Admin, Role::Admin, "admin access required"
);
