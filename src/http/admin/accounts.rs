//! Blocking and unblocking accounts.

use axum::Json;
use axum::extract::State;

use crate::app::AppState;
use crate::domain::ids::UserId;
use crate::error::{Code, Error};
use crate::http::auth::MessageBody;
use crate::http::extract::{Admin, Path, path_id};
use crate::http::problem::{Answer, ProblemBody};

const UNKNOWN: &str = "account not found";

/// Blocks an account. Its sessions end within a second, on every process.
#[utoipa::path(post, path = "/api/admin/accounts/{id}/block", tag = "admin",
    params(("id" = String, Path, description = "Account id")), responses(
    (status = 200, description = "Blocked", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator, or one's own account", body = ProblemBody),
    (status = 404, description = "No such account", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn block_account(
    State(app): State<AppState>,
    Admin(session): Admin,
    Path(id): Path<String>,
) -> Answer<Json<MessageBody>> {
    let id: UserId = path_id(&id, UNKNOWN)?;
    if id == session.user() {
        return Err(Error::refused(Code::RoleRequired, "another administrator must block this account").into());
    }
    app.accounts().set_active(id, false).await?;
    Ok(Json(MessageBody { message: "account blocked" }))
}

/// Unblocks an account.
#[utoipa::path(post, path = "/api/admin/accounts/{id}/unblock", tag = "admin",
    params(("id" = String, Path, description = "Account id")), responses(
    (status = 200, description = "Unblocked", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such account", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn unblock_account(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
) -> Answer<Json<MessageBody>> {
    app.accounts().set_active(path_id(&id, UNKNOWN)?, true).await?;
    Ok(Json(MessageBody { message: "account unblocked" }))
}
