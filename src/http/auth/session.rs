//! Sign-in, sign-out, check.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum_extra::extract::CookieJar;
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{SignedBody, session_cookie, signed_in};
use crate::app::AppState;
use crate::domain::account::EmailAddress;
use crate::http::extract::{ClientAddress, Session, ValidJson};
use crate::http::problem::{Answer, ProblemBody};

/// Credentials.
#[derive(Deserialize, Validate, ToSchema)]
pub(in crate::http) struct SignInRequest {
    #[serde(rename = "emailId", default)]
    #[garde(email, length(max = 254))]
    email_id: String,
    #[serde(default)]
    #[schema(value_type = String, format = Password)]
    #[garde(length(bytes, min = 1, max = 1024))]
    password: String,
}

/// Signs in.
#[utoipa::path(post, path = "/api/auth/signin", tag = "auth", request_body = SignInRequest, responses(
    (status = 200, description = "Signed in; sets the `token` cookie", body = SignedBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Unknown address or wrong password; it does not say which", body = ProblemBody),
    (status = 403, description = "The account is blocked", body = ProblemBody),
    (status = 429, description = "Too many attempts", body = ProblemBody),
    (status = 503, description = "Too many passwords are being hashed, or the database is away", body = ProblemBody)))]
pub(in crate::http) async fn sign_in(
    State(app): State<AppState>,
    ClientAddress(address): ClientAddress,
    jar: CookieJar,
    ValidJson(request): ValidJson<SignInRequest>,
) -> Answer<(StatusCode, CookieJar, Json<SignedBody>)> {
    app.limits().address(address)?;
    let email = EmailAddress::normalise(&request.email_id);
    app.limits().account(&email)?;
    let signed = app.accounts().sign_in(&email, request.password.into()).await?;
    signed_in(&app, jar, StatusCode::OK, "Sign In Successfully", &signed)
}

/// A sentence.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MessageBody {
    pub message: &'static str,
}

/// Ends this session, on every process, and clears the cookie.
#[utoipa::path(post, path = "/api/auth/signout", tag = "auth", responses(
    (status = 200, description = "Signed out", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody)))]
pub(in crate::http) async fn sign_out(
    State(app): State<AppState>,
    jar: CookieJar,
    session: Session,
) -> Answer<(CookieJar, Json<MessageBody>)> {
    app.accounts().sign_out(&session.claims).await?;
    let gone = session_cookie(&app, String::new(), 0);
    Ok((jar.add(gone), Json(MessageBody { message: "Signed Out Successfully" })))
}

/// The signed-in account.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct CheckBody {
    authenticated: bool,
    message: &'static str,
    user: CheckedUser,
}

/// The signed-in account, from the token and what has changed since.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CheckedUser {
    id: String,
    email_id: String,
    role: &'static str,
    is_email_verified: bool,
    is_active: bool,
    is_approved: bool,
}

/// Says who is signed in. Touches no store.
#[utoipa::path(get, path = "/api/auth/check", tag = "auth", responses(
    (status = 200, description = "Signed in", body = CheckBody),
    (status = 401, description = "Not signed in", body = ProblemBody)))]
pub(in crate::http) async fn check(session: Session) -> Json<CheckBody> {
    Json(CheckBody {
        authenticated: true,
        message: "user is signedin",
        user: CheckedUser {
            id: session.user().to_string(),
            email_id: session.claims.email.as_str().to_owned(),
            role: session.standing.role.as_str(),
            is_email_verified: session.standing.email_verified,
            is_active: session.standing.active,
            is_approved: session.standing.approved,
        },
    })
}
