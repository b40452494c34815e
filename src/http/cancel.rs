//! What the three routes that cancel a reservation share: the buyer's, the seller's and the administrator's.

use std::sync::Arc;

use axum::Json;
use axum::http::HeaderMap;
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::buyer::ReservationBody;
use super::extract::idempotency_key;
use super::problem::Answer;
use crate::app::AppState;
use crate::domain::product::PER_BUYER_LIMIT_MAX;
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};
use crate::sale::{ReservationRef, Sale};

/// How much is cancelled; an empty body cancels all that is left.
#[derive(Debug, Default, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct CancelRequest {
    /// Units to return, from 1; all if it is left out. Returning a part needs an `Idempotency-Key`.
    #[serde(default)]
    #[garde(inner(range(min = 1, max = PER_BUYER_LIMIT_MAX)))]
    quantity: Option<u32>,
}

/// A cancelled reservation.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct CancelledBody {
    message: &'static str,
    reservation: ReservationBody,
}

impl From<Reservation> for CancelledBody {
    fn from(reservation: Reservation) -> Self {
        let message = if reservation.units_held() == 0 { "reservation cancelled" } else { "units returned" };
        Self { message, reservation: reservation.into() }
    }
}

/// What is to be returned, and the name under which it is returned once.
pub(in crate::http) struct Cancellation {
    pub units: Option<u32>,
    pub operation: Option<String>,
}

impl Cancellation {
    /// From a request; `reservation` is a part of the operation's name, so that a key of another reservation is another.
    pub fn read(request: &CancelRequest, headers: &HeaderMap, reservation: &str) -> Result<Self> {
        let key = idempotency_key(headers)?;
        if request.quantity.is_some() && key.is_none() {
            let message = "is needed to return a part, so that a request that is repeated returns it once";
            return Err(Error::invalid("Idempotency-Key", message));
        }
        let operation = key.map(|key| format!("cancel {reservation} {key}"));
        Ok(Self { units: request.quantity, operation })
    }
}

/// Runs it to its end even if the caller hangs up.
pub(in crate::http) async fn cancel<F>(app: &AppState, work: impl FnOnce(Arc<Sale>) -> F) -> Answer<Json<CancelledBody>>
where
    F: Future<Output = Result<Reservation>> + Send + 'static,
{
    let reservation = app.tasks().complete("cancelling", work(Arc::clone(app.sale()))).await?;
    Ok(Json(reservation.into()))
}

/// The reservation that an order settles.
pub(in crate::http) async fn ordered(app: &AppState, reservation: &str) -> Result<ReservationRef> {
    let order = app.reports().order(reservation).await?;
    Ok(ReservationRef::from(&order))
}
