//! Forms: multipart, urlencoded or JSON, read into the same fields. The limit on the whole body is the route's.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Request};
use serde_json::Value;

use super::json::{body_bytes, content_type};
use crate::app::AppState;
use crate::error::{Code, Error, FieldError};
use crate::http::problem::Problem;

const FIELDS_MAX: usize = 32;
const FIELD_BYTES_MAX: usize = 16 * 1024;

/// The fields of a form.
#[derive(Debug, Default)]
pub(in crate::http) struct Form {
    text: BTreeMap<String, String>,
    files: BTreeMap<String, Bytes>,
    names: BTreeMap<String, String>,
}

impl FromRequest<AppState> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        match content_type(request.headers()).as_deref() {
            Some("multipart/form-data") => Self::multipart(request, app).await,
            Some("application/x-www-form-urlencoded") => Self::urlencoded(&body_bytes(request, app).await?),
            Some("application/json") | None => Self::json(&body_bytes(request, app).await?),
            Some(_) => Err(Error::refused(
                Code::UnsupportedMediaType,
                "send multipart/form-data, application/x-www-form-urlencoded or application/json",
            )
            .into()),
        }
    }
}

impl Form {
    /// A file is a part with a file name, whatever type it claims; the name itself is never used for a file of ours.
    async fn multipart(request: Request, app: &AppState) -> Result<Self, Problem> {
        let mut parts =
            Multipart::from_request(request, app).await.map_err(|_| malformed("the form cannot be read"))?;
        let mut form = Self::default();
        while let Some(part) = parts.next_field().await.map_err(|error| cut_short(&error))? {
            let name = part.name().unwrap_or_default().to_owned();
            let file_name = part.file_name().map(ToOwned::to_owned);
            let bytes = part.bytes().await.map_err(|error| cut_short(&error))?;
            if form.text.len() + form.files.len() >= FIELDS_MAX {
                return Err(malformed("the form has too many fields").into());
            }
            if let Some(file_name) = file_name {
                if !bytes.is_empty() {
                    form.names.insert(name.clone(), file_name);
                    form.files.insert(name, bytes);
                }
            } else {
                if bytes.len() > FIELD_BYTES_MAX {
                    return Err(Error::refused(Code::TooLarge, "a field of the form is too large").into());
                }
                let text = String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a field is not UTF-8"))?;
                form.text.insert(name, text);
            }
        }
        Ok(form)
    }

    fn urlencoded(bytes: &[u8]) -> Result<Self, Problem> {
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_bytes(bytes).map_err(|_| malformed("the form cannot be read"))?;
        Ok(Self { text: pairs.into_iter().take(FIELDS_MAX).collect(), ..Self::default() })
    }

    fn json(bytes: &[u8]) -> Result<Self, Problem> {
        let object: BTreeMap<String, Value> = serde_json::from_slice(bytes)
            .map_err(|_| malformed("the body is not the JSON object that this route reads"))?;
        let mut text = BTreeMap::new();
        for (name, value) in object {
            match value {
                Value::String(value) => drop(text.insert(name, value)),
                // The shortest decimal text of the number: exact for every price that we accept.
                Value::Number(value) => drop(text.insert(name, value.to_string())),
                Value::Bool(value) => drop(text.insert(name, value.to_string())),
                Value::Null => {}
                _ => return Err(Error::invalid(&name, "must be text, a number, true or false").into()),
            }
        }
        Ok(Self { text, ..Self::default() })
    }

    /// The uploaded file of this name.
    pub(in crate::http) fn take_file(&mut self, name: &str) -> Option<Bytes> {
        self.files.remove(name)
    }

    /// What the uploader calls the file of this name.
    pub(in crate::http) fn file_name(&self, name: &str) -> &str {
        self.names.get(name).map_or("", String::as_str)
    }

    /// Reads the text fields against their rules.
    pub(in crate::http) const fn fields(&self) -> Fields<'_> {
        Fields { form: self, errors: Vec::new() }
    }
}

fn malformed(message: &'static str) -> Error {
    Error::refused(Code::MalformedBody, message)
}

fn cut_short(error: &axum::extract::multipart::MultipartError) -> Error {
    if error.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
        return Error::refused(Code::TooLarge, "the body is too large");
    }
    malformed("the form cannot be read to its end")
}

/// Collects values and every broken rule.
pub(in crate::http) struct Fields<'a> {
    form: &'a Form,
    errors: Vec<FieldError>,
}

impl Fields<'_> {
    /// A text of so many characters, if it is given.
    pub(in crate::http) fn text(&mut self, name: &str, chars: std::ops::RangeInclusive<usize>) -> Option<String> {
        let text = self.form.text.get(name)?.trim().to_owned();
        if !chars.contains(&text.chars().count()) {
            self.broken(name, format!("must have {} to {} characters", chars.start(), chars.end()));
            return None;
        }
        Some(text)
    }

    /// A value that a function parses, if it is given.
    pub(in crate::http) fn parse<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.form.text.get(name)?;
        match parse(text.trim()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.broken(name, error.to_string());
                None
            }
        }
    }

    /// Says that a field is missing, unless something else is wrong with it.
    pub(in crate::http) fn require<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.errors.iter().any(|error| error.field == name) {
            self.broken(name, "is required".to_owned());
        }
        value
    }

    /// Says that a field breaks a rule.
    pub(in crate::http) fn broken(&mut self, name: &str, message: String) {
        self.errors.push(FieldError { field: name.to_owned(), message });
    }

    /// Every broken rule, if there is one.
    pub(in crate::http) fn finish(self) -> Result<(), Error> {
        if self.errors.is_empty() { Ok(()) } else { Err(Error::Invalid { fields: self.errors }) }
    }
}
