//! Sign-up.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum_extra::extract::CookieJar;
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{SignedBody, signed_in};
use crate::accounts::SignUp;
use crate::app::AppState;
use crate::auth::password::PASSWORD_BYTES_MAX;
use crate::domain::account::{EmailAddress, Role};
use crate::error::Error;
use crate::http::extract::{ClientAddress, ValidJson};
use crate::http::problem::{Answer, ProblemBody};

/// What somebody tells to sign up.
#[derive(Deserialize, Validate, ToSchema)]
#[garde(allow_unvalidated)]
pub(in crate::http) struct SignUpRequest {
    /// 3 to 20 characters.
    #[serde(rename = "firstName", default)]
    #[garde(length(chars, min = 3, max = 20))]
    first_name: String,
    /// Empty, or 3 to 20 characters.
    #[serde(rename = "lastName", default)]
    #[garde(custom(empty_or_name))]
    last_name: Option<String>,
    /// One address, one account; case does not matter.
    #[serde(rename = "emailId", default)]
    #[garde(email, length(max = 254))]
    email_id: String,
    /// 0, or 6 to 80.
    #[serde(default)]
    #[garde(custom(zero_or_age))]
    age: Option<i32>,
    /// At least 8 characters, at most 72 bytes.
    #[serde(default)]
    #[schema(value_type = String, format = Password)]
    #[garde(length(bytes, max = PASSWORD_BYTES_MAX))]
    password: String,
    /// `buyer` or `seller`.
    #[serde(default)]
    #[garde(custom(buyer_or_seller))]
    role: String,
}

#[expect(clippy::ref_option, reason = "the validator's signature")]
fn empty_or_name(value: &Option<String>, (): &()) -> garde::Result {
    match value.as_deref().map(|text| text.chars().count()) {
        None | Some(0 | 3..=20) => Ok(()),
        Some(_) => Err(garde::Error::new("must be empty or have 3 to 20 characters")),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the validator's signature")]
fn zero_or_age(value: &Option<i32>, (): &()) -> garde::Result {
    match value {
        None | Some(0 | 6..=80) => Ok(()),
        Some(_) => Err(garde::Error::new("must be from 6 to 80")),
    }
}

fn buyer_or_seller(value: &str, (): &()) -> garde::Result {
    if matches!(value, "buyer" | "seller") { Ok(()) } else { Err(garde::Error::new("must be buyer or seller")) }
}

/// Makes a buyer's or a seller's account and signs it in.
#[utoipa::path(post, path = "/api/auth/signup", tag = "auth", request_body = SignUpRequest, responses(
    (status = 201, description = "Signed up and signed in; sets the `token` cookie", body = SignedBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 409, description = "The address has an account", body = ProblemBody),
    (status = 429, description = "Too many attempts", body = ProblemBody),
    (status = 503, description = "Too many passwords are being hashed, or the database is away", body = ProblemBody)))]
pub(in crate::http) async fn sign_up(
    State(app): State<AppState>,
    ClientAddress(address): ClientAddress,
    jar: CookieJar,
    ValidJson(request): ValidJson<SignUpRequest>,
) -> Answer<(StatusCode, CookieJar, Json<SignedBody>)> {
    app.limits().address(address)?;
    let chars_min = app.config().auth.password_chars_min;
    if request.password.chars().count() < chars_min {
        return Err(Error::invalid("password", format!("must have at least {chars_min} characters")).into());
    }
    let sign_up = SignUp {
        first_name: request.first_name,
        last_name: request.last_name.filter(|text| !text.is_empty()),
        email: EmailAddress::normalise(&request.email_id),
        age: request.age.filter(|age| *age != 0),
        password: request.password.into(),
        role: if request.role == "seller" { Role::Seller } else { Role::Buyer },
    };
    let signed = app.accounts().sign_up(sign_up).await?;
    signed_in(&app, jar, StatusCode::CREATED, "Register Successfully", &signed)
}
