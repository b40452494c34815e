//! Health: live says that the process answers; ready says that it can do its work.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::Result;

/// The process answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveBody {
    status: &'static str,
}

/// Says that the process answers.
#[utoipa::path(get, path = "/health/live", tag = "health", responses(
    (status = 200, description = "The process answers", body = LiveBody)))]
pub(super) async fn live() -> Json<LiveBody> {
    Json(LiveBody { status: "live" })
}

/// Whether the process can do its work, and which part cannot.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadyBody {
    /// ready or `not_ready`.
    status: &'static str,
    /// Redis ran one of our scripts.
    live_store: &'static str,
    /// MongoDB answered a query, and has the index that settlement rests on.
    database: &'static str,
    /// Whether the process is shutting down.
    stopping: bool,
    /// What an answered reservation is safe from, by the configuration: `none`, `everysec`, `always` or `replicas`.
    durability: &'static str,
    /// Whether Redis keeps that now, and evicts nothing. No reason to be not ready: that would take this process, and every
    /// other one, away from the buyers of a sale that runs. It is reported for an operator, and no sale opens meanwhile.
    durability_kept: bool,
    /// Why not, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    durability_problem: Option<String>,
}

/// Says whether the process can do its work: it runs a real script and a real query.
#[utoipa::path(get, path = "/health/ready", tag = "health", responses(
    (status = 200, description = "Ready", body = ReadyBody),
    (status = 503, description = "Not ready", body = ReadyBody)))]
pub(super) async fn ready(State(app): State<AppState>) -> (StatusCode, Json<ReadyBody>) {
    let database = async {
        app.mongo().ping().await?;
        app.mongo().orders.has_unique_index().await
    };
    let (live_store, unsafe_for_sales, database) =
        tokio::join!(app.live().probe(), app.live().unsafe_for_sales(), database);
    let stopping = app.tasks().shutdown().is_cancelled();
    let live_store = word(live_store.map(|()| true));
    let database = word(database);
    let ready = live_store == OK && database == OK && !stopping;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if ready { "ready" } else { "not_ready" };
    let durability = app.live().promise().level.as_str();
    let durability_problem = match unsafe_for_sales {
        Ok(shortfall) => shortfall.map(|shortfall| shortfall.to_string()),
        Err(_) => Some("the live store does not answer".to_owned()),
    };
    let durability_kept = durability_problem.is_none();
    let body =
        ReadyBody { status: word, live_store, database, stopping, durability, durability_kept, durability_problem };
    (status, Json(body))
}

const OK: &str = "ok";

fn word(checked: Result<bool>) -> &'static str {
    match checked {
        Ok(true) => OK,
        Ok(false) => "the unique index on orders is missing",
        Err(error) => {
            tracing::warn!(error = %error, "not ready");
            "unavailable"
        }
    }
}
