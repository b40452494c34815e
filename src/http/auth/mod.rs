//! `/api/auth`: sign-up, sign-in, sign-out, and who am I.

mod session;
mod signup;

pub(super) use session::*;
pub(super) use signup::*;

use axum::Json;
use axum::http::StatusCode;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use serde::Serialize;
use utoipa::ToSchema;

use super::problem::Answer;
use crate::accounts::Signed;
use crate::app::AppState;
use crate::domain::account::Account;

/// An account as sign-up and sign-in show it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UserBody {
    #[serde(rename = "_id")]
    id: String,
    #[serde(rename = "firstName")]
    first_name: String,
    #[serde(rename = "lastName", skip_serializing_if = "Option::is_none")]
    last_name: Option<String>,
    #[serde(rename = "emailId")]
    email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<i32>,
    role: &'static str,
}

impl From<&Account> for UserBody {
    fn from(account: &Account) -> Self {
        Self {
            id: account.id.to_string(),
            first_name: account.first_name.clone(),
            last_name: account.last_name.clone(),
            email: account.email.as_str().to_owned(),
            age: account.age,
            role: account.standing.role.as_str(),
        }
    }
}

/// Somebody who just signed in; the session is in the `token` cookie.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SignedBody {
    message: &'static str,
    user: UserBody,
}

fn signed_in(
    app: &AppState,
    jar: CookieJar,
    status: StatusCode,
    message: &'static str,
    signed: &Signed,
) -> Answer<(StatusCode, CookieJar, Json<SignedBody>)> {
    let cookie = session_cookie(app, signed.token.clone(), signed.ttl_s);
    Ok((status, jar.add(cookie), Json(SignedBody { message, user: UserBody::from(&signed.account) })))
}

/// `Secure` is a setting: a client on plain HTTP would not send a secure cookie back.
fn session_cookie(app: &AppState, value: String, max_age_s: i64) -> Cookie<'static> {
    Cookie::build((super::extract::SESSION_COOKIE, value))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(app.config().auth.cookie_secure)
        .max_age(time::Duration::seconds(max_age_s))
        .build()
}
