//! Who is at the other end: the peer, or what our own load balancer says.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::app::AppState;
use crate::http::layer::PeerAddress;
use crate::http::problem::Problem;

/// The client's address.
pub(in crate::http) struct ClientAddress(pub IpAddr);

impl FromRequestParts<AppState> for ClientAddress {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let header = &app.config().server.client_ip_header;
        let told = if header.is_empty() { None } else { parts.headers.get(header) };
        let told = told.and_then(|value| value.to_str().ok()).and_then(|text| text.trim().parse().ok());
        let peer = parts.extensions.get::<PeerAddress>().map(|peer| peer.0);
        Ok(Self(told.or(peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
    }
}
