//! Owned resources: a handler that takes [`OwnedEvent`] cannot run for another seller. Somebody else's event is the same
//! 404 as none, and is refused before a body is read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::{Seller, path_id, path_text};
use crate::app::AppState;
use crate::domain::event::Event;
use crate::domain::ids::EventId;
use crate::error::{Code, Error};
use crate::http::problem::Problem;
use crate::sale::KnownSale;

/// An event of the seller who asks, from the path parameter `eventId` or `id`.
#[derive(Debug)]
pub(in crate::http) struct OwnedEvent {
    pub event: Event,
}

const UNKNOWN: &str = "event not found";

impl FromRequestParts<AppState> for OwnedEvent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        load(parts, app, |text| path_id(text, UNKNOWN)).await
    }
}

/// As [`OwnedEvent`], for the routes whose clients know a malformed id as 400 `invalid event ID`.
#[derive(Debug)]
pub(in crate::http) struct OwnedBookings(pub OwnedEvent);

impl FromRequestParts<AppState> for OwnedBookings {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let parse = |text: &str| text.parse().map_err(|_| Error::refused(Code::MalformedId, "invalid event ID"));
        load(parts, app, parse).await.map(Self)
    }
}

async fn load(
    parts: &mut Parts,
    app: &AppState,
    parse: impl Fn(&str) -> Result<EventId, Error>,
) -> Result<OwnedEvent, Problem> {
    let Seller(session) = Seller::from_request_parts(parts, app).await?;
    let mut text = path_text(parts, app, "eventId").await;
    if text.is_empty() {
        text = path_text(parts, app, "id").await;
    }
    let event = app.catalogue().event(parse(&text)?).await?;
    if event.seller != session.user() {
        return Err(Error::not_found(UNKNOWN).into());
    }
    Ok(OwnedEvent { event })
}

/// The sale of one's own event, to be paused, resumed or ended: also while MongoDB is away, when the live store says
/// whose it is.
#[derive(Debug)]
pub(in crate::http) struct OwnedSale(pub KnownSale);

impl FromRequestParts<AppState> for OwnedSale {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let Seller(session) = Seller::from_request_parts(parts, app).await?;
        let id: EventId = path_id(&path_text(parts, app, "eventId").await, UNKNOWN)?;
        let (seller, sale) = match app.catalogue().event(id).await {
            Ok(event) => (Some(event.seller), KnownSale::from(&event)),
            Err(away) if away.code() == Code::DatabaseUnavailable => match app.sale().seller_of(id).await? {
                None => return Err(away.into()),
                seller => (seller, KnownSale { id, phase: None }),
            },
            Err(error) => return Err(error.into()),
        };
        if seller == Some(session.user()) { Ok(Self(sale)) } else { Err(Error::not_found(UNKNOWN).into()) }
    }
}
