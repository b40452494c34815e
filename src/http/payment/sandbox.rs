//! The sandbox's page: a Pay and a Fail button. Routed only where the sandbox is what takes the money.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Html;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::callback::receive;
use crate::app::AppState;
use crate::domain::money::Money;
use crate::error::{Code, Error};
use crate::http::extract::Path;
use crate::http::problem::{Answer, ProblemBody};

const PAGE: &str = include_str!("sandbox.html");
/// The page brings everything along, and sends to nobody but us.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";

/// Shows the page on which a buyer pays in the sandbox. Only where `payment.gateway` is "sandbox".
#[utoipa::path(get, path = "/api/sandbox/pay/{intentId}", tag = "payment", security(()),
    params(("intentId" = String, Path, description = "The payment's name, as `pay` told it")), responses(
    (status = 200, description = "The page", body = String, content_type = "text/html"),
    (status = 404, description = "No such payment, or no sandbox", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_sandbox(
    State(app): State<AppState>,
    Path(id): Path<String>,
) -> Answer<([(HeaderName, HeaderValue); 1], Html<String>)> {
    let sandbox = app.payments().sandbox().ok_or_else(no_sandbox)?;
    let shown = sandbox.shown(&id).await?;
    // A number, a code and one of three words: nothing that a page could stumble over.
    let page = PAGE
        .replace("{amount}", &Money::major_number(shown.amount).to_string())
        .replace("{currency}", shown.amount.currency.code())
        .replace("{state}", shown.state.as_str());
    let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(([policy], Html(page)))
}

/// Which button.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(in crate::http) struct PressQuery {
    /// succeeded (the default) or failed.
    outcome: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PressBody {
    intent_id: String,
    /// What became of the callback that followed: applied, before or ignored.
    outcome: &'static str,
}

/// Pays in the sandbox, or lets it fail: the callback that follows is signed and verified as a real one. Only where
/// `payment.gateway` is "sandbox".
#[utoipa::path(post, path = "/api/sandbox/pay/{intentId}", tag = "payment", security(()),
    params(("intentId" = String, Path, description = "The payment's name, as `pay` told it"), PressQuery), responses(
    (status = 200, description = "Paid, or failed", body = PressBody),
    (status = 400, description = "Another outcome than these two", body = ProblemBody),
    (status = 404, description = "No such payment, or no sandbox", body = ProblemBody),
    (status = 503, description = "A store is away: press again", body = ProblemBody)))]
pub(in crate::http) async fn press_sandbox(
    State(app): State<AppState>,
    Path(id): Path<String>,
    query: Result<Query<PressQuery>, QueryRejection>,
) -> Answer<Json<PressBody>> {
    let outcome = query.map(|Query(query)| query.outcome);
    let pays = match outcome.as_ref().map(Option::as_deref) {
        Ok(None | Some("succeeded")) => true,
        Ok(Some("failed")) => false,
        Ok(Some(_)) | Err(_) => return Err(Error::invalid("outcome", "must be succeeded or failed").into()),
    };
    let sandbox = app.payments().sandbox().ok_or_else(no_sandbox)?;
    let callback = sandbox.press(&id, pays, app.clock().now()).await?;
    let received = receive(&app, callback.headers, callback.body).await?;
    Ok(Json(PressBody { intent_id: id, outcome: received.as_str() }))
}

fn no_sandbox() -> Error {
    Error::refused(Code::RouteNotFound, "there is no such route")
}
