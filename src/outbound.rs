//! Requests to addresses that somebody has entered: webhooks of sellers, APIs of voucher vendors. Our machine makes the
//! request, so an address inside our network must never be reached: not by its number, and not through a name that leads
//! there.
//!
//! A name is resolved by the connection itself, through a resolver of its own: what was checked is what is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

use crate::config;

const URL_BYTES_MAX: usize = 2048;
const CONNECT_DEADLINE_MAX: Duration = Duration::from_secs(5);

/// What the configuration lets out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Plain HTTP, too.
    pub allow_http: bool,
    /// Addresses that are not public, too.
    pub allow_private: bool,
}

impl From<&config::Webhooks> for Rules {
    fn from(config: &config::Webhooks) -> Self {
        Self { allow_http: config.allow_http, allow_private: config.allow_private }
    }
}

impl From<&config::Prefetch> for Rules {
    fn from(config: &config::Prefetch) -> Self {
        Self { allow_http: config.allow_http, allow_private: config.allow_private }
    }
}

/// The address is not one that requests are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No address of a host.
    #[error("must be an address such as https://shop.example/hooks")]
    NoUrl,
    /// Longer than anybody's.
    #[error("must have at most 2048 bytes")]
    TooLong,
    /// What is sent could be read on its way.
    #[error("must start with https://")]
    NotHttps,
    /// It holds what would be logged or sent by surprise.
    #[error("must hold neither a user name nor a password nor a fragment")]
    Credentials,
    /// It is, or may be, inside our network.
    #[error("must be a public address")]
    NotPublic,
}

/// Reads an address by the rules of its shape. A name may still lead to an address that is not public.
///
/// # Errors
/// The first rule that it breaks.
pub fn parse(text: &str, rules: Rules) -> Result<Url, Refused> {
    if text.len() > URL_BYTES_MAX {
        return Err(Refused::TooLong);
    }
    let url = Url::parse(text.trim()).map_err(|_| Refused::NoUrl)?;
    match url.scheme() {
        "https" => {}
        "http" if rules.allow_http => {}
        _ => return Err(Refused::NotHttps),
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(Refused::Credentials);
    }
    // The parser has read numbers in every notation (octal, hexadecimal, in one piece) into one.
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Refused::NoUrl)?;
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let local_name = || {
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        name == "localhost" || name.ends_with(".localhost")
    };
    let public = number.map_or_else(|| !local_name(), is_public);
    if public || rules.allow_private { Ok(url) } else { Err(Refused::NotPublic) }
}

/// Whether an address is one of the internet's: what is not known to be public is not.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

const fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, private, shared by a carrier's customers, loopback, link-local, private.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]
        // Protocol assignments, documentation, relays, benchmarks.
        | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _]
        // Multicast, reserved, broadcast.
        | [224..=255, ..]
    )
}

/// Only `2000::/3` is given out to anybody. That leaves out loopback, link-local, unique-local, multicast, and addresses
/// that hold an IPv4 one (mapped, compatible, NAT64).
const fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments[0] {
        // Teredo and other protocol assignments; documentation.
        0x2001 => segments[1] >= 0x200 && segments[1] != 0xdb8,
        // 6to4 holds an IPv4 address; documentation.
        0x2002 => false,
        0x3fff => segments[1] >= 0x1000,
        first => first >= 0x2000 && first < 0x4000,
    }
}

/// Resolves names to their public addresses only.
#[derive(Debug)]
struct PublicOnly {
    allow_private: bool,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> =
                found.into_iter().filter(|address| allow_private || is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(Refused::NotPublic.into());
            }
            let addresses: Addrs = Box::new(public.into_iter());
            Ok(addresses)
        })
    }
}

/// The beginnings of a client that connects to what the rules allow, follows nobody anywhere, and gives a request so long,
/// from start to end.
pub fn client(rules: Rules, deadline: Duration) -> ClientBuilder {
    crate::tls::install();
    reqwest::Client::builder()
        .user_agent(concat!("orbit/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(PublicOnly { allow_private: rules.allow_private })
        .redirect(Policy::none())
        // A proxy of this machine's environment would resolve names itself.
        .no_proxy()
        .https_only(!rules.allow_http)
        .timeout(deadline)
        .connect_timeout(deadline.min(CONNECT_DEADLINE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Rules = Rules { allow_http: false, allow_private: false };
    const OPEN: Rules = Rules { allow_http: true, allow_private: true };

    #[test]
    fn only_public_addresses_are_public() {
        for public in ["93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00:1450::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn an_address_that_is_not_public_is_refused_however_it_is_written() {
        for text in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://api.localhost/",
            "https://169.254.169.254/latest",
            "https://0/",
        ] {
            assert_eq!(parse(text, STRICT), Err(Refused::NotPublic), "{text}");
        }
    }

    #[test]
    fn the_shape_of_an_address_has_rules() {
        for (text, refused) in [
            ("http://shop.example/", Refused::NotHttps),
            ("file:///etc/passwd", Refused::NotHttps),
            ("shop.example", Refused::NoUrl),
            ("", Refused::NoUrl),
            ("https://user@shop.example/", Refused::Credentials),
            ("https://:secret@shop.example/", Refused::Credentials),
            ("https://shop.example/#here", Refused::Credentials),
        ] {
            assert_eq!(parse(text, STRICT), Err(refused), "{text}");
        }
        let long = format!("https://shop.example/{}", "x".repeat(URL_BYTES_MAX));
        assert_eq!(parse(&long, STRICT), Err(Refused::TooLong));
        assert_eq!(parse(" https://shop.example:8443/hooks?a=b ", STRICT).unwrap().path(), "/hooks");
        assert!(parse("http://127.0.0.1:9000/", OPEN).is_ok());
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_leads_nowhere() {
        let error = client(STRICT, Duration::from_secs(2))
            .build()
            .unwrap()
            .get("https://localhost:9/")
            .send()
            .await
            .unwrap_err();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        assert_eq!(cause.to_string(), Refused::NotPublic.to_string());
    }
}
