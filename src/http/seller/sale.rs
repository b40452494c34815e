//! Running the sale. Opening and ending run in tasks of their own: a seller who hangs up does not stop them half-way.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::counters::{CountersBody, CountersQuery};
use crate::app::AppState;
use crate::domain::schedule::ScheduleProblem;
use crate::http::auth::MessageBody;
use crate::http::extract::{OwnedEvent, OwnedSale, Paged};
use crate::http::plan::PlanBody;
use crate::http::problem::{Answer, ProblemBody};

/// An opened sale.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct OpenedBody {
    message: &'static str,
    /// Products for sale.
    products: u64,
}

/// Opens the sale: loads its inventory, then lets buyers in. Only an approved seller may.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/Live", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Live", body = OpenedBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an approved seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The sale is not NOT_STARTED, is being opened, has no products, its end has passed, or a price cannot be charged", body = ProblemBody),
    (status = 503, description = "A store is away, or not safe enough; the sale can be opened again", body = ProblemBody)))]
pub(in crate::http) async fn open_sale(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
) -> Answer<Json<OpenedBody>> {
    let sale = Arc::clone(app.sale());
    let opened = app.tasks().complete("opening a sale", async move { sale.open(&event).await }).await?;
    Ok(Json(OpenedBody { message: "sale is now live", products: opened.products }))
}

/// Stops accepting reservations for a while.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/Pause", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Paused", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The sale is not LIVE", body = ProblemBody),
    (status = 503, description = "The live store is away", body = ProblemBody)))]
pub(in crate::http) async fn pause_sale(
    State(app): State<AppState>,
    OwnedSale(known): OwnedSale,
) -> Answer<Json<MessageBody>> {
    app.sale().pause(known).await?;
    Ok(Json(MessageBody { message: "sale paused \u{2014} no new bookings will be accepted" }))
}

/// Accepts reservations again.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/Resume", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Live again", body = MessageBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The sale is not PAUSED", body = ProblemBody),
    (status = 503, description = "The live store is away", body = ProblemBody)))]
pub(in crate::http) async fn resume_sale(
    State(app): State<AppState>,
    OwnedSale(known): OwnedSale,
) -> Answer<Json<MessageBody>> {
    app.sale().resume(known).await?;
    Ok(Json(MessageBody { message: "sale resumed" }))
}

/// An ended sale.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EndedBody {
    message: String,
    /// Orders in the database; while the sale is being settled, changes of reservations that are in the database.
    orders: u64,
    /// Reservations that could not be settled; they are kept and recorded for an operator.
    dead_letters: u64,
    /// Reservations that are still to be settled; present while the sale is being settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
}

/// Ends the sale for good and turns every reservation into an order. Ending again finishes what was left, or says how far
/// it has come.
#[utoipa::path(post, path = "/api/seller/events/{eventId}/End", tag = "seller",
    params(("eventId" = String, Path, description = "Event id")), responses(
    (status = 200, description = "Ended; `deadLetters` above 0 says that some reservations need an operator", body = EndedBody),
    (status = 202, description = "Stopped for good and being settled: `remaining` says how much is left", body = EndedBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The sale never ran", body = ProblemBody),
    (status = 503, description = "A store is away; the sale is stopped, nothing is lost: End again", body = ProblemBody)))]
