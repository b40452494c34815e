//! Prefetch jobs, made and watched by administrators: vouchers are bought from vendors ahead of orders.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use garde::Validate;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::inventory::{NO_PRODUCT, worth};
use super::orders::visible;
use super::prefetch_shapes::{PrefetchJobBody, PrefetchJobsBody};
use super::records::NO_CLIENT;
use crate::app::AppState;
use crate::domain::prefetch::{CANDIDATES_MAX, PrefetchState};
use crate::domain::voucher::VoucherProduct;
use crate::error::{Error, Result};
use crate::http::extract::{Admin, NO_JOB, Paged, Path, ValidJson, next_cursor, path_id};
use crate::http::openapi::PageQuery;
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::prefetch::{NewCandidate, NewPrefetch};

/// Vouchers to be bought.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PrefetchRequest {
    /// A name for the job, 1 to 64 visible ASCII characters. The same reference is the same job, however often it is sent:
    /// nothing is bought again.
    #[garde(length(min = 1, max = 64), custom(visible))]
    reference: String,
    #[garde(length(max = 64))]
    product_id: String,
    /// Such as "25.00".
    #[garde(length(max = 32))]
    denomination: String,
    /// How many.
    #[garde(skip)]
    units: u32,
    /// For whom they are kept; without it, for whoever comes.
    #[garde(inner(length(max = 64)))]
    client_id: Option<String>,
    /// From whom: the best discount among those that have enough.
    #[garde(length(max = CANDIDATES_MAX), dive)]
    candidates: Vec<CandidateRequest>,
}

/// A vendor that may be bought from.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct CandidateRequest {
    /// One of the product's vendors, with a connection.
    #[garde(length(max = 64))]
    vendor_id: String,
    /// The vendor's own name for the product, 1 to 128 characters.
    #[garde(skip)]
    product_ref: String,
    /// The discount that was agreed on, in basis points. What the vendor says when it is asked counts more.
    #[serde(default)]
    #[garde(skip)]
    discount_bp: u32,
}

/// A candidate that can be bought from: its vendor issues the product, and there is a way to it.
async fn candidate(
    app: &AppState,
    product: &VoucherProduct,
    index: usize,
    request: CandidateRequest,
) -> Result<NewCandidate> {
    let refused = |why: &str| Error::invalid(&format!("candidates[{index}].vendorId"), why);
    let vendor = request.vendor_id.parse().map_err(|_| refused("must be an id"))?;
    if !product.vendors.contains(&vendor) {
        return Err(refused("is not one of the product's vendors"));
    }
    if !app.connections().is_enabled(vendor).await? {
        return Err(refused("has no connection that is enabled; set one first"));
    }
    Ok(NewCandidate { vendor, product_ref: request.product_ref, discount_bp: request.discount_bp })
}

/// Makes a job that buys vouchers from vendors. It begins when a process is free: ask for the job to see how far it is.
#[utoipa::path(post, path = "/api/admin/vouchers/prefetch-jobs", tag = "vouchers", request_body = PrefetchRequest,
    responses(
    (status = 201, description = "Made, now or before under this reference", body = PrefetchJobBody),
    (status = 400, description = "A field breaks a rule; a vendor does not issue the product, or has no connection", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such product, or client", body = ProblemBody),
    (status = 409, description = "reference_reused: another job has this reference", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "The database is away: ask again with the same reference", body = ProblemBody)))]
pub(in crate::http) async fn make_prefetch_job(
    State(app): State<AppState>,
    Admin(session): Admin,
    ValidJson(request): ValidJson<PrefetchRequest>,
) -> Answer<(StatusCode, Json<PrefetchJobBody>)> {
    let product = app.vouchers().product(path_id(&request.product_id, NO_PRODUCT)?).await?;
    let denomination = worth(&product, &request.denomination, "denomination")?;
    let client = match &request.client_id {
        Some(id) => Some(app.vouchers().client(path_id(id, NO_CLIENT)?).await?.id),
        None => None,
    };
    let mut candidates = Vec::new();
    for (index, one) in request.candidates.into_iter().enumerate() {
        candidates.push(candidate(&app, &product, index, one).await?);
    }
    let (reference, units) = (request.reference, request.units);
    let wanted = NewPrefetch { reference, product: product.id, denomination, units, client, candidates };
    Ok((StatusCode::CREATED, Json(app.prefetch().create(session.user(), wanted).await?.into())))
}

/// Which jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct PrefetchQuery {
    /// QUEUED, RUNNING, COMPLETED, FAILED or KILLED; without it, all of them.
    state: Option<String>,
}

/// Prefetch jobs, newest first, without their batches.
#[utoipa::path(get, path = "/api/admin/vouchers/prefetch-jobs", tag = "vouchers", params(PrefetchQuery, PageQuery),
    responses(
    (status = 200, description = "A page of them", body = PrefetchJobsBody),
    (status = 400, description = "A parameter breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_prefetch_jobs(
    State(app): State<AppState>,
    _admin: Admin,
    query: Result<Query<PrefetchQuery>, QueryRejection>,
    Paged(page): Paged,
) -> Answer<Json<PrefetchJobsBody>> {
    let unknown = || Error::invalid("state", "must be QUEUED, RUNNING, COMPLETED, FAILED or KILLED");
    let state = match query.ok().and_then(|Query(query)| query.state) {
        Some(text) => Some(PrefetchState::parse(&text).ok_or_else(unknown)?),
        None => None,
    };
    let listed = app.prefetch().jobs(state, page).await?;
    let jobs = listed.items.into_iter().map(Into::into).collect();
    Ok(Json(PrefetchJobsBody { jobs, next_cursor: next_cursor(listed.next) }))
}

/// A prefetch job with its batches: what was ordered of whom, and what came of it. No code is in it.
#[utoipa::path(get, path = "/api/admin/vouchers/prefetch-jobs/{jobId}", tag = "vouchers",
    params(("jobId" = String, Path, description = "Job id")), responses(
    (status = 200, description = "The job", body = PrefetchJobBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such job", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_prefetch_job(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
) -> Answer<Json<PrefetchJobBody>> {
    Ok(Json(app.prefetch().job(path_id(&id, NO_JOB)?).await?.into()))
}

/// Stops a job: nothing more is ordered. It is KILLED when the outcome of what is under way is known; what was bought is kept.
/// A job that has ended stays as it is.
#[utoipa::path(post, path = "/api/admin/vouchers/prefetch-jobs/{jobId}/kill", tag = "vouchers",
    params(("jobId" = String, Path, description = "Job id")), responses(
    (status = 200, description = "The job as it is now", body = PrefetchJobBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such job", body = ProblemBody),
    (status = 503, description = "The database is away: kill it again", body = ProblemBody)))]
pub(in crate::http) async fn kill_prefetch_job(
    State(app): State<AppState>,
    Admin(session): Admin,
    Path(id): Path<String>,
) -> Answer<Json<PrefetchJobBody>> {
    Ok(Json(app.prefetch().kill(session.user(), path_id(&id, NO_JOB)?).await?.into()))
}
