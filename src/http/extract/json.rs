//! JSON bodies: typed, bounded, validated; every broken rule is reported at once.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use garde::Validate;
use serde::de::DeserializeOwned;

use crate::app::AppState;
use crate::error::{Code, Error, FieldError};
use crate::http::problem::Problem;

/// A body that obeys its type's rules.
pub(in crate::http) struct ValidJson<T>(pub T);

impl<T: DeserializeOwned + Validate<Context = ()>> FromRequest<AppState> for ValidJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        let bytes = json_bytes(request, app).await?;
        Ok(Self(validated(&bytes)?))
    }
}

/// A body that may be absent: empty means the defaults, whatever its content type says.
pub(in crate::http) struct MaybeJson<T>(pub T);

impl<T: DeserializeOwned + Validate<Context = ()> + Default> FromRequest<AppState> for MaybeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        let bytes = body_bytes(request, app).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(T::default()));
        }
        Ok(Self(validated(&bytes)?))
    }
}

async fn json_bytes(request: Request, app: &AppState) -> Result<Bytes, Problem> {
    // Clients of the Go implementation may leave the type away; a form's or text's type is a mistake or a trick.
    if content_type(request.headers()).is_some_and(|kind| kind != "application/json" && !kind.ends_with("+json")) {
        return Err(Error::refused(Code::UnsupportedMediaType, "send application/json").into());
    }
    body_bytes(request, app).await
}

/// The whole body, within the route's limit.
pub(in crate::http) async fn body_bytes(request: Request, app: &AppState) -> Result<Bytes, Problem> {
    Bytes::from_request(request, app).await.map_err(|rejection| {
        if rejection.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
            return Error::refused(Code::TooLarge, "the body is too large").into();
        }
        Error::refused(Code::MalformedBody, "the body did not arrive").into()
    })
}

/// The media type without its parameters, lower-cased.
pub(in crate::http) fn content_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!kind.is_empty()).then_some(kind)
}

fn validated<T: DeserializeOwned + Validate<Context = ()>>(bytes: &[u8]) -> Result<T, Error> {
    let value: T = serde_json::from_slice(bytes).map_err(|error| {
        let message = if bytes.is_empty() {
            "EOF".to_owned()
        } else {
            format!("the body is not the JSON that this route reads: {}", explain(&error))
        };
        Error::refused(Code::MalformedBody, message)
    })?;
    value.validate().map_err(|report| Error::Invalid {
        fields: report
            .iter()
            .map(|(path, error)| FieldError {
                field: wire_name(&path.to_string()),
                message: error.message().to_owned(),
            })
            .collect(),
    })?;
    Ok(value)
}

/// The parser's explanation, without the names of our types.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once("expected struct ") {
        Some((before, after)) => {
            format!("{before}expected an object{}", after.trim_start_matches(char::is_alphanumeric))
        }
        None => text,
    }
}

/// The validator knows our names, the caller knows `camelCase`.
fn wire_name(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_named_as_the_caller_spells_them() {
        assert_eq!(super::wire_name("account_holder_name"), "accountHolderName");
        assert_eq!(super::wire_name("gstin"), "gstin");
    }
}