pub(in crate::http) async fn end_sale(
    State(app): State<AppState>,
    OwnedSale(known): OwnedSale,
) -> Answer<(StatusCode, Json<EndedBody>)> {
    let sale = Arc::clone(app.sale());
    let end = app.tasks().complete("ending a sale", async move {
        let ended = sale.end(known).await;
        if let Err(error) = &ended {
            // The caller may have been answered already.
            tracing::warn!(event = %known.id, code = error.code().as_str(), error = %error, "an End was not finished");
        }
        ended
    });
    let deadline = Duration::from_millis(app.config().sale.end_answer_ms);
    let Ok(ended) = tokio::time::timeout(deadline, end).await else {
        let settling = app.sale().settling(known.id).await?;
        let message = "sale stopped \u{2014} orders are being synced to database".to_owned();
        let (orders, remaining) = (settling.orders, Some(settling.remaining));
        return Ok((StatusCode::ACCEPTED, Json(EndedBody { message, orders, dead_letters: 0, remaining })));
    };
    let ended = ended?;
    let message = match ended.dead_letters {
        0 => "sale ended \u{2014} all orders synced to database".to_owned(),
        count => format!("sale ended \u{2014} {count} reservations could not be settled and are kept for an operator"),
    };
    let body = EndedBody { message, orders: ended.orders, dead_letters: ended.dead_letters, remaining: None };
    Ok((StatusCode::OK, Json(body)))
}

/// A sale as its seller watches it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct SaleBody {
    /// `NOT_STARTED`, LIVE, PAUSED or STOPPED.
    status: &'static str,
    /// DRAFT, OPENING, LIVE, STOPPED or SETTLED.
    phase: &'static str,
    /// Reservations in the live store.
    reservations: u64,
    /// Products in the live store.
    products: u64,
    /// Orders in the database.
    orders: u64,
    /// Present if the live store had lost something of this sale: what happened, and whether it can be resumed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<HeldBody>,
    /// What it does by itself.
    schedule: ScheduleBody,
    #[serde(flatten)]
    numbers: CountersBody,
}

/// What a sale does by itself, and what stands in the way.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ScheduleBody {
    #[serde(flatten)]
    plan: PlanBody,
    /// Present if the sale should have opened by itself and could not; it is tried again every few seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ScheduleProblemBody>,
}

/// Why a sale has not opened by itself.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ScheduleProblemBody {
    /// The code that opening it by hand would be refused with.
    code: String,
    /// A sentence.
    message: String,
    /// Since when this is the reason.
    since: DateTime<Utc>,
}

impl From<ScheduleProblem> for ScheduleProblemBody {
    fn from(problem: ScheduleProblem) -> Self {
        Self { code: problem.code, message: problem.message, since: problem.since }
    }
}

/// Why a sale is held.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct HeldBody {
    /// While true the sale is being repaired and cannot be resumed.
    blocking: bool,
    /// A sentence.
    reason: String,
}

/// Says what the sale is doing, with live counters for each product, in pages.
#[utoipa::path(get, path = "/api/seller/events/{eventId}/saleStatus", tag = "seller",
    params(("eventId" = String, Path, description = "Event id"), CountersQuery, crate::http::openapi::PageQuery), responses(
    (status = 200, description = "Status and counters", body = SaleBody),
    (status = 400, description = "A part of the query breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not a seller", body = ProblemBody),
    (status = 404, description = "The seller has no such event", body = ProblemBody),
    (status = 409, description = "The live store has lost the sale", body = ProblemBody),
    (status = 503, description = "A store is away", body = ProblemBody)))]
pub(in crate::http) async fn show_sale(
    State(app): State<AppState>,
    OwnedEvent { event }: OwnedEvent,
    query: Result<Query<CountersQuery>, QueryRejection>,
    Paged(page): Paged,
) -> Answer<Json<SaleBody>> {
    let totals = query.is_ok_and(|Query(query)| query.totals.as_deref() == Some("true"));
    let view = app.sale().view(&event).await?;
    let numbers = CountersBody::from(app.sale().counters(event.id, page, totals).await?);
    Ok(Json(SaleBody {
        status: view.status.as_str(),
        phase: view.phase.as_str(),
        reservations: view.reservations,
        products: view.products,
        orders: view.orders,
        numbers,
        schedule: ScheduleBody { plan: PlanBody::from(&event), problem: view.problem.map(ScheduleProblemBody::from) },
        held: view.held.map(|held| HeldBody { blocking: held.blocking, reason: held.reason }),
    }))
}
