//! The environment names of the Go implementation, so that its deployments start unchanged.

use figment::providers::Serialized;
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

/// (their name, our setting)
const NAMES: &[(&str, &str)] = &[
    ("PORT", "server.port"),
    ("MONGODBURI", "mongo.uri"),
    ("JWT_KEY", "auth.jwt_secret"),
    ("R2_ACCESS_KEY_ID", "media.s3.access_key_id"),
    ("R2_SECRET_ACCESS_KEY", "media.s3.secret_access_key"),
    ("R2_ENDPOINT", "media.s3.endpoint"),
    ("R2_BUCKET_NAME", "media.s3.bucket"),
    ("R2_DOMAIN", "media.public_url"),
];

pub(super) struct Legacy(Vec<(String, Value)>);

/// Reads the names that are set. `REDIS_URL` may be their `host:port` (with `REDIS_PASS`) or a real URL.
pub(super) fn environment() -> Legacy {
    from_lookup(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Legacy {
    let mut values = Vec::new();
    for (name, setting) in NAMES {
        if let Some(text) = lookup(name) {
            let value = match text.parse::<u16>() {
                Ok(port) if *setting == "server.port" => Value::from(port),
                _ => Value::from(text),
            };
            values.push(((*setting).to_owned(), value));
        }
    }
    if lookup("R2_BUCKET_NAME").is_some() {
        values.push(("media.backend".to_owned(), Value::from("s3")));
    }
    if let Some(address) = lookup("REDIS_URL") {
        let url = if address.contains("://") {
            address
        } else {
            let password = lookup("REDIS_PASS").map(|p| format!(":{}@", percent_encode(&p))).unwrap_or_default();
            format!("redis://{password}{address}/0")
        };
        values.push(("live.url".to_owned(), Value::from(url)));
    }
    Legacy(values)
}

fn percent_encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

impl Provider for Legacy {
    fn metadata(&self) -> Metadata {
        Metadata::named("environment variables of the Go implementation")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut figment = figment::Figment::new();
        for (setting, value) in &self.0 {
            figment = figment.merge(Serialized::default(setting, value));
        }
        figment.data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_names_reach_our_settings() {
        let legacy = from_lookup(|name| {
            Some(match name {
                "PORT" => "8000".to_owned(),
                "REDIS_URL" => "cache:6379".to_owned(),
                "REDIS_PASS" => "p@ss/1".to_owned(),
                "JWT_KEY" => "12345".to_owned(),
                _ => return None,
            })
        });
        let figment = figment::Figment::from(legacy);
        assert_eq!(figment.extract_inner::<u16>("server.port").unwrap(), 8000);
        assert_eq!(figment.extract_inner::<String>("live.url").unwrap(), "redis://:p%40ss%2F1@cache:6379/0");
        assert_eq!(figment.extract_inner::<String>("auth.jwt_secret").unwrap(), "12345");
    }
}
