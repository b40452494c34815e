//! The OpenAPI document, generated from the routes themselves. `openapi.yaml` is its checked-in copy.

use utoipa::OpenApi;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Ref, RefOr, Required};

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
        (name = "vouchers", description = "Codes that were bought before they are sold"),
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

const KEY: &str = "Idempotency-Key";
const KEY_PARAMETER: &str = "IdempotencyKey";
const KEY_RESPONSE: &str = "IdempotencyKeyRefused";

/// Says of every write by somebody who is signed in that it takes a key, unless the route says so itself.
pub(super) fn mention_keys(document: &mut utoipa::openapi::OpenApi) {
    let components = document.components.get_or_insert_default();
    components.parameters.insert(KEY_PARAMETER.to_owned(), key_parameter().into());
    components.responses.insert(KEY_RESPONSE.to_owned(), key_response().into());
    let callers = document.paths.paths.iter_mut().filter(|(path, _)| path.starts_with("/api/"));
    for (_, item) in callers.filter(|(path, _)| !path.starts_with("/api/auth/")) {
        for operation in [&mut item.post, &mut item.put, &mut item.delete].into_iter().flatten() {
            let parameters = operation.parameters.get_or_insert_default();
            if parameters.iter().any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == KEY)) {
                continue;
            }
            parameters.push(RefOr::Ref(Ref::new(format!("#/components/parameters/{KEY_PARAMETER}"))));
            for status in ["400", "409", "422"] {
                let refused = || Ref::from_response_name(KEY_RESPONSE).into();
                operation.responses.responses.entry(status.to_owned()).or_insert_with(refused);
            }
        }
    }
}

fn key_parameter() -> Parameter {
    ParameterBuilder::new()
        .name(KEY)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .schema(Some(Object::with_type(Type::String)))
        .description(Some(
            "At most 128 visible ASCII characters. The same key with the same body gets the first answer again for a day. \
             An answer that says \"not now\" (429, 5xx) is not kept: asking again asks.",
        ))
        .build()
}

fn key_response() -> Response {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemBody"))).build();
    ResponseBuilder::new()
        .description(
            "The Idempotency-Key is malformed (400), its request is still running (409 `idempotency_in_progress`), or it \
             belongs to another request (422 `idempotency_key_reused`)",
        )
        .content("application/json", body)
        .build()
}

/// The document as YAML, as it is checked in.
///
/// # Errors
/// When it cannot be written as YAML, which is a bug.
pub fn yaml() -> crate::error::Result<String> {
    super::router::document().to_yaml().map_err(|error| crate::error::Error::internal("writing openapi.yaml", error))
}
