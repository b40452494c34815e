//! A vendor over HTTP: JSON under an API key.
//!
//! | call | request | answer |
//! |---|---|---|
//! | what there is | `GET /v1/products/{ref}/availability?denominationMinor=&currency=` | `{units, discountBp?}` |
//! | order | `POST /v1/orders` `{externalId, product, denominationMinor, currency, count}` | an order |
//! | what became of it | `GET /v1/orders/{externalId}` | an order; 404 with `status: "not_found"` if there is none |
//!
//! An order is `{externalId, status, vouchers?, permanent?, reason?}`, `status` one of `fulfilled`, `pending`, `refused`; a
//! voucher is `{code?, pin?, claimUrl?, reference?, expiresAt?}`. An answer counts only if it says of which order it is: a
//! bare 404 may be some proxy's, and says nothing of an order.

use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use super::vendor::{Availability, OrderOutcome, VendorApi, VendorOrder};
use super::wire::{self, OrderBody, Unreadable};
use crate::config::{self, ExposeSecret, SecretString};
use crate::domain::money::Money;
use crate::error::{Dependency, Error, Result};
use crate::outbound::{self, Rules};

/// Room for a thousand codes with links.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// How a vendor is reached.
#[derive(Debug, Clone)]
pub struct VendorConnection {
    /// Where its API begins.
    pub base_url: String,
    /// Sent as a bearer token.
    pub api_key: SecretString,
}

/// A vendor over HTTP.
pub struct HttpVendor {
    http: Client,
    base: Url,
    api_key: SecretString,
}

impl std::fmt::Debug for HttpVendor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpVendor").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl HttpVendor {
    /// A way to this vendor. It keeps connections: make one for each vendor, not for each call.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the address is not a public one of HTTPS, or has more than a host and a path; when the HTTP
    /// client cannot be made.
    pub fn new(connection: &VendorConnection, config: &config::Prefetch) -> Result<Self> {
        let base = base_url(&connection.base_url, config.into())?;
        // It follows no redirect: the key goes to this address and nowhere else.
        let http = outbound::client(config.into(), Duration::from_millis(config.deadline_ms))
            .build()
            .map_err(|error| Error::internal("making a vendor's client", error))?;
        Ok(Self { http, base, api_key: connection.api_key.clone() })
    }

    /// An address below the base; each part is escaped.
    fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Sends a request and reads the answer, within the client's deadline.
    async fn ask(&self, doing: &'static str, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>)> {
        let failed = |why: String| Error::unavailable(Dependency::Vendor, doing, why);
        let fault = |error: reqwest::Error| failed(reason(error));
        let request = request.bearer_auth(self.api_key.expose_secret());
        let mut answer = request.send().await.map_err(fault)?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(fault)? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(failed("the answer is too large".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        Ok((status, body))
    }

    /// What an answer says of an order. What was sold is told with a 2xx, that it was not with a 2xx or a 4xx.
    async fn order_of(
        &self,
        doing: &'static str,
        request: RequestBuilder,
        external_id: &str,
    ) -> Result<Option<OrderOutcome>> {
        let (status, body) = self.ask(doing, request).await?;
        let failed = |why: String| Error::unavailable(Dependency::Vendor, doing, format!("status {status}{why}"));
        if !status.is_success() && !status.is_client_error() {
            return Err(failed(String::new()));
        }
        let outcome = wire::outcome(&body, external_id).map_err(|why| failed(format!(", {why}")))?;
        let told_well = match &outcome {
            Some(OrderOutcome::Fulfilled(_) | OrderOutcome::Pending) => status.is_success(),
            Some(OrderOutcome::Refused(_)) => true,
            None => status == StatusCode::NOT_FOUND,
        };
        if told_well { Ok(outcome) } else { Err(failed(", which contradicts its body".to_owned())) }
    }
}

/// Reads where a vendor's API begins.
///
/// # Errors
/// [`Error::Invalid`]: it is no such address, or one that the configuration does not let out.
pub(super) fn base_url(text: &str, rules: Rules) -> Result<Url> {
    let url = outbound::parse(text, rules).map_err(|refused| Error::invalid("baseUrl", refused.to_string()))?;
    if url.query().is_some() {
        return Err(Error::invalid("baseUrl", "must hold no query: paths are added to it"));
    }
    Ok(url)
}

/// Why there was no answer, without the address, and with the cause, which reqwest leaves out.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl VendorApi for HttpVendor {
    fn available<'a>(&'a self, product_ref: &'a str, denomination: Money) -> BoxFuture<'a, Result<Availability>> {
        Box::pin(async move {
            const DOING: &str = "asking a vendor what it has";
            let mut url = self.url(&["v1", "products", product_ref, "availability"]);
            url.query_pairs_mut()
                .append_pair("denominationMinor", &denomination.minor.to_string())
                .append_pair("currency", denomination.currency.code());
            let (status, body) = self.ask(DOING, self.http.get(url)).await?;
            let failed = |why: Unreadable| Error::unavailable(Dependency::Vendor, DOING, why);
            if !status.is_success() {
                return Err(failed(format!("status {status}")));
            }
            wire::availability(&body).map_err(failed)
        })
    }

    fn order<'a>(&'a self, order: &'a VendorOrder<'a>) -> BoxFuture<'a, Result<OrderOutcome>> {
        Box::pin(async move {
            const DOING: &str = "ordering vouchers";
            let request = self.http.post(self.url(&["v1", "orders"])).json(&OrderBody::from(order));
            let outcome = self.order_of(DOING, request, order.external_id).await?;
            outcome
                .ok_or_else(|| Error::unavailable(Dependency::Vendor, DOING, "the vendor answers that it has no order"))
        })
    }

    fn find_order<'a>(&'a self, external_id: &'a str) -> BoxFuture<'a, Result<Option<OrderOutcome>>> {
        Box::pin(async move {
            let request = self.http.get(self.url(&["v1", "orders", external_id]));
            self.order_of("asking what became of an order", request, external_id).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_is_reached_over_https() {
        let strict = Rules { allow_http: false, allow_private: false };
        for text in [
            "http://vendor.example",
            "https://127.0.0.1/api",
            "https://10.1.2.3/",
            "https://localhost/",
            "ftp://vendor.example",
            "vendor.example",
            "",
            "https://key@vendor.example",
            "https://vendor.example/?key=1",
            "https://vendor.example/#here",
        ] {
            assert!(base_url(text, strict).is_err(), "{text}");
        }
        let open = Rules { allow_http: true, allow_private: true };
        assert!(base_url("http://127.0.0.1:9", open).is_ok());
        assert!(base_url("file:///etc", open).is_err());
    }

    #[test]
    fn a_product_cannot_lead_elsewhere() {
        let mut config = config::Config::with_layer(config::TEST).unwrap().prefetch;
        config.allow_http = false;
        let connection =
            VendorConnection { base_url: "https://vendor.example/api/".to_owned(), api_key: "SECRET".into() };
        let vendor = HttpVendor::new(&connection, &config).unwrap();
        let url = vendor.url(&["v1", "products", "../a/b?c#d", "availability"]);
        assert_eq!(url.as_str(), "https://vendor.example/api/v1/products/..%2Fa%2Fb%3Fc%23d/availability");
        assert!(!format!("{vendor:?} {connection:?}").contains("SECRET"));
    }
}
