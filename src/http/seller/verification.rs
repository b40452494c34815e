//! A seller's own verification.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::verification::BusinessDetails;
use crate::error::{Code, Error};
use crate::http::auth::MessageBody;
use crate::http::extract::{Seller, ValidJson};
use crate::http::problem::{Answer, Problem, ProblemBody};

/// Whether the seller may open sales.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct VerifiedBody {
    verified: bool,
    message: &'static str,
}

/// Says whether the seller is approved. A 403 carries `next_allowed_date`: null, or when another request is accepted.
#[utoipa::path(get, path = "/api/seller/isVerified", tag = "seller", responses(
    (status = 200, description = "Approved", body = VerifiedBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller, or not approved", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn is_verified(
    State(app): State<AppState>,
    Seller(session): Seller,
) -> Answer<Json<VerifiedBody>> {
    let account = app.accounts().account(session.user()).await?;
    if account.standing.approved {
        return Ok(Json(VerifiedBody { verified: true, message: "Seller is Verified" }));
    }
    let next: Option<DateTime<Utc>> = account.next_request_at;
    let next = serde_json::to_value(next).unwrap_or_default();
    Err(Problem::from(Error::refused(Code::NotApproved, "seller is not verified")).with("next_allowed_date", next))
}

/// What a seller tells about the business.
#[derive(Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(in crate::http) struct VerificationRequest {
    #[garde(length(chars, min = 1, max = 200))]
    company_name: String,
    #[garde(length(chars, min = 1, max = 50))]
    gstin: String,
    #[garde(length(chars, min = 1, max = 200))]
    account_holder_name: String,
    #[garde(length(chars, min = 1, max = 50))]
    account_number: String,
    #[garde(length(chars, min = 1, max = 50))]
    ifsc_code: String,
    #[garde(length(chars, min = 1, max = 200))]
    bank_name: String,
}

/// Asks an administrator for approval.
#[utoipa::path(post, path = "/api/seller/verify", tag = "seller", request_body = VerificationRequest, responses(
    (status = 200, description = "The request waits for review", body = MessageBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 409, description = "A request waits or was approved", body = ProblemBody),
    (status = 429, description = "The last request was rejected a short while ago", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn request_verification(
    State(app): State<AppState>,
    Seller(session): Seller,
    ValidJson(request): ValidJson<VerificationRequest>,
) -> Answer<Json<MessageBody>> {
    let details = BusinessDetails {
        company_name: request.company_name,
        gstin: request.gstin,
        account_holder_name: request.account_holder_name,
        account_number: request.account_number,
        ifsc_code: request.ifsc_code,
        bank_name: request.bank_name,
    };
    app.accounts().request_verification(session.user(), details).await?;
    Ok(Json(MessageBody { message: "Seller verification request submitted successfully" }))
}
