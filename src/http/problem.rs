//! The one place where an [`Error`] becomes a status and a body, and where a failure is logged.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::layer::RequestId;
use crate::error::{Code, Error};

/// What a handler returns.
pub type Answer<T> = Result<T, Problem>;

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// A sentence for people. Stable for the errors that existing clients compare.
    error: String,
    /// The machine-readable reason.
    code: &'static str,
    /// Quote it when you ask for help: the log has it.
    #[serde(rename = "requestId")]
    request_id: String,
    /// Broken rules, for `validation_failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<Field>>,
    /// Further fields of this kind of error.
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// One broken rule.
#[derive(Debug, Serialize, ToSchema)]
struct Field {
    /// The field as the caller spelled it.
    field: String,
    /// The rule.
    message: String,
}

/// An error on its way out, with fields of its own.
#[derive(Debug)]
pub struct Problem {
    error: Error,
    more: Map<String, Value>,
}

impl Problem {
    /// Adds a field to the body.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut more = Map::new();
        match &error {
            Error::Transition { current, attempted } => {
                more.insert("currentStatus".to_owned(), current.as_str().into());
                more.insert("attemptedAction".to_owned(), attempted.as_str().into());
            }
            Error::Decided { current, .. } => {
                more.insert("currentStatus".to_owned(), (*current).into());
            }
            // Role errors have always carried their sentence as "message".
            Error::Refused { code: Code::RoleRequired, message } => {
                more.insert("message".to_owned(), message.clone().into());
            }
            _ => {}
        }
        Self { error, more }
    }
}

/// The table. A code without a row does not compile.
#[must_use]
pub const fn status(code: Code) -> StatusCode {
    match code {
        Code::ValidationFailed | Code::MalformedBody | Code::MalformedId | Code::ImageRejected | Code::BadSignature => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated | Code::SessionExpired | Code::BadCredentials => StatusCode::UNAUTHORIZED,
        Code::RoleRequired | Code::AccountInactive | Code::NotApproved | Code::CrossSite => StatusCode::FORBIDDEN,
        Code::RouteNotFound | Code::NotFound | Code::ProductNotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::EmailTaken
        | Code::SoldOut
        | Code::AlreadyBooked
        | Code::SaleNotActive
        | Code::LimitReached
        | Code::IdempotencyInProgress
        | Code::CancellationClosed
        | Code::NothingToReturn
        | Code::RestockRefused
        | Code::WebhookLimitReached
        | Code::WebhookDisabled
        | Code::PaymentsOff
        | Code::PriceNotChargeable
        | Code::NothingToPay
        | Code::ReservationExpired
        | Code::TransitionRefused
        | Code::OpeningInProgress
        | Code::LiveStateLost
        | Code::SaleHeld
        | Code::EndsAtPassed
        | Code::NoProducts
        | Code::CatalogueFrozen
        | Code::SettlementIncomplete
        | Code::VerificationExists
        | Code::VerificationDecided
        | Code::VouchersShort
        | Code::VoucherState
        | Code::CodeShown
        | Code::NameTaken
        | Code::ReferenceReused => StatusCode::CONFLICT,
        Code::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::LiveStoreUnsafe
        | Code::DatabaseUnsafe
        | Code::DeadlineExceeded
        | Code::LiveStoreUnavailable
        | Code::LiveRecordDamaged
        | Code::DatabaseUnavailable
        | Code::MediaUnavailable
        | Code::PaymentGatewayUnavailable
        | Code::VendorUnavailable
        | Code::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A problem waiting for its request id; [`finish`] writes the body.
#[derive(Debug, Clone)]
struct Pending(std::sync::Arc<Problem>);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = status(self.error.code()).into_response();
        response.extensions_mut().insert(Pending(std::sync::Arc::new(self)));
        response
    }
}

/// Writes the body of a problem and logs it, once, with the request id.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_default();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    written(next.run(request).await, &id, &method, &path)
}

/// The response with its problem, if it is one, as a body.
pub(super) fn written(response: Response, id: &RequestId, method: &Method, path: &str) -> Response {
    let Some(Pending(problem)) = response.extensions().get::<Pending>().cloned() else { return response };
    let (error, status) = (&problem.error, response.status());
    if status == StatusCode::SERVICE_UNAVAILABLE {
        // Somebody else's outage, or our own queues being full: many at once, and the metrics count them.
        tracing::warn!(request_id = %id, %method, path, code = error.code().as_str(), cause = %error.chain(), "request failed");
    } else if status.is_server_error() {
        tracing::error!(request_id = %id, %method, path, code = error.code().as_str(), cause = %error.chain(), "request failed");
    } else {
        tracing::debug!(request_id = %id, %method, path, code = error.code().as_str(), "request refused");
    }
    let fields = match error {
        Error::Invalid { fields } => {
            Some(fields.iter().map(|f| Field { field: f.field.clone(), message: f.message.clone() }).collect())
        }
        _ => None,
    };
    let body = ProblemBody {
        error: error.public_message().into_owned(),
        code: error.code().as_str(),
        request_id: id.to_string(),
        fields,
        more: problem.more.clone(),
    };
    let mut answer = (status, Json(body)).into_response();
    // Headers that inner layers set (CORS, Allow) stay.
    for (name, value) in response.headers() {
        if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
            answer.headers_mut().append(name, value.clone());
        }
    }
    if let Some(seconds) = retry_after_s(error, status) {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

fn retry_after_s(error: &Error, status: StatusCode) -> Option<u64> {
    match error {
        Error::TooMany { retry_after_s, .. } => Some(*retry_after_s),
        _ if status == StatusCode::SERVICE_UNAVAILABLE => Some(1),
        _ => None,
    }
}
