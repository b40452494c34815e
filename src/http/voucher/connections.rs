//! How vendors are reached, entered by administrators.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::vendor::{Connection, Way};
use crate::error::{Error, Result};
use crate::http::auth::MessageBody;
use crate::http::extract::{Admin, NamedVendor, ValidJson};
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::prefetch::NewWay;

/// How a vendor is to be reached.
#[derive(Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ConnectionRequest {
    /// `HTTP`, or `SANDBOX`: the vendor of trials, where the configuration has it.
    #[garde(length(max = 16))]
    kind: String,
    /// Where the vendor's API begins: HTTPS, a public address, no credentials and no query, at most 2048 bytes. For `HTTP` only.
    #[garde(length(bytes, max = 2048))]
    base_url: Option<String>,
    /// The key to it, sent as a bearer token: 1 to 4096 visible ASCII characters. It is sealed and never shown. Without it, the
    /// key that is kept for this very address stays. For `HTTP` only.
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>, format = Password)]
    #[garde(custom(key))]
    api_key: Option<SecretString>,
    /// Whether anything is ordered of the vendor, and asked. True if it is left away.
    #[serde(default = "yes")]
    #[garde(skip)]
    enabled: bool,
}

const fn yes() -> bool {
    true
}

/// A secret, if there is one. What is wrong with it is said without it.
pub(super) fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    let text = Option::<String>::deserialize(deserializer);
    text.map(|text| text.map(SecretString::from)).map_err(|_| serde::de::Error::custom("a secret must be text"))
}

fn key(key: &Option<SecretString>, (): &()) -> garde::Result {
    let plain = |key: &SecretString| {
        let text = key.expose_secret();
        (1..=4096).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if key.as_ref().is_none_or(plain) {
        return Ok(());
    }
    Err(garde::Error::new("must be 1 to 4096 visible ASCII characters"))
}

impl ConnectionRequest {
    fn way(self) -> Result<NewWay> {
        match self.kind.as_str() {
            Way::HTTP => {
                let base_url = self.base_url.ok_or_else(|| Error::invalid("baseUrl", "is required"))?;
                Ok(NewWay::Http { base_url, api_key: self.api_key })
            }
            Way::SANDBOX if self.base_url.is_some() => Err(Error::invalid("baseUrl", "the sandbox has none")),
            Way::SANDBOX if self.api_key.is_some() => Err(Error::invalid("apiKey", "the sandbox has none")),
            Way::SANDBOX => Ok(NewWay::Sandbox),
            _ => Err(Error::invalid("kind", "must be HTTP or SANDBOX")),
        }
    }
}

/// How a vendor is reached. The key is not shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ConnectionBody {
    vendor_id: String,
    /// HTTP or SANDBOX.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    enabled: bool,
    /// The administrator who set it last.
    set_by: String,
    set_at: DateTime<Utc>,
}

impl From<Connection> for ConnectionBody {
    fn from(connection: Connection) -> Self {
        let kind = connection.way.kind();
        let base_url = match connection.way {
            Way::Http { base_url, .. } => Some(base_url),
            Way::Sandbox => None,
        };
        Self {
            vendor_id: connection.vendor.to_string(),
            kind,
            base_url,
            enabled: connection.enabled,
            set_by: connection.set_by.to_string(),
            set_at: connection.set_at,
        }
    }
}

/// Says how a vendor is reached, in place of what was said before. Prefetch jobs buy over it from then on.
#[utoipa::path(put, path = "/api/admin/vouchers/vendors/{vendorId}/connection", tag = "vouchers",
    request_body = ConnectionRequest, params(("vendorId" = String, Path, description = "Vendor id")), responses(
    (status = 200, description = "Set", body = ConnectionBody),
    (status = 400, description = "A field breaks a rule: no public HTTPS address, no key, the sandbox where there is none", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such vendor", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn set_connection(
    State(app): State<AppState>,
    Admin(session): Admin,
    NamedVendor(vendor): NamedVendor,
    ValidJson(request): ValidJson<ConnectionRequest>,
) -> Answer<Json<ConnectionBody>> {
    let enabled = request.enabled;
    Ok(Json(app.connections().set(session.user(), vendor.id, request.way()?, enabled).await?.into()))
}

/// How a vendor is reached.
#[utoipa::path(get, path = "/api/admin/vouchers/vendors/{vendorId}/connection", tag = "vouchers",
    params(("vendorId" = String, Path, description = "Vendor id")), responses(
    (status = 200, description = "The connection, without its key", body = ConnectionBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such vendor, or it has no connection", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_connection(
    State(app): State<AppState>,
    _admin: Admin,
    NamedVendor(vendor): NamedVendor,
) -> Answer<Json<ConnectionBody>> {
    Ok(Json(app.connections().of_vendor(vendor.id).await?.into()))
}

/// Forgets how a vendor is reached, and its key. Orders that are under way stay open: set a connection again, and they are asked
/// about.
#[utoipa::path(delete, path = "/api/admin/vouchers/vendors/{vendorId}/connection", tag = "vouchers",
    params(("vendorId" = String, Path, description = "Vendor id")), responses(
    (status = 200, description = "Removed", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such vendor, or it has no connection", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn remove_connection(
    State(app): State<AppState>,
    Admin(session): Admin,
    NamedVendor(vendor): NamedVendor,
) -> Answer<Json<MessageBody>> {
    app.connections().remove(session.user(), vendor.id).await?;
    Ok(Json(MessageBody { message: "connection removed" }))
}
