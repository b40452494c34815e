//! The OpenAPI document, generated from the routes themselves. `openapi.yaml` is its checked-in copy.

use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};

pub(super) use super::extract::PageQuery;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Orbit",
        description = "Flash sales that never sell a unit twice. Errors are `{error, code, requestId}`, some with more fields; `code` is stable.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "auth", description = "Accounts and sessions"),
        (name = "buyer", description = "Browsing and buying"),
        (name = "seller", description = "Preparing and running a sale"),
        (name = "admin", description = "Reviewing sellers, blocking accounts"),
        (name = "payment", description = "For the payment gateway"),
        (name = "health", description = "For load balancers and operators")
    ),
    security(("cookie" = []), ("bearer" = [])),
    modifiers(&Security)
)]
pub(super) struct Document;

struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("token")));
        components.add_security_scheme("cookie", cookie);
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

/// The document as YAML, as it is checked in.
///
/// # Errors
/// When it cannot be written as YAML, which is a bug.
pub fn yaml() -> crate::error::Result<String> {
    super::router::document().to_yaml().map_err(|error| crate::error::Error::internal("writing openapi.yaml", error))
}
