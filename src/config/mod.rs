//! Configuration: embedded defaults, then a file, then the environment, then one validation across all of it.
//!
//! `configs/default.toml` documents every setting; a test fails if a setting is missing there. Secrets are
//! [`SecretString`]s, whose `Debug` shows nothing.

mod address;
mod durability;
mod legacy;
mod payment;
mod prefetch;
mod sections;
mod validate;
mod vouchers;

use std::path::Path;

use figment::Figment;
use figment::providers::{Env, Format, Toml};
use serde::Deserialize;

pub use address::address;
pub use durability::Durability;
pub use payment::{Gateway, Payment};
pub use prefetch::Prefetch;
pub use secrecy::{ExposeSecret, SecretString};
pub use sections::{
    Accounts, Auth, Catalogue, FilesystemMedia, Live, Log, LogFormat, Media, MediaBackend, Metrics, Mongo, S3Media,
    Sale, Server, Webhooks,
};
pub use vouchers::{Vouchers, named_key};

/// Every setting with its default, and its documentation.
pub const DEFAULTS: &str = include_str!("../../configs/default.toml");
/// What the demo changes.
pub const DEMO: &str = include_str!("../../configs/demo.toml");
/// What the tests change.
pub const TEST: &str = include_str!("../../configs/test.toml");

/// The whole configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each section's type says what it is")]
pub struct Config {
    pub server: Server,
    pub metrics: Metrics,
    pub log: Log,
    pub mongo: Mongo,
    pub live: Live,
    pub sale: Sale,
    pub auth: Auth,
    pub accounts: Accounts,
    pub catalogue: Catalogue,
    pub media: Media,
    pub webhooks: Webhooks,
    pub payment: Payment,
    pub vouchers: Vouchers,
    pub prefetch: Prefetch,
}

/// The configuration cannot be used; the text says what to change.
#[derive(Debug, thiserror::Error)]
#[error("bad configuration:\n{}", .problems.iter().map(|p| format!("  - {p}")).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// One sentence each, with the setting's name.
    pub problems: Vec<String>,
}

impl Config {
    /// Reads defaults, the file if one is given, and the environment.
    ///
    /// # Errors
    /// One sentence for each setting that cannot be used.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let config = Self::read(file)?;
        config.validate()?;
        Ok(config)
    }

    /// As [`Self::load`], without validating: for a command that reports what is wrong and looks further.
    ///
    /// # Errors
    /// When a layer does not parse.
    pub fn read(file: Option<&Path>) -> Result<Self, ConfigError> {
        let mut layers = Figment::from(Toml::string(DEFAULTS));
        if let Some(path) = file {
            if !path.is_file() {
                let problem = format!("the file {} cannot be read; check --config or ORBIT_CONFIG", path.display());
                return Err(ConfigError { problems: vec![problem] });
            }
            layers = layers.merge(Toml::file_exact(path));
        }
        Self::extract(&layers.merge(legacy::environment()).merge(environment()))
    }

    /// Reads defaults and one embedded layer such as [`DEMO`], then the environment, without validating: the caller
    /// fills in addresses and secrets first.
    ///
    /// # Errors
    /// When a layer does not parse.
    pub fn with_layer(layer: &str) -> Result<Self, ConfigError> {
        let layers = Figment::from(Toml::string(DEFAULTS)).merge(Toml::string(layer)).merge(environment());
        Self::extract(&layers)
    }

    fn extract(layers: &Figment) -> Result<Self, ConfigError> {
        layers.extract().map_err(|errors| ConfigError {
            // figment names the setting and the expected type; a value (perhaps a secret) is not repeated.
            problems: errors
                .into_iter()
                .map(|error| {
                    let setting = error.path.join(".");
                    match error.kind {
                        figment::error::Kind::UnknownField(name, _) => {
                            format!("{setting}: there is no setting \"{name}\"; configs/default.toml lists them all")
                        }
                        figment::error::Kind::MissingField(name) => format!("{name} is missing"),
                        figment::error::Kind::InvalidType(_, expected) => format!("{setting} must be {expected}"),
                        figment::error::Kind::InvalidValue(_, expected) => format!("{setting} must be {expected}"),
                        figment::error::Kind::UnknownVariant(_, known) => {
                            format!("{setting} must be one of {}", known.join(", "))
                        }
                        other => format!("{setting}: {other}"),
                    }
                })
                .collect(),
        })
    }
}

fn environment() -> Env {
    Env::prefixed("ORBIT__").split("__")
}
