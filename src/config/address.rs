//! Where a URI points to, without what it must not show.

use secrecy::{ExposeSecret, SecretString};

/// The servers and the database of a URI, such as `cache.example:6379/0`. Leaves out credentials, and options, which may
/// hold some.
#[must_use]
pub fn address(uri: &SecretString) -> String {
    let uri = uri.expose_secret();
    // Without a scheme it is no URI, and could be anything.
    let Some((_, rest)) = uri.split_once("://") else { return "?".to_owned() };
    // The last one: a password may hold another that somebody forgot to encode.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (servers, database) = rest.split_once('/').map_or((rest, ""), |(servers, database)| (servers, database));
    let servers: Vec<String> = servers.split(',').map(server).collect();
    let slash = if database.is_empty() { "" } else { "/" };
    format!("{}{slash}{database}", servers.join(","))
}

/// What stands where a port should is a password if somebody forgot the host.
fn server(text: &str) -> String {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') && port.parse::<u16>().is_err() => format!("{host}:?"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_credential_is_left() {
        for (uri, expected) in [
            ("redis://127.0.0.1:6379/0", "127.0.0.1:6379/0"),
            ("redis://:hunter2@cache:6379/0", "cache:6379/0"),
            ("rediss://user:hun@ter2/@cache:6379", "cache:6379"),
            (
                "mongodb://user:hunter2@a:1,b:2/Orbit?replicaSet=rs0&tlsCertificateKeyFilePassword=hunter2",
                "a:1,b:2/Orbit",
            ),
            ("mongodb://user:hunter2?@a:1/", "a:1"),
            ("mongodb://user:hunter2", "user:?"),
            ("mongodb://[::1]:27017/", "[::1]:27017"),
            ("mongodb://[::1]", "[::1]"),
            ("redis:///run/redis.sock", "/run/redis.sock"),
            ("hunter2", "?"),
            ("", "?"),
        ] {
            assert_eq!(address(&uri.to_owned().into()), expected, "{uri}");
        }
    }
}
