//! `Idempotency-Key`: a caller's name for a request, so that asking again is not doing it again.

use axum::http::HeaderMap;

use crate::error::Error;

/// The header.
pub(in crate::http) const IDEMPOTENCY_KEY: &str = "idempotency-key";
const BYTES_MAX: usize = 128;

/// The caller's key, if there is one.
///
/// # Errors
/// [`Error::Invalid`] if it is not 1 to 128 visible ASCII characters.
pub(in crate::http) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let plain = |text: &&str| !text.is_empty() && text.len() <= BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
    let key = value.to_str().ok().filter(plain).map(ToOwned::to_owned);
    key.map(Some).ok_or_else(|| Error::invalid("Idempotency-Key", "must be 1 to 128 visible ASCII characters"))
}
