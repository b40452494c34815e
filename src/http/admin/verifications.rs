//! Sellers' verification requests.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::verification::Verification;
use crate::http::auth::MessageBody;
use crate::http::extract::{Admin, Paged, Path, ValidJson, next_cursor, path_id};
use crate::http::problem::{Answer, ProblemBody};

const UNKNOWN: &str = "verification request not found";

/// A request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct VerificationItem {
    id: String,
    seller_id: String,
    email_id: String,
    company_name: String,
    gstin: String,
    account_holder_name: String,
    /// Whole in the detail; in lists all but the last four characters are masked.
    account_number: String,
    ifsc_code: String,
    bank_name: String,
    /// pending, approved or rejected.
    status: &'static str,
    created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviewed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviewed_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejection_reason: Option<String>,
}

impl From<Verification> for VerificationItem {
    fn from(verification: Verification) -> Self {
        let (details, review) = (verification.details, verification.review);
        Self {
            id: verification.id.to_string(),
            seller_id: verification.seller.to_string(),
            email_id: verification.email.as_str().to_owned(),
            company_name: details.company_name,
            gstin: details.gstin,
            account_holder_name: details.account_holder_name,
            account_number: details.account_number,
            ifsc_code: details.ifsc_code,
            bank_name: details.bank_name,
            status: verification.status.as_str(),
            created_at: verification.created_at,
            reviewed_by: review.as_ref().map(|review| review.reviewed_by.to_string()),
            reviewed_at: review.as_ref().map(|review| review.reviewed_at),
            rejection_reason: review.and_then(|review| review.rejection_reason),
        }
    }
}

/// Requests that wait.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct VerificationsBody {
    verifications: Vec<VerificationItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists the requests that wait, oldest first.
#[utoipa::path(get, path = "/api/admin/verifications/pending", tag = "admin", params(crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Requests", body = VerificationsBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_pending_verifications(
    State(app): State<AppState>,
    _admin: Admin,
    Paged(page): Paged,
) -> Answer<Json<VerificationsBody>> {
    let listed = app.accounts().pending_verifications(page).await?;
    let verifications = listed.items.into_iter().map(VerificationItem::from).collect();
    Ok(Json(VerificationsBody { verifications, next_cursor: next_cursor(listed.next) }))
}

/// One request.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct VerificationBody {
    verification: VerificationItem,
}

/// Shows a request.
#[utoipa::path(get, path = "/api/admin/verifications/{id}", tag = "admin",
    params(("id" = String, Path, description = "Request id")), responses(
    (status = 200, description = "The request", body = VerificationBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such request", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_verification(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
) -> Answer<Json<VerificationBody>> {
    let verification = app.accounts().verification(path_id(&id, UNKNOWN)?).await?;
    Ok(Json(VerificationBody { verification: verification.into() }))
}

/// Approves a request and its seller, who may open sales from now on. Repeating it is no error.
#[utoipa::path(post, path = "/api/admin/verifications/{id}/approve", tag = "admin",
    params(("id" = String, Path, description = "Request id")), responses(
    (status = 200, description = "Approved", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such request", body = ProblemBody),
    (status = 409, description = "It was rejected", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn approve_verification(
    State(app): State<AppState>,
    Admin(session): Admin,
    Path(id): Path<String>,
) -> Answer<Json<MessageBody>> {
    app.accounts().approve(path_id(&id, UNKNOWN)?, session.user()).await?;
    Ok(Json(MessageBody { message: "seller verification approved" }))
}

/// Why a request is rejected.
#[derive(Debug, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct RejectRequest {
    /// 5 to 500 characters.
    #[serde(default)]
    #[garde(length(chars, min = 5, max = 500))]
    reason: String,
}

/// Rejects a request. Repeating it is no error; the first reason stays.
#[utoipa::path(post, path = "/api/admin/verifications/{id}/reject", tag = "admin", request_body = RejectRequest,
    params(("id" = String, Path, description = "Request id")), responses(
    (status = 200, description = "Rejected", body = MessageBody),
    (status = 400, description = "The reason breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such request", body = ProblemBody),
    (status = 409, description = "It was approved", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn reject_verification(
    State(app): State<AppState>,
    Admin(session): Admin,
    Path(id): Path<String>,
    ValidJson(request): ValidJson<RejectRequest>,
) -> Answer<Json<MessageBody>> {
    app.accounts().reject(path_id(&id, UNKNOWN)?, session.user(), request.reason).await?;
    Ok(Json(MessageBody { message: "seller verification rejected" }))
}
